// The three matrix products of attention on one tile, as register tiles of R x 2W accumulators.
//
// Everything is laid out so that queries lie along the lanes: a group is G = 2W queries, and a group's matrices are
// [channel][G] (q, out, grad) or [key][G] (scores). Softmax then works down the keys, lane by lane, with no sum across
// lanes; and keys and values are only ever broadcast, one number at a time, straight from their rows in memory: they
// are never packed or transposed.
//
// R = 6 with 16 registers: 12 accumulators hide the latency of 8 fused multiply-adds in flight, at 8 loads for 12 of them.
#pragma once

#include "vec.h"

namespace {

constexpr int G = 2 * W;

#if LONGBIRD_LANES == 16
constexpr int ROWS = 12;  // 32 registers
#else
constexpr int ROWS = 6;
#endif

// Calls tile(first_row, integral_constant<R>) over `rows` rows, R = ROWS and then once with what is left.
template <int R>
struct Rows {
    static constexpr int value = R;
};
template <int R = ROWS - 1, class Tile>
inline void remaining_rows(int row, int left, const Tile& tile) {
    if constexpr (R > 0) {
        if (left == R) return tile(row, Rows<R>{});
        remaining_rows<R - 1>(row, left, tile);
    }
}
template <class Tile>
inline void for_row_tiles(int rows, const Tile& tile) {
    int row = 0;
    for (; row + ROWS <= rows; row += ROWS) tile(row, Rows<ROWS>{});
    remaining_rows(row, rows - row, tile);
}

// c[r][G] = sum over channels of a[r][channel] * b[channel][G]; `highest` keeps the largest of each lane.
// Scores = keys times queries; also grad_out times values.
template <int R, int Depth>
inline void scores_tile(const float* a, int64_t lda, const float* b, int depth, float* c, Vec (&highest)[2]) {
    Vec acc[R][2] = {};
    if constexpr (Depth > 0) depth = Depth;
#pragma GCC unroll 4
    for (int k = 0; k < depth; k++) {
        const Vec b0 = load(b + k * G), b1 = load(b + k * G + W);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const Vec x = splat(a[r * lda + k]);
            acc[r][0] += x * b0;
            acc[r][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) {
            store(c + r * G + h * W, acc[r][h]);
            highest[h] = max(acc[r][h], highest[h]);
        }
}

template <int Depth>
inline void scores(const float* a, int64_t lda, int rows, const float* b, int depth, float* c, Vec (&highest)[2]) {
    for_row_tiles(rows, [&](int row, auto r) {
        scores_tile<decltype(r)::value, Depth>(a + row * lda, lda, b, depth, c + row * G, highest);
    });
}

// c[r][G] += sum over keys of a[key][r] * b[key][G]. Output = probabilities times values; also grad_q.
template <int R>
inline void combine_tile(const float* a, int64_t lda, const float* b, int keys, float* c) {
    Vec acc[R][2];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) acc[r][h] = load(c + r * G + h * W);
#pragma GCC unroll 4
    for (int k = 0; k < keys; k++) {
        const Vec b0 = load(b + k * G), b1 = load(b + k * G + W);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const Vec x = splat(a[k * lda + r]);
            acc[r][0] += x * b0;
            acc[r][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) store(c + r * G + h * W, acc[r][h]);
}

inline void combine(const float* a, int64_t lda, int keys, const float* b, float* c, int channels) {
    for_row_tiles(channels,
                  [&](int row, auto r) { combine_tile<decltype(r)::value>(a + row, lda, b, keys, c + row * G); });
}

// c[r][channel] += sum over all queries of a[group][r][query] * b[query][channel]. grad_k and grad_v.
template <int R>
inline void scatter_tile(const float* a, int64_t group_stride, int groups, const float* b, int64_t ldb, float* c,
                         int64_t ldc) {
    Vec acc[R][2];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) acc[r][h] = load(c + r * ldc + h * W);
    for (int g = 0; g < groups; g++, a += group_stride)
#pragma GCC unroll 4
        for (int k = 0; k < G; k++, b += ldb) {
            const Vec b0 = load(b), b1 = load(b + W);
#pragma GCC unroll 16
            for (int r = 0; r < R; r++) {
                const Vec x = splat(a[r * G + k]);
                acc[r][0] += x * b0;
                acc[r][1] += x * b1;
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) store(c + r * ldc + h * W, acc[r][h]);
}

inline void scatter(const float* a, int64_t group_stride, int groups, int rows, const float* b, int64_t ldb, float* c,
                    int64_t ldc, int channels) {
    for (int channel = 0; channel < channels; channel += G)
        for_row_tiles(rows, [&](int row, auto r) {
            scatter_tile<decltype(r)::value>(a + row * G, group_stride, groups, b + channel, ldb,
                                             c + row * ldc + channel, ldc);
        });
}

}  // namespace
