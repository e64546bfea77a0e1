// A random problem: sequences over a random layout, in all storage formats, and the result in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>

#include "../kernels/half.h"
#include "harness.h"

namespace {

using namespace longbird;

// An independent version of the mixing function of dropout.
uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

// Numbers in float, bf16 or fp16.
struct Numbers {
    DType dtype = DType::f32;
    std::vector<float> floats;
    std::vector<uint16_t> halves;

    Numbers() = default;
    Numbers(DType dtype, const std::vector<float>& values) : dtype(dtype) {
        if (dtype == DType::f32)
            floats = values;
        else
            for (float x : values) halves.push_back(dtype == DType::bf16 ? to_bf16(x) : to_f16(x));
    }
    void* data() const {
        return dtype == DType::f32 ? (void*)const_cast<float*>(floats.data())
                                   : (void*)const_cast<uint16_t*>(halves.data());
    }
    std::vector<float> values() const {
        std::vector<float> x = floats;
        for (uint16_t h : halves) x.push_back(dtype == DType::bf16 ? from_bf16(h) : from_f16(h));
        return x;
    }
};

struct Case {
    Random random;
    int batch, n, heads, dim, tile, radius;
    bool interleaved;  // interleaved heads, as in models
    DType dtype;
    float dropout, scale;
    std::vector<int32_t> starts, order, columns, mask_ids, globals;
    std::vector<int64_t> row_ptr;
    std::vector<uint8_t> masks;
    std::vector<int> counts;  // number of edges from query i to key j in head h
    Layout layout;
    Numbers q, k, v, grad_out;
    std::vector<float> grad_lse, bias;

    int count(int h, int i, int j) const { return counts[((size_t)h * n + i) * n + j]; }
    int& count(int h, int i, int j) { return counts[((size_t)h * n + i) * n + j]; }
    size_t size() const { return (size_t)batch * heads * n * dim; }
    size_t at(int b, int h, int token, int c) const { return row(b, h, token) * dim + c; }
    size_t row(int b, int h, int token) const {
        return (size_t)b * heads * n + (interleaved ? (size_t)token * heads + h : (size_t)h * n + token);
    }
    int number(int b) const { return b + 3; }
    uint64_t seed() const { return (uint64_t)7 << 32 | 12345; }
    double tolerance() const { return dtype == DType::f32 ? (scale > 1 ? 5e-4 : 2e-5) : 2e-2; }

    explicit Case(unsigned number, DType dtype = DType::f32) : random(number), dtype(dtype) {
        batch = random.chance(0.3) ? 2 : 1, n = random.integer(1, 150), heads = random.integer(1, 3);
        tile = random.integer(1, 4) == 1 ? random.integer(1, 128) : 16;
        const int dims[] = {1, 5, 16, 32, 40, 64, 80, 128, 256};
        dim = dims[random.integer(0, 8)];
        interleaved = random.chance(0.5);
        dropout = random.chance(0.3) ? 0.25f : 0.0f;
        scale = random.chance(0.2) ? 3.0f : 0.3f;  // with 3 the running maximum increases often
        radius = random.chance(0.4) ? random.integer(0, 20) : -1;
        counts.assign((size_t)heads * n * n, 0);
        // Tokens in order, in random order, or sorted by residue as for dilated windows.
        const int ways = random.integer(0, 3), step = ways == 1 ? 0 : ways == 2 ? random.integer(2, 5) : 1;
        for (int residue = 0; ways && residue < std::max(step, 1); residue++)
            for (int i = residue; i < n; i += std::max(step, 1)) order.push_back(i);
        for (int i = n - 1; ways == 1 && i > 0; i--) std::swap(order[i], order[random.integer(0, i)]);
        for (int start = 0, end; start < n; start = end) {
            starts.push_back(start);
            end = std::min(start + random.integer(1, tile), n);
            for (int i = start + 1; step > 1 && i < end; i++)
                if (order[i] != order[i - 1] + step) end = i;
        }
        starts.push_back(n);
        const int tiles = (int)starts.size() - 1, bytes = (tile + 7) / 8, pool = 5;
        for (int i = 0; i < pool * tile * bytes; i++)
            masks.push_back(
                (uint8_t)(random.integer(0, 255) & random.integer(0, 255) & (random.chance(0.5) ? 255 : 0)));
        const bool multiset = random.chance(0.2);
        for (int h = 0; h < heads; h++) {
            row_ptr.push_back((int64_t)columns.size());
            for (int row = 0; row < tiles; row++) {
                for (int column = 0; column < tiles; column++)
                    for (int copies = random.chance(0.4) ? (multiset ? random.integer(1, 3) : 1) : 0; copies;
                         copies--) {
                        const int mask = random.chance(0.5) ? -1 : random.integer(0, pool - 1);
                        columns.push_back(column), mask_ids.push_back(mask);
                        add_edges(h, row, column, mask);
                    }
                row_ptr.push_back((int64_t)columns.size());
            }
        }
        if (!multiset && random.chance(0.4)) add_globals();
        layout.tile_size = tile;
        layout.queries = layout.keys = Tiling{tiles, starts.data(), order.empty() ? nullptr : order.data(), step};
        layout.head_rows = tiles + 1;
        layout.row_ptr = row_ptr.data(), layout.columns = columns.data(), layout.mask_ids = mask_ids.data();
        layout.masks = masks.data(), layout.mask_bytes = bytes;
        for (Numbers* x : {&q, &k, &v, &grad_out}) *x = Numbers(dtype, random.numbers(size()));
        grad_lse = random.numbers((size_t)batch * heads * n);
        if (radius >= 0) bias = random.numbers((size_t)heads * (2 * radius + 1));
    }
    Case(const Case&) = delete;  // the layout points into it

    int token(int position) const { return order.empty() ? position : order[position]; }

    bool in_mask(int mask, int query, int key) const {
        const int bytes = (tile + 7) / 8;
        return mask < 0 || masks[((size_t)mask * tile + key) * bytes + query / 8] >> (query % 8) & 1;
    }

    void add_edges(int h, int row, int column, int mask) {
        for (int i = starts[row]; i < starts[row + 1]; i++)
            for (int j = starts[column]; j < starts[column + 1]; j++)
                if (in_mask(mask, i - starts[row], j - starts[column])) count(h, token(i), token(j))++;
    }

    void add_globals() {
        for (int t = 0; t < n; t++)
            if (random.chance(0.1)) globals.push_back(t);
        for (int32_t g : globals)
            for (int h = 0; h < heads; h++)
                for (int t = 0; t < n; t++) count(h, g, t) = count(h, t, g) = 1;
    }

    bool is_global(int token) const { return std::find(globals.begin(), globals.end(), token) != globals.end(); }

    // The factor of an edge by dropout.
    double keep(int b, int h, int i, int j) const {
        const uint32_t stream =
            mixed((uint32_t)seed() ^ mixed((uint32_t)(seed() >> 32) ^ mixed((uint32_t)(number(b) * heads + h))));
        const bool kept = mixed(mixed(stream ^ (uint32_t)i) + (uint32_t)j) >= (uint32_t)(dropout * 4294967296.0);
        return kept ? 1 / (1 - (double)dropout) : 0;
    }

    double bias_of(int h, int i, int j) const { return radius < 0 ? 0 : bias[bias_at(h, i, j)]; }
    int bias_at(int h, int i, int j) const {
        return h * (2 * radius + 1) + std::clamp(j - i, -radius, radius) + radius;
    }

    Tensor tensor(const Numbers& x, int width) const {
        const int64_t head = interleaved ? width : n * width, token = interleaved ? heads * width : width;
        return Tensor{x.data(), x.dtype, (int64_t)heads * n * width, head, token};
    }
    Tensor tensor(const std::vector<float>& x, int width) const {
        Tensor t = tensor(Numbers(), width);
        t.data = const_cast<float*>(x.data());
        return t;
    }

    // Only the inputs.
    Problem problem() const {
        Problem p;
        p.heads = heads, p.head_dim = dim, p.scale = scale;
        p.q = tensor(q, dim), p.k = tensor(k, dim), p.v = tensor(v, dim);
        p.grad_out = tensor(grad_out, dim), p.grad_lse = tensor(grad_lse, 1);
        if (radius >= 0) p.bias = bias.data(), p.bias_radius = radius;
        p.dropout_p = dropout, p.dropout_seed = seed();
        for (int b = 0; b < batch; b++) {
            Sequence seq;
            seq.layout = &layout, seq.batch = b, seq.number = number(b), seq.globals = globals;
            if (!globals.empty()) seq.is_global.assign(n, 0);
            for (int32_t g : globals) seq.is_global[g] = 1;
            p.sequences.push_back(seq);
        }
        return p;
    }
};

// The outputs of the kernels, initialised with NaN to detect numbers that are not written.
struct Results {
    Numbers out, grad_q, grad_k, grad_v;
    std::vector<float> lse, grad_bias;

    explicit Results(const Case& c) : lse((size_t)c.batch * c.heads * c.n, NAN), grad_bias(c.bias.size(), NAN) {
        for (Numbers* x : {&out, &grad_q, &grad_k, &grad_v}) *x = Numbers(c.dtype, std::vector<float>(c.size(), NAN));
    }
    Problem problem(const Case& c) {
        Problem p = c.problem();
        p.out = c.tensor(out, c.dim), p.lse = c.tensor(lse, 1);
        p.grad_q = c.tensor(grad_q, c.dim), p.grad_k = c.tensor(grad_k, c.dim), p.grad_v = c.tensor(grad_v, c.dim);
        p.grad_bias = grad_bias.data();
        return p;
    }
    void run(const Case& c, int threads, bool backward = true) {
        const Problem p = problem(c);
        const Runtime runtime{threads, [] { return false; }};
        CHECK(kernels.forward(p, runtime));
        if (backward) CHECK(kernels.backward(p, runtime));
    }
};

// The result by definition.
struct Expected {
    std::vector<double> out, lse, grad_q, grad_k, grad_v, grad_bias;

    explicit Expected(const Case& c)
        : out(c.size()), lse((size_t)c.batch * c.heads * c.n), grad_q(c.size()), grad_k(c.size()), grad_v(c.size()),
          grad_bias(c.bias.size()) {
        const std::vector<float> q = c.q.values(), k = c.k.values(), v = c.v.values(), grads = c.grad_out.values();
        const double scale = c.scale;
        for (int b = 0; b < c.batch; b++)
            for (int h = 0; h < c.heads; h++)
                for (int i = 0; i < c.n; i++) {
                    std::vector<double> weight(c.n), gradient(c.n);
                    double sum = 0, highest = -INFINITY, delta = 0;
                    for (int j = 0; j < c.n; j++) {
                        if (!c.count(h, i, j)) continue;
                        double s = 0;
                        for (int d = 0; d < c.dim; d++) s += (double)q[c.at(b, h, i, d)] * k[c.at(b, h, j, d)];
                        weight[j] = s * scale + c.bias_of(h, i, j);
                        highest = std::max(highest, weight[j]);
                    }
                    for (int j = 0; j < c.n; j++) {
                        weight[j] = c.count(h, i, j) ? c.count(h, i, j) * std::exp(weight[j] - highest) : 0;
                        sum += weight[j];
                    }
                    lse[c.row(b, h, i)] = sum == 0 ? -INFINITY : highest + std::log(sum);
                    if (sum == 0) continue;
                    for (int j = 0; j < c.n; j++) {
                        if (!c.count(h, i, j)) continue;
                        weight[j] /= sum;
                        const double keep = c.keep(b, h, i, j);
                        for (int d = 0; d < c.dim; d++) {
                            const double g = grads[c.at(b, h, i, d)], value = v[c.at(b, h, j, d)];
                            out[c.at(b, h, i, d)] += weight[j] * keep * value;
                            grad_v[c.at(b, h, j, d)] += weight[j] * keep * g;
                            gradient[j] += keep * g * value;
                        }
                        delta += weight[j] * gradient[j];
                    }
                    for (int j = 0; j < c.n; j++) {
                        const double ds = weight[j] * (gradient[j] - delta + c.grad_lse[c.row(b, h, i)]);
                        if (c.radius >= 0) grad_bias[c.bias_at(h, i, j)] += ds;
                        for (int d = 0; d < c.dim; d++) {
                            grad_q[c.at(b, h, i, d)] += scale * ds * k[c.at(b, h, j, d)];
                            grad_k[c.at(b, h, j, d)] += scale * ds * q[c.at(b, h, i, d)];
                        }
                    }
                }
    }
};

}  // namespace
