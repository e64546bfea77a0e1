// One row of the backward pass. Probabilities are recomputed as exp(score - lse). The row computes its grad_q and adds
// to the sums of grad_k and grad_v.
#pragma once

#include "exp2.h"
#include "row.h"

namespace {

using namespace longbird;

// The sums of grad_k, grad_v and grad_bias of one work item: rows of padded_dim floats for every position and every
// global token. Where the gradients have this form, the sums are the gradients themselves, which saves a copy.
struct Sums {
    int64_t tokens, globals;  // floats
    float *k, *v;
    Floats own_k, own_v, global_k, global_v;
    double* bias;  // entry of distance 0 in a table by distance; not owned

    Sums() = default;
    Sums(const Problem& p, const Sequence& seq, int64_t head, int padded_dim, bool alone, double* bias, Memory& memory)
        : tokens((int64_t)seq.layout->keys.tokens() * padded_dim), globals((int64_t)seq.globals.size() * padded_dim),
          bias(bias) {
        const HeadView grad_k = view(p.grad_k, seq, head), grad_v = view(p.grad_v, seq, head);
        const bool as_they_are = alone && p.head_dim == padded_dim && !seq.layout->keys.order;
        if (as_they_are && in_place(grad_k, padded_dim) && in_place(grad_v, padded_dim)) {
            k = grad_k.floats(0), v = grad_v.floats(0);
        } else {
            own_k = memory.floats(tokens), own_v = memory.floats(tokens);
            k = own_k.get(), v = own_v.get();
        }
        global_k = memory.floats(globals), global_v = memory.floats(globals);
    }

    void clear() {
        for (float* sums : {k, v}) std::memset(sums, 0, tokens * 4);
        for (float* sums : {global_k.get(), global_v.get()}) std::memset(sums, 0, globals * 4);
    }
};

template <bool Dropout>
void score_gradients(const Row& row, const Tile& keys, Range range, int g, float* scores, float* grads, Scratch& s) {
    const float scale = row.table ? 1.0f : row.p.scale;  // the gradient of the bias needs them unscaled
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

// Adds the gradient of the scores of one group to the gradient of the bias, then scales it.
void bias_gradients(const Row& row, const Tile& keys, Range range, int g, float* grads, Scratch& s, Sums& sums) {
    for (int j = range.begin; j < range.end; j++) {
        float* dx = grads + j * G;
        if (row.regular(keys)) {
            float* to = s.bias_grad.get() + g * G - j + s.tile - 1;
            for (int h = 0; h < 2; h++) store(to + h * W, load(to + h * W) + load(dx + h * W));
        } else {
            const int count = std::min(G, row.queries.count - g * G);
            for (int i = 0; i < count; i++)
                sums.bias[row.bias_index((int64_t)keys.token(j) - row.queries.token(g * G + i))] += dx[i];
        }
        for (int h = 0; h < 2; h++) store(dx + h * W, load(dx + h * W) * row.p.scale);
    }
}

// Zeroes the scores of keys that other groups of the row compute and this group does not.
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

    // delta = sum of grad_out * out - grad_lse for each query. Queries that are skipped or do not exist get probability
    // 0.
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
                sums.bias[row.bias_index_of(u, entry.keys, s.tile)] += s.bias_grad[u];
    });

    std::fill_n(s.m.get(), row.groups * G, 1.0f);
    from_lanes(s.grad_q.get(), row.groups, s, s.m.get(), s.rows.get());
    for (int i = 0; i < row.queries.count; i++)
        if (!row.skips(i)) write_row(grad_q, row.queries.token(i), s.rows.get() + (int64_t)i * s.padded_dim, s.dim);
}

// Adds the sums of all chunks of a head, in order, to those of the first, writes grad_k and grad_v, and frees the sums.
void write_sums(const Problem& p, const Sequence& seq, int64_t head, std::vector<Sums>& parts, int padded_dim) {
    const HeadView grad_k = view(p.grad_k, seq, head), grad_v = view(p.grad_v, seq, head);
    const Tiling& keys = seq.layout->keys;
    const auto token_at = [&](int64_t position) { return keys.order ? keys.order[position] : (int32_t)position; };
    const auto add = [](float* to, const float* from, int64_t count) {
        for (int64_t x = 0; x < count; x++) to[x] += from[x];
    };
    Sums& sum = parts[0];
    for (size_t part = 1; part < parts.size(); part++) {
        add(sum.k, parts[part].k, sum.tokens);
        add(sum.v, parts[part].v, sum.tokens);
        add(sum.global_k.get(), parts[part].global_k.get(), sum.globals);
        add(sum.global_v.get(), parts[part].global_v.get(), sum.globals);
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
    for (Sums& part : parts) part = Sums();
}

}  // namespace
