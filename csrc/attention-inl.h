// Block-sparse attention, forward and backward, for any layout. Compiled once for each instruction set.
//
// A row is one tile of queries: it visits the key tiles that its layout lists (with bit masks where a tile is not
// full), then the global tokens, gathered into tiles of their own. Global tokens are rows of their own too, and see
// every key. The order of all sums depends on the shapes alone, never on the threads.
//
// Forward: softmax is streamed over the key tiles (running maximum m and sum l per query).
// Backward: probabilities come back as exp(score - lse); one pass over the rows gives grad_q, and adds to grad_k and
// grad_v. That pass is serial for a head of a sequence; where there are fewer heads than PARALLEL_HEADS, its rows are
// cut into chunks with sums of their own, added in order afterwards. (A second pass over a transposed layout needs no
// extra sums but 7 products instead of 5.) Neither depends on what else is in the batch.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "attention.h"
#include "products.h"

namespace {

using namespace longbird;

constexpr float LOG2E = 1.44269504088896341f, LN2 = 0.69314718055994531f;
constexpr float MASKED = -INFINITY;  // the score of an edge that is not there
constexpr float LOWEST = -3e38f;     // the lowest score of one that is, and the maximum of a query that has seen no key
constexpr float SLACK = 8.0f;        // scores may pass the running maximum by 2^8 before the sums are rescaled
constexpr int64_t PARALLEL_HEADS = 8;
constexpr int SLOTS = 1024;          // key tiles that a thread may keep copies of
constexpr int64_t LIGHT_CHUNK = 64;  // entries in a chunk of the backward pass, at least; about 2 ms
constexpr int LIGHT_ITEM = 32;       // entries in one piece of forward work, about 0.3 ms

int round_up(int64_t x, int64_t to) { return (int)((x + to - 1) / to * to); }

// ---- tiles and rows of memory ----

struct Tile {
    int count;
    int32_t first;          // the first token, or
    const int32_t* tokens;  // all of them
    int32_t step;           // distance of neighbours, 0 if it varies
    int64_t position;       // where its sums lie in the backward pass
    int number;             // among the key tiles of its sequence, the global ones last
    bool is_global;
    int32_t token(int i) const { return tokens ? tokens[i] : first + i; }
};

Tile tile_of(const Tiling& tiling, int t) {
    const int32_t start = tiling.starts[t], count = tiling.starts[t + 1] - start;
    return {count, start, tiling.order ? tiling.order + start : nullptr, tiling.step, start, t, false};
}

Tile global_tile(const Sequence& seq, int t) {
    const int start = t * seq.layout->tile_size;
    const int count = std::min<int>(seq.layout->tile_size, (int)seq.globals.size() - start);
    return {count, 0, seq.globals.data() + start, 0, start, seq.layout->keys.count + t, true};
}

int global_tiles(const Sequence& seq) {
    return ((int)seq.globals.size() + seq.layout->tile_size - 1) / seq.layout->tile_size;
}

// The tokens of one head of one sequence.
struct HeadView {
    char* base;
    DType dtype;
    int64_t token_stride;
    int width() const { return dtype == DType::f32 ? 4 : 2; }
    char* row(int64_t token) const { return base + token * token_stride * width(); }
    float* floats(int64_t token) const { return (float*)row(token); }
};

HeadView view(const Tensor& t, const Sequence& seq, int64_t head) {
    if (!t.data) return {nullptr, t.dtype, 0};
    const int64_t offset = seq.batch * t.sequence_stride + head * t.head_stride + seq.token_start * t.token_stride;
    return {(char*)t.data + offset * (t.dtype == DType::f32 ? 4 : 2), t.dtype, t.token_stride};
}

void read_row(const HeadView& from, int64_t token, float* to, int channels) {
    const char* row = from.row(token);
    if (from.dtype == DType::f32) {
        std::memcpy(to, row, 4 * channels);
    } else if (from.dtype == DType::bf16) {
        const uint16_t* x = (const uint16_t*)row;
        for (int c = 0; c < channels; c++) to[c] = from_bf16(x[c]);
    } else {
        const uint16_t* x = (const uint16_t*)row;
        for (int c = 0; c < channels; c++) to[c] = from_f16(x[c]);
    }
}

void write_row(const HeadView& to, int64_t token, const float* from, int channels) {
    char* row = to.row(token);
    if (to.dtype == DType::f32) {
        std::memcpy(row, from, 4 * channels);
    } else if (to.dtype == DType::bf16) {
        uint16_t* x = (uint16_t*)row;
        for (int c = 0; c < channels; c++) x[c] = to_bf16(from[c]);
    } else {
        uint16_t* x = (uint16_t*)row;
        for (int c = 0; c < channels; c++) x[c] = to_f16(from[c]);
    }
}

// ---- scratch memory of one thread ----

struct Free {
    void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], Free>;

Floats allocate(int64_t count) {
    float* p = (float*)std::aligned_alloc(64, ((size_t)count * 4 + 127) / 64 * 64);
    if (!p) throw std::bad_alloc();
    return Floats(p);
}

struct Scratch {
    int dim, padded_dim;                // channels, and the same rounded up to a multiple of G
    int tile, groups;                   // most tokens of a tile, and groups of G queries in it
    Floats q, out, grad_out, grad_q;    // [group][channel][G]
    Floats s, t;                        // [group][key][G]: scores, then probabilities; and their gradients
    Floats rows, q_rows, grad_rows;     // [query][padded_dim]
    Floats k, v;                        // [slot][key][dim], see key_rows
    std::vector<int> slots;             // the number of the tile in each slot
    int64_t slots_head = -1;            // whose tiles they are
    Floats bias, bias_grad, line;       // relative bias by i - j; of one key
    Floats m, l, delta;                 // [query]
    std::vector<uint32_t> dropout_row;  // [query]

    Scratch(const Problem& p, bool backward) {
        dim = (int)p.head_dim;
        padded_dim = round_up(dim, G);
        tile = 1;
        int key_tiles = 0;
        for (const Sequence& seq : p.sequences) {
            tile = std::max<int>(tile, seq.layout->tile_size);
            key_tiles = std::max(key_tiles, seq.layout->keys.count + global_tiles(seq));
        }
        slots.resize(std::min(key_tiles, SLOTS));
        groups = round_up(tile, G) / G;
        const int64_t lanes = groups * G, matrix = lanes * padded_dim;
        q = allocate(matrix), out = allocate(matrix), rows = allocate(matrix);
        s = allocate((int64_t)groups * tile * G);
        k = allocate((int64_t)slots.size() * tile * dim), v = allocate((int64_t)slots.size() * tile * dim);
        bias = allocate(2 * lanes + tile), line = allocate(lanes);
        m = allocate(lanes), l = allocate(lanes);
        dropout_row.resize(lanes);
        if (!backward) return;
        grad_out = allocate(matrix), grad_q = allocate(matrix);
        q_rows = allocate(matrix), grad_rows = allocate(matrix);
        t = allocate((int64_t)groups * tile * G);
        bias_grad = allocate(2 * lanes + tile), delta = allocate(lanes);
    }
};

// Rows of a tile as [query][padded_dim] floats, zeros in the rest of the last group.
void read_rows(const HeadView& from, const Tile& tile, const Scratch& s, float* to) {
    for (int i = 0; i < tile.count; i++, to += s.padded_dim) {
        read_row(from, tile.token(i), to, s.dim);
        for (int c = s.dim; c < s.padded_dim; c++) to[c] = 0;
    }
    const int rest = round_up(tile.count, G) - tile.count;
    std::memset(to, 0, (size_t)rest * s.padded_dim * 4);
}

// Keys and values as rows of `dim` floats side by side: in place if they already are, else copied to a slot, where the
// next rows of queries find them. Copying at every visit cost 12% of the forward pass with the heads interleaved, as
// models have them; so did reading them in place, through the cache sets that such strides share.
struct KeyRows {
    const float *k, *v;
};

bool in_place(const HeadView& x, const Scratch& s) { return x.dtype == DType::f32 && x.token_stride == s.dim; }

KeyRows key_rows(const HeadView& k, const HeadView& v, const Tile& tile, int64_t head, Scratch& s) {
    if (!tile.tokens && in_place(k, s) && in_place(v, s)) return {k.floats(tile.first), v.floats(tile.first)};
    if (s.slots_head != head) {
        std::fill(s.slots.begin(), s.slots.end(), -1);
        s.slots_head = head;
    }
    const int slot = tile.number % (int)s.slots.size();
    const int64_t offset = (int64_t)slot * s.tile * s.dim;
    if (s.slots[slot] != tile.number) {
        s.slots[slot] = tile.number;
        for (int j = 0; j < tile.count; j++) {
            read_row(k, tile.token(j), s.k.get() + offset + j * s.dim, s.dim);
            read_row(v, tile.token(j), s.v.get() + offset + j * s.dim, s.dim);
        }
    }
    return {s.k.get() + offset, s.v.get() + offset};
}

// [query][padded_dim] rows, times factor, to lanes [group][channel][G].
void to_lanes(const float* rows, int groups, const Scratch& s, float factor, float* lanes) {
    for (int g = 0; g < groups; g++, lanes += (int64_t)s.padded_dim * G)
        for (int half = 0; half < 2; half++, rows += (int64_t)W * s.padded_dim)
            for (int c = 0; c < s.padded_dim; c += W) {
                Vec block[W];
                for (int i = 0; i < W; i++) block[i] = load(rows + (int64_t)i * s.padded_dim + c) * factor;
                transpose(block);
                for (int i = 0; i < W; i++) store(lanes + (c + i) * G + half * W, block[i]);
            }
}

// And back, each query times its factor.
void from_lanes(const float* lanes, int groups, const Scratch& s, const float* factors, float* rows) {
    for (int g = 0; g < groups; g++, lanes += (int64_t)s.padded_dim * G)
        for (int half = 0; half < 2; half++, rows += (int64_t)W * s.padded_dim, factors += W)
            for (int c = 0; c < s.padded_dim; c += W) {
                Vec block[W];
                for (int i = 0; i < W; i++) block[i] = load(lanes + (c + i) * G + half * W) * load(factors);
                transpose(block);
                for (int i = 0; i < W; i++) store(rows + (int64_t)i * s.padded_dim + c, block[i]);
            }
}

// ---- what a row visits ----

struct Entry {
    Tile keys;
    const uint8_t* mask;  // nullptr: every query sees every key
    bool skip_globals;    // global keys come later, in tiles of their own
};

bool is_global_row(const Sequence& seq, int row) { return row >= seq.layout->queries.count; }
int row_count(const Sequence& seq) { return seq.layout->queries.count + global_tiles(seq); }

const int64_t* row_bounds(const Sequence& seq, int64_t head, int row) {
    return seq.layout->row_ptr + head * seq.layout->head_rows + row;
}

int64_t entry_count(const Sequence& seq, int64_t head, int row) {
    if (is_global_row(seq, row)) return seq.layout->keys.count;
    const int64_t* bounds = row_bounds(seq, head, row);
    return bounds[1] - bounds[0] + global_tiles(seq);
}

Tile query_tile(const Sequence& seq, int row) {
    const int count = seq.layout->queries.count;
    return row < count ? tile_of(seq.layout->queries, row) : global_tile(seq, row - count);
}

// Calls visit(entry, number of the key tile that comes after it, or -1).
template <class Visit>
void for_each_entry(const Sequence& seq, int64_t head, int row, const Visit& visit) {
    const Layout& layout = *seq.layout;
    if (is_global_row(seq, row)) {
        for (int t = 0; t < layout.keys.count; t++)
            visit(Entry{tile_of(layout.keys, t), nullptr, false}, t + 1 < layout.keys.count ? t + 1 : -1);
        return;
    }
    const int64_t* bounds = row_bounds(seq, head, row);
    for (int64_t e = bounds[0]; e < bounds[1]; e++) {
        const int64_t id = layout.mask_ids[e];
        const uint8_t* mask = id < 0 ? nullptr : layout.masks + id * layout.tile_size * layout.mask_bytes;
        visit(Entry{tile_of(layout.keys, layout.columns[e]), mask, !seq.globals.empty()},
              e + 1 < bounds[1] ? layout.columns[e + 1] : -1);
    }
    for (int t = 0; t < global_tiles(seq); t++) visit(Entry{global_tile(seq, t), nullptr, false}, -1);
}

// The largest distance at which a sequence can tell two numbers of the bias table apart.
int64_t bias_reach(const Problem& p, const Sequence& seq) {
    return std::min<int64_t>(p.bias_radius, seq.layout->keys.tokens());
}

// A row of queries and all that its scores depend on besides q and k.
struct Row {
    const Problem& p;
    const Sequence& seq;
    int64_t head;
    Tile queries;
    int groups;
    bool skips_globals;  // global tokens among these queries belong to rows of their own
    const float* table;  // relative bias of this head in units of log 2; points to that of distance 0
    uint32_t keep_from;  // dropout: keep numbers of at least this
    float keep_factor;   // and multiply what is kept by this

    Row(const Problem& p, const Sequence& seq, int64_t head, int row, const float* table)
        : p(p), seq(seq), head(head), queries(query_tile(seq, row)), groups((queries.count + G - 1) / G),
          skips_globals(!is_global_row(seq, row) && !seq.globals.empty()), table(table),
          keep_from((uint32_t)(p.dropout_p * 4294967296.0)), keep_factor((float)(1.0 / (1.0 - p.dropout_p))) {}

    int64_t unit() const { return seq.number * p.heads + head; }
    bool skips(int i) const { return skips_globals && seq.is_global[queries.token(i)]; }

    void start_dropout(Scratch& s) const {
        const uint32_t low = (uint32_t)p.dropout_seed, high = (uint32_t)(p.dropout_seed >> 32);
        const uint32_t stream = mix(low ^ mix(high ^ mix((uint32_t)unit())));
        for (int i = 0; i < groups * G; i++)
            s.dropout_row[i] = mix(stream ^ (uint32_t)(i < queries.count ? queries.token(i) : 0));
    }

    // The keys and values of the tile that comes after this one.
    Ahead ahead(const HeadView& k, const HeadView& v, int after, const Scratch& s) const {
        Ahead next;
        if (after < 0 || seq.layout->keys.order || !in_place(k, s) || !in_place(v, s)) return next;
        const Tile tile = tile_of(seq.layout->keys, after);
        next.add(k.floats(tile.first)), next.add(v.floats(tile.first));
        next.lines = tile.count * s.dim / 16;
        next.steps = groups * ((tile.count + ROWS - 1) / ROWS);
        return next;
    }

    // Is the bias of this entry a function of i - j alone?
    bool regular(const Tile& keys) const { return queries.step != 0 && queries.step == keys.step; }

    // Which number of the bias table belongs to a distance j - i, counted from the number of distance 0.
    int64_t bias_index(int64_t distance) const {
        const int64_t reach = bias_reach(p, seq);
        return std::clamp(distance, -reach, reach);
    }
    // In a regular entry, to i - j + tile - 1 = u.
    int64_t bias_index_of(int u, const Tile& keys, int tile) const {
        return bias_index(keys.token(0) - queries.token(0) - (int64_t)queries.step * (u - (tile - 1)));
    }

    void start_bias(const Tile& keys, Scratch& s) const {
        if (!regular(keys)) return;
        for (int u = 0; u < groups * G + s.tile - 1; u++) s.bias[u] = table[bias_index_of(u, keys, s.tile)];
    }
    const float* bias_line(const Tile& keys, int j, int g, Scratch& s) const {
        if (regular(keys)) return s.bias.get() + g * G - j + s.tile - 1;
        for (int i = 0; i < G; i++) {
            const int query = std::min(g * G + i, queries.count - 1);
            s.line[i] = table[bias_index((int64_t)keys.token(j) - queries.token(query))];
        }
        return s.line.get();
    }
};

uint32_t mask_bits(const uint8_t* mask, int mask_bytes, int j, int g) {
    const uint8_t* row = mask + (int64_t)j * mask_bytes;
    uint32_t bits = 0;
    for (int byte = g * G / 8; byte < std::min((g + 1) * G / 8, mask_bytes); byte++)
        bits |= (uint32_t)row[byte] << (8 * (byte - g * G / 8));
    return bits;
}

// For each group of queries, the keys from the first to the last that any of them sees, and the same for the whole row.
// Only these are computed: a band costs its keys, not its tiles.
struct Range {
    int begin, end;
    bool empty() const { return begin >= end; }
    int count() const { return end - begin; }
};

struct VisibleKeys {
    Range of_group[128 / G];
    Range all;
};

VisibleKeys visible_keys(const Entry& entry, int mask_bytes, int groups) {
    const int count = entry.keys.count;
    VisibleKeys visible;
    visible.all = entry.mask ? Range{count, 0} : Range{0, count};
    for (int g = 0; g < groups; g++) {
        Range& keys = visible.of_group[g] = {0, count};
        if (!entry.mask) continue;
        while (!keys.empty() && !mask_bits(entry.mask, mask_bytes, keys.begin, g)) keys.begin++;
        while (!keys.empty() && !mask_bits(entry.mask, mask_bytes, keys.end - 1, g)) keys.end--;
        if (keys.empty()) continue;
        visible.all = {std::min(visible.all.begin, keys.begin), std::max(visible.all.end, keys.end)};
    }
    return visible;
}

// Adds the bias to the scores of one group and masks what is no edge; `highest` is found anew.
void adjust_scores(const Row& row, const Entry& entry, Range keys, int g, float* scores, Scratch& s,
                   Vec (&highest)[2]) {
    const int mask_bytes = row.seq.layout->mask_bytes;
    highest[0] = highest[1] = splat(MASKED);
    for (int j = keys.begin; j < keys.end; j++) {
        Vec x[2] = {load(scores + j * G), load(scores + j * G + W)};
        if (row.table) {
            const float* bias = row.bias_line(entry.keys, j, g, s);
            for (int h = 0; h < 2; h++) x[h] += load(bias + h * W);
        }
        if (entry.skip_globals && row.seq.is_global[entry.keys.token(j)]) {
            x[0] = x[1] = splat(MASKED);
        } else if (entry.mask) {
            const uint32_t bits = mask_bits(entry.mask, mask_bytes, j, g);
            for (int h = 0; h < 2; h++) x[h] = lanes_of(bits >> (h * W)) ? x[h] : splat(MASKED);
        }
        for (int h = 0; h < 2; h++) {
            store(scores + j * G + h * W, x[h]);
            highest[h] = max(x[h], highest[h]);
        }
    }
}

// 1 / (1 - p) for the edges from W queries to one key that dropout keeps, 0 for the others.
Vec kept(const Row& row, const Scratch& s, int g, int h, int32_t key) {
    const UintVec number = mix(load(s.dropout_row.data() + g * G + h * W) + (uint32_t)key);
    const IntVec keep = number >= row.keep_from;
    return keep ? splat(row.keep_factor) : Vec{};
}

// ---- forward ----

template <bool Dropout>
void exponentiate(const Row& row, const Tile& keys, Range range, int g, float* scores, Scratch& s) {
    float* m = s.m.get() + g * G;
    float* l = s.l.get() + g * G;
    const Vec m0 = load(m), m1 = load(m + W);
    Vec l0 = {}, l1 = {};  // of this tile alone: sums of sums stay exact over long rows
    for (int j = range.begin; j < range.end; j++) {
        float* x = scores + j * G;
        Vec p0 = exp2(load(x) - m0), p1 = exp2(load(x + W) - m1);
        l0 += p0, l1 += p1;
        if constexpr (Dropout) {
            p0 *= kept(row, s, g, 0, keys.token(j));
            p1 *= kept(row, s, g, 1, keys.token(j));
        }
        store(x, p0), store(x + W, p1);
    }
    store(l, load(l) + l0), store(l + W, load(l + W) + l1);
}

// Raises the running maximum of a group and rescales its sums, if the new scores pass it by more than SLACK.
void raise_maximum(const Vec (&highest)[2], int g, Scratch& s) {
    float* m = s.m.get() + g * G;
    float* l = s.l.get() + g * G;
    if (!any((highest[0] > load(m) + SLACK) | (highest[1] > load(m + W) + SLACK))) return;
    float* out = s.out.get() + (int64_t)g * s.padded_dim * G;
    for (int h = 0; h < 2; h++) {
        const Vec old = load(m + h * W), raised = max(highest[h], old), shrink = exp2(old - raised);
        store(m + h * W, raised);
        store(l + h * W, load(l + h * W) * shrink);
        for (int c = 0; c < s.dim; c++) store(out + c * G + h * W, load(out + c * G + h * W) * shrink);
    }
}

template <int Dim>
void forward_row(const Row& row, int row_number, Scratch& s) {
    const Problem& p = row.p;
    const HeadView q = view(p.q, row.seq, row.head), k = view(p.k, row.seq, row.head);
    const HeadView v = view(p.v, row.seq, row.head), out = view(p.out, row.seq, row.head);
    const HeadView lse = view(p.lse, row.seq, row.head);
    const int64_t matrix = (int64_t)s.padded_dim * G, group_stride = (int64_t)s.tile * G;

    read_rows(q, row.queries, s, s.rows.get());
    to_lanes(s.rows.get(), row.groups, s, p.scale * LOG2E, s.q.get());
    std::fill_n(s.m.get(), row.groups * G, LOWEST);
    std::fill_n(s.l.get(), row.groups * G, 0.0f);
    std::fill_n(s.out.get(), row.groups * matrix, 0.0f);
    if (p.dropout_p > 0) row.start_dropout(s);

    for_each_entry(row.seq, row.head, row_number, [&](const Entry& entry, int after) {
        const auto [k_rows, v_rows] = key_rows(k, v, entry.keys, row.unit(), s);
        if (row.table) row.start_bias(entry.keys, s);
        const VisibleKeys visible = visible_keys(entry, row.seq.layout->mask_bytes, row.groups);
        Ahead ahead = row.ahead(k, v, after, s);
        // All groups do a product before the next one, so that k, and then v, stays in the first-level cache.
        for (int g = 0; g < row.groups; g++) {
            const Range keys = visible.of_group[g];
            if (keys.empty()) continue;
            float* x = s.s.get() + g * group_stride;
            Vec highest[2] = {splat(MASKED), splat(MASKED)};
            scores<Dim>(k_rows + (int64_t)keys.begin * s.dim, s.dim, keys.count(), s.q.get() + g * matrix,
                        x + keys.begin * G, highest, ahead);
            if (entry.mask || entry.skip_globals || row.table) adjust_scores(row, entry, keys, g, x, s, highest);
            raise_maximum(highest, g, s);
            if (p.dropout_p > 0)
                exponentiate<true>(row, entry.keys, keys, g, x, s);
            else
                exponentiate<false>(row, entry.keys, keys, g, x, s);
        }
        for (int g = 0; g < row.groups; g++) {
            const Range keys = visible.of_group[g];
            if (keys.empty()) continue;
            combine<Dim>(v_rows + (int64_t)keys.begin * s.dim, s.dim, keys.count(),
                         s.s.get() + g * group_stride + keys.begin * G, s.out.get() + g * matrix);
        }
    });

    for (int i = 0; i < row.groups * G; i++) {
        const float sum = s.l[i];
        if (i < row.queries.count && !row.skips(i))
            *lse.floats(row.queries.token(i)) = sum == 0 ? -INFINITY : (s.m[i] + std::log2(sum)) * LN2;
        s.l[i] = sum == 0 ? 0 : 1 / sum;
    }
    from_lanes(s.out.get(), row.groups, s, s.l.get(), s.rows.get());
    for (int i = 0; i < row.queries.count; i++)
        if (!row.skips(i)) write_row(out, row.queries.token(i), s.rows.get() + (int64_t)i * s.padded_dim, s.dim);
}

// ---- backward ----

// The sums of grad_k, grad_v and grad_bias of one unit of work: rows of padded_dim floats for every position and every
// global token. They are the gradients themselves where those have this form, which saves copying them.
struct Sums {
    float *k, *v;
    Floats own_k, own_v, global_k, global_v;
    std::vector<double> bias;  // [2 * reach + 1]

    void start(const Problem& p, const Sequence& seq, int64_t head, int padded_dim, bool in_place) {
        const int64_t tokens = (int64_t)seq.layout->keys.tokens() * padded_dim;
        const int64_t globals = (int64_t)seq.globals.size() * padded_dim;
        const HeadView grad_k = view(p.grad_k, seq, head), grad_v = view(p.grad_v, seq, head);
        const auto fits = [&](const HeadView& x) { return x.dtype == DType::f32 && x.token_stride == padded_dim; };
        if (in_place && p.head_dim == padded_dim && !seq.layout->keys.order && fits(grad_k) && fits(grad_v)) {
            k = grad_k.floats(0), v = grad_v.floats(0);
        } else {
            own_k = allocate(tokens), own_v = allocate(tokens);
            k = own_k.get(), v = own_v.get();
        }
        global_k = allocate(globals), global_v = allocate(globals);
        for (float* sums : {k, v}) std::memset(sums, 0, tokens * 4);
        for (float* sums : {global_k.get(), global_v.get()}) std::memset(sums, 0, globals * 4);
        bias.assign(p.bias ? 2 * bias_reach(p, seq) + 1 : 0, 0.0);
    }

    double& bias_at(int64_t index) { return bias[bias.size() / 2 + index]; }
    void free() { own_k.reset(), own_v.reset(), global_k.reset(), global_v.reset(); }  // all but the bias
};

template <bool Dropout>
void score_gradients(const Row& row, const Tile& keys, Range range, int g, float* scores, float* grads, Scratch& s) {
    const float scale = row.table ? 1.0f : row.p.scale;  // the bias needs them unscaled first
    const float* lse = s.l.get() + g * G;
    const float* delta = s.delta.get() + g * G;
    const Vec l[2] = {load(lse), load(lse + W)}, d[2] = {load(delta), load(delta + W)};
    for (int j = range.begin; j < range.end; j++)
        for (int h = 0; h < 2; h++) {
            float *x = scores + j * G + h * W, *dx = grads + j * G + h * W;
            const Vec p = exp2(load(x) - l[h]);
            Vec keep = splat(1.0f);
            if constexpr (Dropout) keep = kept(row, s, g, h, keys.token(j));
            store(x, p * keep);
            store(dx, p * (load(dx) * keep - d[h]) * scale);
        }
}

// Adds the gradient of the scores of one group to that of the bias, then scales it.
void bias_gradients(const Row& row, const Tile& keys, Range range, int g, float* grads, Scratch& s, Sums& sums) {
    for (int j = range.begin; j < range.end; j++) {
        float* dx = grads + j * G;
        if (row.regular(keys)) {
            float* to = s.bias_grad.get() + g * G - j + s.tile - 1;
            for (int h = 0; h < 2; h++) store(to + h * W, load(to + h * W) + load(dx + h * W));
        } else {
            const int count = std::min(G, row.queries.count - g * G);
            for (int i = 0; i < count; i++)
                sums.bias_at(row.bias_index((int64_t)keys.token(j) - row.queries.token(g * G + i))) += dx[i];
        }
        for (int h = 0; h < 2; h++) store(dx + h * W, load(dx + h * W) * row.p.scale);
    }
}

// Of the keys that the row computes, zeroes those that this group does not.
void zero_other_keys(float* scores, Range all, Range keys) {
    if (keys.empty()) keys = {all.end, all.end};
    std::fill(scores + all.begin * G, scores + keys.begin * G, 0.0f);
    std::fill(scores + keys.end * G, scores + all.end * G, 0.0f);
}

template <int Dim>
void backward_row(const Row& row, int row_number, Scratch& s, Sums& sums) {
    const Problem& p = row.p;
    const HeadView q = view(p.q, row.seq, row.head), k = view(p.k, row.seq, row.head);
    const HeadView v = view(p.v, row.seq, row.head), out = view(p.out, row.seq, row.head);
    const HeadView grad_out = view(p.grad_out, row.seq, row.head), lse = view(p.lse, row.seq, row.head);
    const HeadView grad_lse = view(p.grad_lse, row.seq, row.head), grad_q = view(p.grad_q, row.seq, row.head);
    const int64_t matrix = (int64_t)s.padded_dim * G, group_stride = (int64_t)s.tile * G;

    // delta = sum of grad_out * out - grad_lse, a query. Queries that are not ours or not there get probability 0.
    read_rows(q, row.queries, s, s.q_rows.get());
    read_rows(grad_out, row.queries, s, s.grad_rows.get());
    read_rows(out, row.queries, s, s.rows.get());
    for (int i = 0; i < row.groups * G; i++) {
        s.delta[i] = 0, s.l[i] = -MASKED;
        if (i >= row.queries.count) continue;
        float* grad = s.grad_rows.get() + (int64_t)i * s.padded_dim;
        if (row.skips(i)) {
            std::fill_n(grad, s.padded_dim, 0.0f);
            continue;
        }
        const int32_t token = row.queries.token(i);
        const float l = *lse.floats(token);
        if (l == -INFINITY) continue;
        float delta = 0;
        for (int c = 0; c < s.dim; c++) delta += grad[c] * s.rows[(int64_t)i * s.padded_dim + c];
        s.delta[i] = delta - (p.grad_lse.data ? *grad_lse.floats(token) : 0.0f);
        s.l[i] = l * LOG2E;
    }
    to_lanes(s.q_rows.get(), row.groups, s, p.scale * LOG2E, s.q.get());
    to_lanes(s.grad_rows.get(), row.groups, s, 1.0f, s.grad_out.get());
    std::fill_n(s.grad_q.get(), row.groups * matrix, 0.0f);
    if (p.dropout_p > 0) row.start_dropout(s);

    for_each_entry(row.seq, row.head, row_number, [&](const Entry& entry, int after) {
        const auto [k_rows, v_rows] = key_rows(k, v, entry.keys, row.unit(), s);
        if (row.table) {
            row.start_bias(entry.keys, s);
            std::fill_n(s.bias_grad.get(), row.groups * G + s.tile - 1, 0.0f);
        }
        const VisibleKeys visible = visible_keys(entry, row.seq.layout->mask_bytes, row.groups);
        const Range all = visible.all;
        if (all.empty()) return;
        Ahead ahead = row.ahead(k, v, after, s), none;
        if (ahead.count && s.dim == s.padded_dim) {
            const int64_t position = row.seq.layout->keys.starts[after];
            ahead.add(sums.k + position * s.padded_dim), ahead.add(sums.v + position * s.padded_dim);
        }
        for (int g = 0; g < row.groups; g++) {
            const Range keys = visible.of_group[g];
            float *x = s.s.get() + g * group_stride, *dx = s.t.get() + g * group_stride;
            zero_other_keys(x, all, keys), zero_other_keys(dx, all, keys);
            if (keys.empty()) continue;
            Vec highest[2] = {};
            scores<Dim>(k_rows + (int64_t)keys.begin * s.dim, s.dim, keys.count(), s.q.get() + g * matrix,
                        x + keys.begin * G, highest, ahead);
            if (entry.mask || entry.skip_globals || row.table) adjust_scores(row, entry, keys, g, x, s, highest);
        }
        for (int g = 0; g < row.groups; g++) {
            const Range keys = visible.of_group[g];
            if (keys.empty()) continue;
            float *x = s.s.get() + g * group_stride, *dx = s.t.get() + g * group_stride;
            Vec highest[2] = {};
            scores<Dim>(v_rows + (int64_t)keys.begin * s.dim, s.dim, keys.count(), s.grad_out.get() + g * matrix,
                        dx + keys.begin * G, highest, none);
            if (p.dropout_p > 0)
                score_gradients<true>(row, entry.keys, keys, g, x, dx, s);
            else
                score_gradients<false>(row, entry.keys, keys, g, x, dx, s);
            if (row.table) bias_gradients(row, entry.keys, keys, g, dx, s, sums);
        }
        for (int g = 0; g < row.groups; g++) {
            const Range keys = visible.of_group[g];
            if (keys.empty()) continue;
            combine<Dim>(k_rows + (int64_t)keys.begin * s.dim, s.dim, keys.count(),
                         s.t.get() + g * group_stride + keys.begin * G, s.grad_q.get() + g * matrix);
        }
        const int64_t to = (entry.keys.position + all.begin) * s.padded_dim;
        float* to_k = (entry.keys.is_global ? sums.global_k.get() : sums.k) + to;
        float* to_v = (entry.keys.is_global ? sums.global_v.get() : sums.v) + to;
        scatter<Dim>(s.s.get() + all.begin * G, group_stride, row.groups, all.count(), s.grad_rows.get(), s.padded_dim,
                     to_v);
        scatter<Dim>(s.t.get() + all.begin * G, group_stride, row.groups, all.count(), s.q_rows.get(), s.padded_dim,
                     to_k);
        if (row.table && row.regular(entry.keys))
            for (int u = 0; u < row.groups * G + s.tile - 1; u++)
                sums.bias_at(row.bias_index_of(u, entry.keys, s.tile)) += s.bias_grad[u];
    });

    std::fill_n(s.m.get(), row.groups * G, 1.0f);
    from_lanes(s.grad_q.get(), row.groups, s, s.m.get(), s.rows.get());
    for (int i = 0; i < row.queries.count; i++)
        if (!row.skips(i)) write_row(grad_q, row.queries.token(i), s.rows.get() + (int64_t)i * s.padded_dim, s.dim);
}

// Adds up the sums of the chunks of a head, in order, in those of the first, and writes grad_k and grad_v.
void write_sums(const Problem& p, const Sequence& seq, int64_t head, std::vector<Sums>& parts, int padded_dim) {
    const HeadView grad_k = view(p.grad_k, seq, head), grad_v = view(p.grad_v, seq, head);
    const Tiling& keys = seq.layout->keys;
    const auto token_at = [&](int64_t position) { return keys.order ? keys.order[position] : (int32_t)position; };
    const auto add = [](float* to, const float* from, int64_t count) {
        for (int64_t x = 0; x < count; x++) to[x] += from[x];
    };
    Sums& sum = parts[0];
    for (size_t part = 1; part < parts.size(); part++) {
        add(sum.k, parts[part].k, (int64_t)keys.tokens() * padded_dim);
        add(sum.v, parts[part].v, (int64_t)keys.tokens() * padded_dim);
        add(sum.global_k.get(), parts[part].global_k.get(), (int64_t)seq.globals.size() * padded_dim);
        add(sum.global_v.get(), parts[part].global_v.get(), (int64_t)seq.globals.size() * padded_dim);
    }
    for (int64_t position = 0; !seq.globals.empty() && position < keys.tokens(); position++) {
        const auto global = std::lower_bound(seq.globals.begin(), seq.globals.end(), token_at(position));
        if (global == seq.globals.end() || *global != token_at(position)) continue;
        const int64_t from = (global - seq.globals.begin()) * padded_dim;
        add(sum.k + position * padded_dim, sum.global_k.get() + from, p.head_dim);
        add(sum.v + position * padded_dim, sum.global_v.get() + from, p.head_dim);
    }
    for (int64_t position = 0; sum.own_k && position < keys.tokens(); position++) {
        write_row(grad_k, token_at(position), sum.k + position * padded_dim, (int)p.head_dim);
        write_row(grad_v, token_at(position), sum.v + position * padded_dim, (int)p.head_dim);
    }
    for (Sums& part : parts) part.free();
}

// ---- work and threads ----

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
