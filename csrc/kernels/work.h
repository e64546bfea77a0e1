// Block-sparse attention for any layout, forward and backward: dividing a call into work items and running them on
// threads.
//
// A row is one tile of queries. It visits the key tiles that its layout lists (with bit masks where a tile is not
// full), then the global tokens, which are gathered into tiles of their own. Global tokens also form rows of their own,
// which see every key. The order of all sums depends on the shapes alone, never on the threads.
//
// The backward pass is serial within a head of a sequence. If there are fewer heads than PARALLEL_HEADS, the rows are
// divided into chunks with separate sums, which are added in order afterwards. (A second pass over a transposed layout
// would need no separate sums, but 7 products instead of 5.) Neither depends on the rest of the batch.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <thread>

#include "backward.h"
#include "forward.h"

namespace {

using namespace longbird;

constexpr int64_t PARALLEL_HEADS = 8;
constexpr int64_t LIGHT_CHUNK = 64;  // minimum entries of a chunk of the backward pass, about 2 ms
constexpr int LIGHT_ITEM = 32;       // entries of a forward work item, about 0.3 ms

struct Item {
    const Sequence* seq;
    int64_t head;
    int begin, end;  // rows
    int64_t entries;
};

int team_size(int threads, size_t items) {
    return (int)std::min<size_t>(std::max(threads, 1), std::max<size_t>(items, 1));
}

// Runs work(item number, scratch, keep_going) for all items; returns false if stopped.
template <class Work>
bool run_items(const Problem& p, const Runtime& runtime, size_t count, bool backward, const Work& work) {
    const int threads = team_size(runtime.threads, count);
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
            Memory memory;
            Scratch scratch(p, backward, memory);
            for (size_t i; keep_going() && (i = next++) < count; done++) work(i, scratch, keep_going);
        } catch (const std::bad_alloc&) {
            out_of_memory = stop = true;
        }
        // The caller keeps polling for interrupts while others finish their items. (OpenMP may have started fewer
        // threads than requested.)
        if (thread == 0)
            while (done < count && keep_going()) std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
    if (out_of_memory) throw std::bad_alloc();
    return !stop;
}

// The bias table in units of log 2, like the scores.
std::vector<float> bias_in_log2(const Problem& p) {
    std::vector<float> table(p.bias ? p.heads * (2 * p.bias_radius + 1) : 0);
    for (size_t i = 0; i < table.size(); i++) {
        table[i] = p.bias[i] * LOG2E;
        // A finite bias stays finite: the lowest float, which is often used as a mask, is still a score.
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

// ---- forward ----

// Calls visit(item) for work items of a few rows each.
template <class Visit>
void for_each_item(const Problem& p, const Visit& visit) {
    for (const Sequence& seq : p.sequences)
        for (int64_t head = 0; head < p.heads; head++)
            for (int row = 0, rows = row_count(seq); row < rows;) {
                Item item{&seq, head, row, row, 0};
                do item.entries += entry_count(seq, head, item.end++);
                while (item.end < rows && item.entries + entry_count(seq, head, item.end) <= LIGHT_ITEM);
                visit(item);
                row = item.end;
            }
}

struct ForwardWork {
    std::vector<float> table;
    std::vector<Item> items;

    explicit ForwardWork(const Problem& p) : table(bias_in_log2(p)) {
        size_t count = 0;
        for_each_item(p, [&](const Item&) { count++; });
        items.reserve(count);
        // Large items first, so that the threads finish together.
        for (const bool heavy : {true, false})
            for_each_item(p, [&](const Item& item) {
                if ((item.entries > 2 * LIGHT_ITEM) == heavy) items.push_back(item);
            });
    }
    int64_t bytes() const { return bytes_of(table) + bytes_of(items); }
};

bool run_forward(const Problem& p, const Runtime& runtime) {
    const ForwardWork work(p);
    bool finished = true;
    with_dim(p.head_dim, [&](auto dim) {
        finished = run_items(p, runtime, work.items.size(), false, [&](size_t i, Scratch& s, const auto& keep_going) {
            const Item& item = work.items[i];
            const float* table = head_table(p, work.table, item.head);
            for (int row = item.begin; row < item.end && keep_going(); row++)
                forward_row<decltype(dim)::value>(Row(p, *item.seq, item.head, row, table), row, s);
        });
    });
    return finished;
}

// ---- backward ----

// One head of one sequence, divided into items with equal shares of its entries.
struct Unit {
    std::vector<Item> items;
    std::vector<Sums> sums;    // of each item, until they are written
    std::vector<double> bias;  // [item][2 * reach + 1]
    int64_t entries = 0;
    std::atomic<int> unfinished{0};

    Unit(const Problem& p, const Sequence& seq, int64_t head) {
        const int rows = row_count(seq);
        for (int row = 0; row < rows; row++) entries += entry_count(seq, head, row);
        const int64_t most = (PARALLEL_HEADS + p.heads - 1) / p.heads;
        const int64_t chunks = std::clamp<int64_t>(entries / LIGHT_CHUNK, 1, most);
        items.reserve(chunks);
        int64_t seen = 0;
        for (int64_t chunk = 0, row = 0; chunk < chunks; chunk++) {
            Item item{&seq, head, (int)row, (int)row, 0};
            while (item.end < rows && (chunk == chunks - 1 || seen * chunks < entries * (chunk + 1)))
                seen += entry_count(seq, head, item.end++);
            items.push_back(item);
            row = item.end;
        }
        sums.resize(items.size());
        bias = std::vector<double>(p.bias ? items.size() * bias_width(p) : 0);
        unfinished = (int)items.size();
    }
    int64_t bytes() const { return sizeof(Unit) + bytes_of(items) + bytes_of(sums) + bytes_of(bias); }

    const Sequence& seq() const { return *items[0].seq; }
    int64_t reach(const Problem& p) const { return bias_reach(p, seq()); }
    int64_t bias_width(const Problem& p) const { return 2 * reach(p) + 1; }
    double* bias_of(const Problem& p, int item) {
        return bias.empty() ? nullptr : bias.data() + item * bias_width(p) + reach(p);
    }
    Sums start(const Problem& p, int item, Memory& memory) {
        return Sums(p, seq(), items[0].head, round_up(p.head_dim, G), items.size() == 1, bias_of(p, item), memory);
    }
};

struct BackwardWork {
    std::vector<float> table;
    std::vector<std::unique_ptr<Unit>> units;
    std::vector<std::pair<Unit*, int>> queue;  // a unit and one of its items
    std::vector<double> bias_total;            // [head][2 * radius + 1]

    explicit BackwardWork(const Problem& p) : table(bias_in_log2(p)), bias_total(table.size()) {
        units.reserve(p.sequences.size() * p.heads);
        size_t count = 0;
        for (const Sequence& seq : p.sequences)
            for (int64_t head = 0; head < p.heads; head++) {
                units.push_back(std::make_unique<Unit>(p, seq, head));
                count += units.back()->items.size();
            }
        queue.reserve(count);
        for (const auto& unit : units)
            for (int item = 0; item < (int)unit->items.size(); item++) queue.emplace_back(unit.get(), item);
        // The largest units first, so that the threads finish together; the items of a unit in a row, so that few sums
        // exist at once.
        std::stable_sort(queue.begin(), queue.end(),
                         [](const auto& a, const auto& b) { return a.first->entries > b.first->entries; });
    }

    int64_t bytes() const {
        int64_t bytes = bytes_of(table) + bytes_of(units) + bytes_of(queue) + bytes_of(bias_total);
        for (const auto& unit : units) bytes += unit->bytes();
        return bytes;
    }

    // Peak size of the sums of grad_k and grad_v: a thread works on one item, and the sums of a unit exist until its
    // last item is finished, so there are at most as many units with sums as threads.
    int64_t bytes_of_sums(const Problem& p, int threads) const {
        std::vector<int64_t> bytes(units.size());
        for (size_t unit = 0; unit < units.size(); unit++) {
            Memory memory{true};
            for (int item = 0; item < (int)units[unit]->items.size(); item++) units[unit]->start(p, item, memory);
            bytes[unit] = memory.bytes;
        }
        std::sort(bytes.begin(), bytes.end(), std::greater<int64_t>());
        return std::accumulate(bytes.begin(), bytes.begin() + std::min<size_t>(threads, bytes.size()), (int64_t)0);
    }
};

void write_bias_gradient(const Problem& p, BackwardWork& work) {
    const int64_t width = 2 * p.bias_radius + 1;
    for (const auto& unit : work.units)
        for (int item = 0; item < (int)unit->items.size(); item++)
            for (int64_t reach = unit->reach(p), x = -reach; x <= reach; x++)
                work.bias_total[unit->items[item].head * width + p.bias_radius + x] += unit->bias_of(p, item)[x];
    for (size_t i = 0; i < work.bias_total.size(); i++) p.grad_bias[i] = (float)work.bias_total[i];
}

bool run_backward(const Problem& p, const Runtime& runtime) {
    BackwardWork work(p);
    bool finished = true;
    with_dim(p.head_dim, [&](auto dim) {
        finished = run_items(p, runtime, work.queue.size(), true, [&](size_t i, Scratch& s, const auto& keep_going) {
            const auto [unit, number] = work.queue[i];
            const Item& item = unit->items[number];
            const float* table = head_table(p, work.table, item.head);
            Memory memory;
            Sums& sums = unit->sums[number] = unit->start(p, number, memory);
            sums.clear();
            for (int row = item.begin; row < item.end && keep_going(); row++)
                backward_row<decltype(dim)::value>(Row(p, *item.seq, item.head, row, table), row, s, sums);
            if (--unit->unfinished == 0) write_sums(p, *item.seq, item.head, unit->sums, s.padded_dim);
        });
    });
    if (finished && p.bias) write_bias_gradient(p, work);
    return finished;
}

// ---- work space ----

int64_t count_work_space(const Problem& p, int threads, bool backward) {
    Memory scratch{true};
    Scratch(p, backward, scratch);
    if (!backward) {
        const ForwardWork work(p);
        return work.bytes() + team_size(threads, work.items.size()) * scratch.bytes;
    }
    const BackwardWork work(p);
    const int team = team_size(threads, work.queue.size());
    return work.bytes() + team * scratch.bytes + work.bytes_of_sums(p, team);
}

}  // namespace
