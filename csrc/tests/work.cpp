// Division of a call into work items, independence of threads, and allocated memory.
#include "../kernels/work.h"

#include "case.h"

namespace {

bool same_bits(const Results& a, const Results& b) {
    const auto same = [](const auto& x, const auto& y) {
        return x.size() == y.size() && (x.empty() || !std::memcmp(x.data(), y.data(), x.size() * sizeof(x[0])));
    };
    return same(a.out.floats, b.out.floats) && same(a.lse, b.lse) && same(a.grad_q.floats, b.grad_q.floats) &&
           same(a.grad_k.floats, b.grad_k.floats) && same(a.grad_v.floats, b.grad_v.floats) &&
           same(a.grad_bias, b.grad_bias);
}

// One head with full attention, over complete tiles of 64 tokens.
struct Full {
    std::vector<int32_t> starts, columns, mask_ids;
    std::vector<int64_t> row_ptr{0};
    std::vector<float> q, out, lse;
    Layout layout;
    Problem p;

    explicit Full(int tiles) : q((size_t)tiles * 64 * 64, 0.5f), out(q.size()), lse((size_t)tiles * 64) {
        for (int t = 0; t <= tiles; t++) starts.push_back(64 * t);
        for (int row = 0; row < tiles; row++) {
            for (int t = 0; t < tiles; t++) columns.push_back(t), mask_ids.push_back(-1);
            row_ptr.push_back((int64_t)columns.size());
        }
        layout.tile_size = 64, layout.mask_bytes = 8, layout.queries = layout.keys = {tiles, starts.data(), nullptr, 1};
        layout.row_ptr = row_ptr.data(), layout.columns = columns.data(), layout.mask_ids = mask_ids.data();
        p.heads = 1, p.head_dim = 64;
        p.q = p.k = p.v = {q.data(), DType::f32, 0, 0, 64};
        p.out = {out.data(), DType::f32, 0, 0, 64}, p.lse = {lse.data(), DType::f32, 0, 0, 1};
        p.sequences.emplace_back();
        p.sequences[0].layout = &layout;
    }
};

}  // namespace

TEST(work_covers_every_row_once) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        const size_t rows = row_count(p.sequences[0]);
        std::vector<int> forward(c.batch * c.heads * rows), backward = forward;
        const auto add = [&](std::vector<int>& counts, const Item& item) {
            for (int row = item.begin; row < item.end; row++)
                counts[((item.seq - p.sequences.data()) * c.heads + item.head) * rows + row]++;
        };
        for (const Item& item : ForwardWork(p).items) add(forward, item);
        const BackwardWork work(p);
        for (const auto& [unit, item] : work.queue) add(backward, unit->items[item]);
        const std::vector<int> once(forward.size(), 1);
        CHECK(forward == once && backward == once);
    }
}

TEST(threads_change_no_bit) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        Results one(c), three(c);
        one.run(c, 1), three.run(c, 3);
        CHECK(same_bits(one, three));
    }
}

TEST(a_sequence_is_the_same_alone_and_in_a_batch) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        if (c.batch == 1) continue;
        Results together(c), apart(c);
        together.run(c, 2);
        for (int b = 0; b < c.batch; b++) {
            Problem p = apart.problem(c);
            p.sequences = {p.sequences[b]};
            CHECK(kernels.forward(p, {1, nullptr}) && kernels.backward(p, {1, nullptr}));
        }
        apart.grad_bias = together.grad_bias;  // a sum over the batch
        CHECK(same_bits(together, apart));
    }
}

TEST(a_poll_stops_the_work) {
    Full full(64);
    for (const int threads : {1, 3}) {
        int polls = 0;
        CHECK(!kernels.forward(full.p, {threads, [&] { return ++polls > 0; }}));
        CHECK(polls == 1);
    }
}

// With one thread the number is exact except for a few bytes of a std::function; with more it is a bound.
TEST(work_space_is_what_is_allocated) {
    for (int problem = 0; problem < random_problems(); problem++)
        for (const bool backward : {false, true}) {
            const Case c(problem, problem % 2 ? DType::f32 : DType::bf16);
            Results results(c);
            results.run(c, 1);
            const Problem p = results.problem(c);
            const auto run = backward ? kernels.backward : kernels.forward;
            for (const int threads : {1, 3}) {
                const int64_t counted = kernels.work_space(p, threads, backward);
                const int64_t peak = peak_allocation([&] { run(p, {threads, nullptr}); });
                CHECK(peak <= counted + 1024);
                if (threads == 1) CHECK(counted <= peak);
            }
        }
}

TEST(work_space_needs_no_tensors) {
    for (int problem = 0; problem < random_problems(); problem++)
        for (const bool backward : {false, true}) {
            const Case c(problem);
            Results results(c);
            Problem p = results.problem(c);
            const int64_t expected = kernels.work_space(p, 2, backward);
            for (Tensor* t : {&p.q, &p.k, &p.v, &p.out, &p.lse, &p.grad_out, &p.grad_q, &p.grad_k, &p.grad_v})
                t->data = nullptr;
            CHECK(kernels.work_space(p, 2, backward) == expected);
        }
}

// Many short rows, to include work items and the maximum number of slots.
TEST(work_space_of_long_sequences_is_what_is_allocated) {
    Full full(40);
    std::vector<int32_t> order;
    for (int i = 0; i < 40 * 64; i++) order.push_back(i);
    full.layout.keys.order = order.data();
    const int64_t counted = kernels.work_space(full.p, 1, false);
    const int64_t peak = peak_allocation([&] { kernels.forward(full.p, {1, nullptr}); });
    CHECK(peak <= counted + 1024 && counted <= peak);
    CHECK(counted > 2 * 40 * 64 * 64 * 4);
}
