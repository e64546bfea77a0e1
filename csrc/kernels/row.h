// A row of queries, and what its scores depend on besides q and k: relative bias, masks, global tokens, dropout.
#pragma once

#include <cmath>

#include "scratch.h"
#include "visits.h"

namespace {

using namespace longbird;

constexpr float LOG2E = 1.44269504088896341f, LN2 = 0.69314718055994531f;
constexpr float MASKED = -INFINITY;  // the score of a pair without an edge
constexpr float LOWEST = -3e38f;     // the lowest score of an edge, and the initial maximum of a query

// The mixing function of the dropout generator (specified in core/operator/dropout.py).
inline uint32_t mix(uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
inline UintVec mix(UintVec x) {
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// The largest distance in a sequence that has an entry of its own in the bias table.
int64_t bias_reach(const Problem& p, const Sequence& seq) {
    return std::min<int64_t>(p.bias_radius, seq.layout->keys.tokens());
}

struct Row {
    const Problem& p;
    const Sequence& seq;
    int64_t head;
    Tile queries;
    int groups;
    bool skips_globals;  // global tokens among these queries are computed in rows of their own
    const float* table;  // relative bias of this head in units of log 2; points to distance 0
    uint32_t keep_from;  // dropout keeps random numbers of at least this
    float keep_factor;   // and multiplies what it keeps by this

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

    // What to prefetch: the keys and values of the next tile.
    Ahead ahead(const HeadView& k, const HeadView& v, int after, const Scratch& s) const {
        Ahead next;
        if (after < 0 || seq.layout->keys.order || !in_place(k, s.dim) || !in_place(v, s.dim)) return next;
        const Tile tile = tile_of(seq.layout->keys, after);
        next.add(k.floats(tile.first)), next.add(v.floats(tile.first));
        next.lines = tile.count * s.dim / 16;
        next.steps = groups * ((tile.count + ROWS - 1) / ROWS);
        return next;
    }

    // Does the bias of this entry depend on the difference of slots i - j alone?
    bool regular(const Tile& keys) const { return queries.step != 0 && queries.step == keys.step; }

    // Index into the bias table for a distance j - i, relative to distance 0.
    int64_t bias_index(int64_t distance) const {
        const int64_t reach = bias_reach(p, seq);
        return std::clamp(distance, -reach, reach);
    }
    // The same in a regular entry, for u = i - j + tile - 1.
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

// Adds the bias to the scores of one group, masks pairs without an edge, and recomputes `highest`.
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

// 1 / (1 - p) for the edges from W queries to one key that dropout keeps, and 0 for the others.
Vec kept(const Row& row, const Scratch& s, int g, int h, int32_t key) {
    const UintVec number = mix(load(s.dropout_row.get() + g * G + h * W) + (uint32_t)key);
    const IntVec keep = number >= row.keep_from;
    return keep ? splat(row.keep_factor) : Vec{};
}

}  // namespace
