// The tokens of a tile in memory, and conversion of one row of channels to floats and back.
#pragma once

#include <algorithm>

#include "../attention.h"
#include "half.h"

namespace {

using namespace longbird;

struct Tile {
    int count;
    int32_t first;          // the first token, if they are contiguous, or
    const int32_t* tokens;  // all tokens
    int32_t step;           // distance between neighbours, 0 if it varies
    int64_t position;       // of its sums in the backward pass
    int number;             // among the key tiles of its sequence, global ones last
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

// One head of one sequence of a tensor.
struct HeadView {
    char* base;
    DType dtype;
    int64_t token_stride;
    int width() const { return dtype == DType::f32 ? 4 : 2; }
    char* row(int64_t token) const { return base + token * token_stride * width(); }
    float* floats(int64_t token) const { return (float*)row(token); }
};

HeadView view(const Tensor& t, const Sequence& seq, int64_t head) {
    if (!t.data) return {nullptr, t.dtype, t.token_stride};
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

}  // namespace
