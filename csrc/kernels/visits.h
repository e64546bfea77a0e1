// What a row visits: the key tiles of its layout, then the global tokens; and which keys of a tile have an edge.
#pragma once

#include "products.h"
#include "tiles.h"

namespace {

using namespace longbird;

struct Entry {
    Tile keys;
    const uint8_t* mask;  // nullptr if every query sees every key
    bool skip_globals;    // global keys are visited later, in tiles of their own
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

// Calls visit(entry, number of the next key tile, or -1).
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

uint32_t mask_bits(const uint8_t* mask, int mask_bytes, int j, int g) {
    const uint8_t* row = mask + (int64_t)j * mask_bytes;
    uint32_t bits = 0;
    for (int byte = g * G / 8; byte < std::min((g + 1) * G / 8, mask_bytes); byte++)
        bits |= (uint32_t)row[byte] << (8 * (byte - g * G / 8));
    return bits;
}

// The range from the first to the last key that any query of a group sees, and the same for the whole row. Only these
// keys are computed, so that the cost of a band depends on its keys and not on its tiles.
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

}  // namespace
