// The scratch memory of one thread, and copying tiles into it.
#pragma once

#include "memory.h"
#include "products.h"
#include "tiles.h"
#include "transpose.h"

namespace {

using namespace longbird;

constexpr int SLOTS = 1024;  // key tiles of which a thread may keep copies

int round_up(int64_t x, int64_t to) { return (int)((x + to - 1) / to * to); }

// Contiguous rows of `dim` floats need no copy.
template <class View>
bool in_place(const View& x, int dim) {
    return x.dtype == DType::f32 && x.token_stride == dim;
}

// Number of key tiles of a sequence that need a copy. Global tokens are never contiguous.
int copied_tiles(const Problem& p, const Sequence& seq) {
    const int dim = (int)p.head_dim;
    const bool as_they_are = !seq.layout->keys.order && in_place(p.k, dim) && in_place(p.v, dim);
    return (as_they_are ? 0 : seq.layout->keys.count) + global_tiles(seq);
}

struct Scratch {
    int dim, padded_dim;              // channels, and the same rounded up to a multiple of G
    int tile = 1, groups;             // maximum tokens of a tile, and groups of G queries in it
    int slot_count = 0;               // copies of key tiles, see key_rows
    int64_t slots_head = -1;          // the head whose tiles they are
    Array<int32_t> slots;             // number of the tile in each slot
    Floats k, v;                      // [slot][key][dim]
    Floats q, out, grad_out, grad_q;  // [group][channel][G]
    Floats s, t;                      // [group][key][G]: scores, then probabilities; and their gradients
    Floats rows, q_rows, grad_rows;   // [query][padded_dim]
    Floats bias, bias_grad, line;     // relative bias by i - j, its gradient, and that of one key
    Floats m, l, delta;               // [query]
    Array<uint32_t> dropout_row;      // [query]

    Scratch(const Problem& p, bool backward, Memory& memory) : dim((int)p.head_dim), padded_dim(round_up(dim, G)) {
        for (const Sequence& seq : p.sequences) {
            tile = std::max<int>(tile, seq.layout->tile_size);
            slot_count = std::max(slot_count, std::min(copied_tiles(p, seq), SLOTS));
        }
        groups = round_up(tile, G) / G;
        const int64_t lanes = groups * G, matrix = lanes * padded_dim, square = lanes * tile;
        const int64_t copies = (int64_t)slot_count * tile * dim;
        q = memory.floats(matrix), out = memory.floats(matrix), rows = memory.floats(matrix);
        s = memory.floats(square);
        slots = memory.array<int32_t>(slot_count), k = memory.floats(copies), v = memory.floats(copies);
        bias = memory.floats(2 * lanes + tile), line = memory.floats(lanes);
        m = memory.floats(lanes), l = memory.floats(lanes);
        dropout_row = memory.array<uint32_t>(lanes);
        if (!backward) return;
        grad_out = memory.floats(matrix), grad_q = memory.floats(matrix);
        q_rows = memory.floats(matrix), grad_rows = memory.floats(matrix);
        t = memory.floats(square);
        bias_grad = memory.floats(2 * lanes + tile), delta = memory.floats(lanes);
    }
};

// Copies the rows of a tile as [query][padded_dim] floats, with zeros in the rest of the last group.
void read_rows(const HeadView& from, const Tile& tile, const Scratch& s, float* to) {
    for (int i = 0; i < tile.count; i++, to += s.padded_dim) {
        read_row(from, tile.token(i), to, s.dim);
        for (int c = s.dim; c < s.padded_dim; c++) to[c] = 0;
    }
    const int rest = round_up(tile.count, G) - tile.count;
    std::memset(to, 0, (size_t)rest * s.padded_dim * 4);
}

// Keys and values as contiguous rows of `dim` floats: in place if they already have this form, else copied to a slot
// where the next rows of queries find them. With interleaved heads, as in models, copying at every visit cost 12% of
// the forward pass. Reading them in place cost the same, because such strides share few cache sets.
struct KeyRows {
    const float *k, *v;
};

KeyRows key_rows(const HeadView& k, const HeadView& v, const Tile& tile, int64_t head, Scratch& s) {
    if (!tile.tokens && in_place(k, s.dim) && in_place(v, s.dim)) return {k.floats(tile.first), v.floats(tile.first)};
    if (s.slots_head != head) {
        std::fill_n(s.slots.get(), s.slot_count, -1);
        s.slots_head = head;
    }
    const int slot = tile.number % s.slot_count;
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

// Transposes rows [query][padded_dim], times a factor, to lanes [group][channel][G].
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

// Transposes lanes back to rows, with a factor for each query.
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

}  // namespace
