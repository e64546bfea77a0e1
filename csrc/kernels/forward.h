// One row of the forward pass: a streaming softmax over the key tiles, with a running maximum m and sum l for each
// query.
#pragma once

#include "exp2.h"
#include "row.h"

namespace {

using namespace longbird;

constexpr float SLACK =
    8.0f;  // scores may exceed the running maximum by this much (2^8 as a factor) before sums are rescaled

template <bool Dropout>
void exponentiate(const Row& row, const Tile& keys, Range range, int g, float* scores, Scratch& s) {
    float* m = s.m.get() + g * G;
    float* l = s.l.get() + g * G;
    const Vec m0 = load(m), m1 = load(m + W);
    Vec l0 = {}, l1 = {};  // sums of this tile only: adding sums of tiles limits rounding errors in long rows
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

// Raises the running maximum of a group and rescales its sums if the new scores exceed it by more than SLACK.
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
        // All groups compute the first product before any computes the second, so that k, then v, stays in the L1
        // cache.
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

    for (int i = 0; i < row.queries.count; i++) {
        if (row.skips(i)) continue;
        const float sum = s.l[i];
        *lse.floats(row.queries.token(i)) = sum == 0 ? -INFINITY : (s.m[i] + std::log2(sum)) * LN2;
    }
    for (int i = 0; i < row.groups * G; i += W) {
        const Vec sum = load(s.l.get() + i);
        store(s.l.get() + i, sum == 0.0f ? Vec{} : 1.0f / sum);
    }
    from_lanes(s.out.get(), row.groups, s, s.l.get(), s.rows.get());
    for (int i = 0; i < row.queries.count; i++)
        if (!row.skips(i)) write_row(out, row.queries.token(i), s.rows.get() + (int64_t)i * s.padded_dim, s.dim);
}

}  // namespace
