// Block-sparse attention, forward and backward, for any layout: how a call is cut into work, and shared out to threads.
//
// A row is one tile of queries: it visits the key tiles that its layout lists (with bit masks where a tile is not
// full), then the global tokens, gathered into tiles of their own. Global tokens are rows of their own too, and see
// every key. The order of all sums depends on the shapes alone, never on the threads.
//
// The backward pass is serial for a head of a sequence; where there are fewer heads than PARALLEL_HEADS, its rows are cut
// into chunks with sums of their own, added in order afterwards. (A second pass over a transposed layout needs no extra
// sums but 7 products instead of 5.) Neither depends on what else is in the batch.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "backward.h"
#include "forward.h"

namespace {

using namespace longbird;

constexpr int64_t PARALLEL_HEADS = 8;
constexpr int64_t LIGHT_CHUNK = 64;  // entries in a chunk of the backward pass, at least; about 2 ms
constexpr int LIGHT_ITEM = 32;       // entries in one piece of forward work, about 0.3 ms

struct Item {
    const Sequence* seq;
    int64_t head;
    int begin, end;  // rows
    int64_t entries;
};

// Runs work(item number, scratch, keep_going) for all items, heaviest items first in line; false if stopped.
template <class Work>
bool run_items(const Problem& p, const Runtime& runtime, size_t count, bool backward, const Work& work) {
    const int threads = (int)std::min<size_t>(std::max(runtime.threads, 1), std::max<size_t>(count, 1));
    std::atomic<size_t> next{0}, done{0};
    std::atomic<bool> stop{false}, out_of_memory{false};
    run_on_threads(threads, [&](int thread) {
        using Clock = std::chrono::steady_clock;
        auto last_poll = Clock::now();
        const auto keep_going = [&] {
            if (thread == 0 && runtime.poll && Clock::now() - last_poll > std::chrono::milliseconds(50)) {
                if (runtime.poll()) stop = true;
                last_poll = Clock::now();
            }
            return !stop.load(std::memory_order_relaxed);
        };
        try {
            Scratch scratch(p, backward);
            for (size_t i; keep_going() && (i = next++) < count; done++) work(i, scratch, keep_going);
        } catch (const std::bad_alloc&) {
            out_of_memory = stop = true;
        }
        // The caller stays awake for an interrupt while others finish what they have. (How many others there are is for
        // OpenMP to say: it may start fewer threads than asked for.)
        if (thread == 0)
            while (done < count && keep_going()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
    if (out_of_memory) throw std::bad_alloc();
    return !stop;
}

// The bias table of a head in units of log 2, as the scores are.
std::vector<float> bias_in_log2(const Problem& p) {
    std::vector<float> table(p.bias ? p.heads * (2 * p.bias_radius + 1) : 0);
    for (size_t i = 0; i < table.size(); i++) {
        table[i] = p.bias[i] * LOG2E;
        // A finite bias stays finite: the lowest float, a usual way to say "not here", is still a score.
        if (std::isfinite(p.bias[i])) table[i] = std::clamp(table[i], LOWEST, -LOWEST);
    }
    return table;
}

const float* head_table(const Problem& p, const std::vector<float>& table, int64_t head) {
    return table.empty() ? nullptr : table.data() + head * (2 * p.bias_radius + 1) + p.bias_radius;
}

template <class Call>
void with_dim(int64_t head_dim, const Call& call) {
    switch (head_dim) {
        case 32: return call(Rows<32>{});
        case 64: return call(Rows<64>{});
        case 128: return call(Rows<128>{});
        default: return call(Rows<0>{});
    }
}

bool run_forward(const Problem& p, const Runtime& runtime) {
    const std::vector<float> table = bias_in_log2(p);
    std::vector<Item> items;
    for (const Sequence& seq : p.sequences)
        for (int64_t head = 0; head < p.heads; head++)
            for (int row = 0, rows = row_count(seq); row < rows;) {
                Item item{&seq, head, row, row, 0};
                do item.entries += entry_count(seq, head, item.end++);
                while (item.end < rows && item.entries + entry_count(seq, head, item.end) <= LIGHT_ITEM);
                items.push_back(item);
                row = item.end;
            }
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
        return a.entries > 2 * LIGHT_ITEM && b.entries <= 2 * LIGHT_ITEM;
    });
    bool finished = true;
    with_dim(p.head_dim, [&](auto dim) {
        finished = run_items(p, runtime, items.size(), false, [&](size_t i, Scratch& s, const auto& keep_going) {
            const Item& item = items[i];
            for (int row = item.begin; row < item.end && keep_going(); row++)
                forward_row<decltype(dim)::value>(Row(p, *item.seq, item.head, row, head_table(p, table, item.head)),
                                                  row, s);
        });
    });
    return finished;
}

// One head of one sequence in the backward pass, cut into items that share its entries equally.
struct Unit {
    std::vector<Item> items;
    std::vector<Sums> sums;
    int64_t entries = 0;
    std::atomic<int> unfinished{0};

    Unit(const Problem& p, const Sequence& seq, int64_t head) {
        const int rows = row_count(seq);
        for (int row = 0; row < rows; row++) entries += entry_count(seq, head, row);
        const int64_t most = (PARALLEL_HEADS + p.heads - 1) / p.heads;
        const int64_t chunks = std::clamp<int64_t>(entries / LIGHT_CHUNK, 1, most);
        int64_t seen = 0;
        for (int64_t chunk = 0, row = 0; chunk < chunks; chunk++) {
            Item item{&seq, head, (int)row, (int)row, 0};
            while (item.end < rows && (chunk == chunks - 1 || seen * chunks < entries * (chunk + 1)))
                seen += entry_count(seq, head, item.end++);
            items.push_back(item);
            row = item.end;
        }
        sums.resize(items.size());
        unfinished = (int)items.size();
    }
};

bool run_backward(const Problem& p, const Runtime& runtime) {
    const std::vector<float> table = bias_in_log2(p);
    const int padded_dim = round_up(p.head_dim, G);
    std::vector<std::unique_ptr<Unit>> units;
    for (const Sequence& seq : p.sequences)
        for (int64_t head = 0; head < p.heads; head++) units.push_back(std::make_unique<Unit>(p, seq, head));
    // The heaviest first, so that the threads end together; all of a unit in turn, so that few sums are alive at once.
    std::vector<std::pair<Unit*, int>> queue;
    for (const auto& unit : units)
        for (int item = 0; item < (int)unit->items.size(); item++) queue.emplace_back(unit.get(), item);
    std::stable_sort(queue.begin(), queue.end(),
                     [](const auto& a, const auto& b) { return a.first->entries > b.first->entries; });

    bool finished = true;
    with_dim(p.head_dim, [&](auto dim) {
        finished = run_items(p, runtime, queue.size(), true, [&](size_t i, Scratch& s, const auto& keep_going) {
            Unit& unit = *queue[i].first;
            const Item& item = unit.items[queue[i].second];
            Sums& sums = unit.sums[queue[i].second];
            sums.start(p, *item.seq, item.head, padded_dim, unit.items.size() == 1);
            for (int row = item.begin; row < item.end && keep_going(); row++)
                backward_row<decltype(dim)::value>(Row(p, *item.seq, item.head, row, head_table(p, table, item.head)),
                                                   row, s, sums);
            if (--unit.unfinished == 0) write_sums(p, *item.seq, item.head, unit.sums, padded_dim);
        });
    });
    if (finished && p.bias) {
        const int64_t width = 2 * p.bias_radius + 1;
        std::vector<double> total(p.heads * width, 0.0);
        for (const auto& unit : units)
            for (Sums& sums : unit->sums)
                for (int64_t reach = (int64_t)sums.bias.size() / 2, x = -reach; x <= reach; x++)
                    total[unit->items[0].head * width + p.bias_radius + x] += sums.bias_at(x);
        for (size_t i = 0; i < total.size(); i++) p.grad_bias[i] = (float)total[i];
    }
    return finished;
}

}  // namespace
