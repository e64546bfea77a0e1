// The three matrix products of attention on one tile, as register tiles of R x 2W accumulators.
//
// Queries lie along the lanes: a group is G = 2W queries, and the matrices of a group are [channel][G] (q, out, grad)
// or [key][G] (scores). Softmax then runs over the keys lane by lane, without sums across lanes, and keys and values
// are broadcast one number at a time directly from their rows in memory: they are never packed or transposed.
//
// With 16 registers, R = 4 rows: 8 accumulators are exactly what two units of latency 4 need, 64 keys or channels are
// 16 such tiles without a remainder, and with strides known at compile time the loop fits into the cache of decoded
// instructions. Measured on Zen 3 at depth 64: 93% of the peak. R = 6 (12 accumulators, fewer loads) reached 87%, R = 5
// 88%, and each of them 2 to 5% less with strides in registers.
#pragma once

#include "vec.h"

namespace {

constexpr int G = 2 * W;

#if LONGBIRD_LANES == 16 || defined(__aarch64__)
constexpr int ROWS = 8;  // 32 registers
#else
constexpr int ROWS = 4;
#endif

// Calls tile(first_row, Rows<R>) for `rows` rows, with R = ROWS and then once for the remainder.
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

// In all three, Dim is the number of channels, which is also the distance between rows, if it is known at compile time,
// and 0 otherwise. Sums over a tile start at 0 and are added to the output at the end, so that rounding errors grow
// with the number of tiles, not of keys.

// Prefetches the arrays that are needed next into the L2 cache, a few lines at every step of the current work.
// Otherwise, a tile elsewhere in memory costs a stall at each of its pages. Measured gain: 3% at 4,096 tokens and 4 to
// 8% at 65,536. Prefetching all lines of a group at once gained nothing at 4,096 tokens and 3% at 65,536.
struct Ahead {
    const float* arrays[4] = {};
    int count = 0, lines = 0;  // number of arrays, and of cache lines in each
    int steps = 0, step = 0;

    void add(const float* array) { arrays[count++] = array; }
    void fetch() {
        if (step == steps) return;
        const int from = lines * step / steps, to = lines * (step + 1) / steps;
        for (int array = 0; array < count; array++)
            for (int line = from; line < to; line++) __builtin_prefetch(arrays[array] + 16 * line, 0, 2);
        step++;
    }
};

// c[r][G] = sum over channels of a[r][channel] * b[channel][G]; `highest` is the running maximum of each lane.
// Computes scores (keys times queries), and grad_out times values.
template <int R, int Dim>
inline void scores_tile(const float* a, int64_t dim, const float* b, float* c, Vec (&highest)[2]) {
    if constexpr (Dim > 0) dim = Dim;
    Vec acc[R][2] = {};
#pragma GCC unroll 16
    for (int64_t k = 0; k < dim; k++) {
        const Vec b0 = load(b + k * G), b1 = load(b + k * G + W);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const Vec x = splat(a[r * dim + k]);
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

template <int Dim>
inline void scores(const float* a, int64_t dim, int rows, const float* b, float* c, Vec (&highest)[2], Ahead& ahead) {
    if constexpr (Dim > 0) dim = Dim;
    for_row_tiles(rows, [&](int row, auto r) {
        ahead.fetch();
        scores_tile<decltype(r)::value, Dim>(a + row * dim, dim, b, c + row * G, highest);
    });
}

// c[r][G] += sum over keys of a[key][r] * b[key][G]. Computes the output (probabilities times values), and grad_q.
template <int R, int Dim>
inline void combine_tile(const float* a, int64_t dim, const float* b, int keys, float* c) {
    if constexpr (Dim > 0) dim = Dim;
    Vec acc[R][2] = {};
#pragma GCC unroll 16
    for (int k = 0; k < keys; k++) {
        const Vec b0 = load(b + k * G), b1 = load(b + k * G + W);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const Vec x = splat(a[k * dim + r]);
            acc[r][0] += x * b0;
            acc[r][1] += x * b1;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) store(c + r * G + h * W, load(c + r * G + h * W) + acc[r][h]);
}

template <int Dim>
inline void combine(const float* a, int64_t dim, int keys, const float* b, float* c) {
    for_row_tiles((int)dim,
                  [&](int row, auto r) { combine_tile<decltype(r)::value, Dim>(a + row, dim, b, keys, c + row * G); });
}

// c[r][channel] += sum over all queries of a[group][r][query] * b[query][channel]. Computes grad_k and grad_v. Here dim
// is a multiple of G.
template <int R, int Dim>
inline void scatter_tile(const float* a, int64_t group_stride, int groups, const float* b, int64_t dim, float* c) {
    if constexpr (Dim > 0) dim = Dim;
    Vec acc[R][2] = {};
    for (int g = 0; g < groups; g++, a += group_stride, b += G * dim)
#pragma GCC unroll 16
        for (int k = 0; k < G; k++) {
            const Vec b0 = load(b + k * dim), b1 = load(b + k * dim + W);
#pragma GCC unroll 16
            for (int r = 0; r < R; r++) {
                const Vec x = splat(a[r * G + k]);
                acc[r][0] += x * b0;
                acc[r][1] += x * b1;
            }
        }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++)
        for (int h = 0; h < 2; h++) store(c + r * dim + h * W, load(c + r * dim + h * W) + acc[r][h]);
}

template <int Dim>
inline void scatter(const float* a, int64_t group_stride, int groups, int rows, const float* b, int64_t dim, float* c) {
    for (int channel = 0; channel < dim; channel += G)
        for_row_tiles(rows, [&](int row, auto r) {
            scatter_tile<decltype(r)::value, Dim>(a + row * G, group_stride, groups, b + channel, dim,
                                                  c + row * dim + channel);
        });
}

}  // namespace
