// Runs the kernels of every instruction set on random problems and compares them with a loop in double precision.
// Built with the address and undefined-behaviour sanitizers by `make sanitize`. The 16-lane kernels are compiled there
// for the machine at hand (the compiler splits their vectors), so that they run without AVX-512 too.
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>

#include "../attention.h"

namespace longbird {
extern const Kernels kernels_baseline, kernels_avx512;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
#endif
}  // namespace longbird

using namespace longbird;

namespace {

std::mt19937 random_numbers(1);
int random_int(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_numbers); }
bool chance(double p) { return std::bernoulli_distribution(p)(random_numbers); }

std::vector<float> random_floats(size_t count) {
    std::vector<float> x(count);
    std::normal_distribution<float> normal;
    for (float& value : x) value = normal(random_numbers);
    return x;
}

uint32_t mix(uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// One sequence with a random layout; `counts` says how often query i sees key j in head h.
struct Case {
    int n, heads, dim, tile, radius;
    bool packed;
    float dropout;
    std::vector<int32_t> starts, order, columns, mask_ids, globals;
    std::vector<int64_t> row_ptr;
    std::vector<uint8_t> masks;
    std::vector<int> counts;
    Layout layout;
    std::vector<float> q, k, v, grad_out, grad_lse, bias;

    int& count(int h, int i, int j) { return counts[((size_t)h * n + i) * n + j]; }
    size_t at(int h, int token, int c) const {
        return packed ? ((size_t)token * heads + h) * dim + c : ((size_t)h * n + token) * dim + c;
    }

    Case() {
        n = random_int(1, 200), heads = random_int(1, 3), tile = random_int(1, 4) == 1 ? random_int(1, 128) : 16;
        const int dims[] = {1, 5, 16, 32, 40, 64, 80, 128, 256};
        dim = dims[random_int(0, 8)];
        packed = chance(0.5);
        dropout = chance(0.3) ? 0.25f : 0.0f;
        radius = chance(0.4) ? random_int(0, 20) : -1;
        counts.assign((size_t)heads * n * n, 0);
        if (chance(0.4)) {
            for (int i = 0; i < n; i++) order.push_back(i);
            std::shuffle(order.begin(), order.end(), random_numbers);
        }
        for (int start = 0; start < n; start += random_int(1, tile)) starts.push_back(start);
        starts.push_back(n);
        const int tiles = (int)starts.size() - 1, bytes = (tile + 7) / 8, pool = 5;
        for (int i = 0; i < pool * tile * bytes; i++)
            masks.push_back((uint8_t)(random_int(0, 255) & random_int(0, 255) & (chance(0.5) ? 255 : 0)));
        const bool multiset = chance(0.2);
        for (int h = 0; h < heads; h++) {
            row_ptr.push_back((int64_t)columns.size());
            for (int row = 0; row < tiles; row++) {
                for (int column = 0; column < tiles; column++)
                    for (int copies = chance(0.4) ? (multiset ? random_int(1, 3) : 1) : 0; copies > 0; copies--) {
                        const int mask = chance(0.5) ? -1 : random_int(0, pool - 1);
                        columns.push_back(column), mask_ids.push_back(mask);
                        add_edges(h, row, column, mask);
                    }
                row_ptr.push_back((int64_t)columns.size());
            }
        }
        if (!multiset && chance(0.4)) add_globals();
        layout.tile_size = tile;
        layout.queries = layout.keys =
            Tiling{tiles, starts.data(), order.empty() ? nullptr : order.data(), order.empty() ? 1 : 0};
        layout.head_rows = tiles + 1;
        layout.row_ptr = row_ptr.data(), layout.columns = columns.data(), layout.mask_ids = mask_ids.data();
        layout.masks = masks.data(), layout.mask_bytes = bytes;
        const size_t size = (size_t)heads * n * dim;
        q = random_floats(size), k = random_floats(size), v = random_floats(size), grad_out = random_floats(size);
        grad_lse = random_floats((size_t)heads * n);
        if (radius >= 0) bias = random_floats((size_t)heads * (2 * radius + 1));
    }

    int token(int position) const { return order.empty() ? position : order[position]; }

    void add_edges(int h, int row, int column, int mask) {
        const int bytes = (tile + 7) / 8;
        for (int i = starts[row]; i < starts[row + 1]; i++)
            for (int j = starts[column]; j < starts[column + 1]; j++) {
                const int query = i - starts[row], key = j - starts[column];
                if (mask >= 0 && !(masks[((size_t)mask * tile + key) * bytes + query / 8] >> (query % 8) & 1)) continue;
                count(h, token(i), token(j))++;
            }
    }

    void add_globals() {
        for (int t = 0; t < n; t++)
            if (chance(0.1)) globals.push_back(t);
        for (int32_t g : globals)
            for (int h = 0; h < heads; h++)
                for (int t = 0; t < n; t++) count(h, g, t) = count(h, t, g) = 1;
    }

    bool keeps(int h, int i, int j) const {
        const uint32_t seed_low = 12345, seed_high = 7;
        const uint32_t stream = mix(seed_low ^ mix(seed_high ^ mix((uint32_t)(3 * heads + h))));
        return mix(mix(stream ^ (uint32_t)i) + (uint32_t)j) >= (uint32_t)((double)dropout * 4294967296.0);
    }
};

struct Results {
    std::vector<float> out, lse, grad_q, grad_k, grad_v, grad_bias;
    explicit Results(const Case& c)
        : out(c.q.size()), lse((size_t)c.heads * c.n), grad_q(c.q.size()), grad_k(c.q.size()), grad_v(c.q.size()),
          grad_bias(c.bias.size()) {}
};

void run_kernels(const Kernels& kernels, const Case& c, int threads, Results& r) {
    const auto tensor = [&](const std::vector<float>& x, int64_t width) {
        const int64_t head = c.packed ? width : c.n * width, token = c.packed ? c.heads * width : width;
        return Tensor{const_cast<float*>(x.data()), DType::f32, 0, head, token};
    };
    Problem p;
    p.heads = c.heads, p.head_dim = c.dim, p.scale = 0.3f;
    p.q = tensor(c.q, c.dim), p.k = tensor(c.k, c.dim), p.v = tensor(c.v, c.dim), p.out = tensor(r.out, c.dim);
    p.lse = tensor(r.lse, 1), p.grad_out = tensor(c.grad_out, c.dim), p.grad_lse = tensor(c.grad_lse, 1);
    p.grad_q = tensor(r.grad_q, c.dim), p.grad_k = tensor(r.grad_k, c.dim), p.grad_v = tensor(r.grad_v, c.dim);
    if (c.radius >= 0) p.bias = c.bias.data(), p.bias_radius = c.radius, p.grad_bias = r.grad_bias.data();
    p.dropout_p = c.dropout, p.dropout_seed = (uint64_t)7 << 32 | 12345;
    Sequence seq;
    seq.layout = &c.layout, seq.number = 3, seq.globals = c.globals;
    if (!c.globals.empty()) {
        seq.is_global.assign(c.n, 0);
        for (int32_t g : c.globals) seq.is_global[g] = 1;
    }
    p.sequences.push_back(seq);
    const Runtime runtime{threads, [] { return false; }};
    kernels.forward(p, runtime);
    kernels.backward(p, runtime);
}

void run_loop(Case& c, Results& r) {
    const int width = 2 * c.radius + 1;
    const double scale = 0.3f;
    std::vector<double> grad_q(c.q.size()), grad_k(c.q.size()), grad_v(c.q.size()), grad_bias(c.bias.size());
    for (int h = 0; h < c.heads; h++)
        for (int i = 0; i < c.n; i++) {
            const size_t lse_at = c.packed ? (size_t)i * c.heads + h : (size_t)h * c.n + i;
            std::vector<double> weight(c.n), gradient(c.n);
            double sum = 0, highest = -INFINITY, delta = 0;
            const auto bias_at = [&](int j) {
                return h * width + std::min(std::max(j - i, -c.radius), c.radius) + c.radius;
            };
            for (int j = 0; j < c.n; j++) {
                if (!c.count(h, i, j)) continue;
                double s = 0;
                for (int d = 0; d < c.dim; d++) s += (double)c.q[c.at(h, i, d)] * c.k[c.at(h, j, d)];
                weight[j] = s * scale + (c.radius >= 0 ? c.bias[bias_at(j)] : 0.0f);
                highest = std::max(highest, weight[j]);
            }
            for (int j = 0; j < c.n; j++) {
                weight[j] = c.count(h, i, j) ? c.count(h, i, j) * std::exp(weight[j] - highest) : 0;
                sum += weight[j];
            }
            r.lse[lse_at] = sum == 0 ? -INFINITY : (float)(highest + std::log(sum));
            if (sum == 0) continue;
            for (int j = 0; j < c.n; j++) {
                weight[j] /= sum;
                const double keep = c.keeps(h, i, j) ? 1 / (1 - (double)c.dropout) : 0;
                for (int d = 0; d < c.dim; d++) {
                    const double g = c.grad_out[c.at(h, i, d)], value = c.v[c.at(h, j, d)];
                    r.out[c.at(h, i, d)] += (float)(weight[j] * keep * value);
                    grad_v[c.at(h, j, d)] += weight[j] * keep * g;
                    gradient[j] += keep * g * value;
                }
                delta += weight[j] * gradient[j];
            }
            for (int j = 0; j < c.n; j++) {
                const double ds = weight[j] * (gradient[j] - delta + c.grad_lse[lse_at]);
                if (c.radius >= 0) grad_bias[bias_at(j)] += ds;
                for (int d = 0; d < c.dim; d++) {
                    grad_q[c.at(h, i, d)] += scale * ds * c.k[c.at(h, j, d)];
                    grad_k[c.at(h, j, d)] += scale * ds * c.q[c.at(h, i, d)];
                }
            }
        }
    r.grad_q.assign(grad_q.begin(), grad_q.end()), r.grad_k.assign(grad_k.begin(), grad_k.end());
    r.grad_v.assign(grad_v.begin(), grad_v.end()), r.grad_bias.assign(grad_bias.begin(), grad_bias.end());
}

bool close(const char* what, const std::vector<float>& got, const std::vector<float>& expected) {
    float size = 1, error = 0;
    for (float x : expected)
        if (std::isfinite(x)) size = std::max(size, std::fabs(x));
    for (size_t i = 0; i < got.size(); i++)
        if (got[i] != expected[i]) error = std::max(error, std::fabs(got[i] - expected[i]));
    if (error <= 2e-5f * size) return true;
    std::printf("  %s is off by %g of %g\n", what, error, size);
    return false;
}

bool same(const Results& a, const Results& b) {
    return a.out == b.out && a.lse == b.lse && a.grad_q == b.grad_q && a.grad_k == b.grad_k && a.grad_v == b.grad_v &&
           a.grad_bias == b.grad_bias;
}

// gelu and its gradient over `count` floats, against the formula in double precision.
bool check_gelu(const Kernels& kernels, int count) {
    std::vector<float> x(count), grad(count), out(count), grad_x(count), expected(count), expected_grad(count);
    for (int i = 0; i < count; i++) x[i] = 8 * (i % 201 - 100) / 100.0f, grad[i] = 1 - i % 7 / 3.0f;
    kernels.gelu(x.data(), nullptr, out.data(), count, 3);
    kernels.gelu(x.data(), grad.data(), grad_x.data(), count, 3);
    for (int i = 0; i < count; i++) {
        const double a = std::sqrt(2 / std::acos(-1.0)), b = 0.044715, z = x[i], t = std::tanh(a * (z + b * z * z * z));
        expected[i] = (float)(0.5 * z * (1 + t));
        expected_grad[i] = (float)(grad[i] * (0.5 * (1 + t) + 0.5 * z * (1 - t * t) * a * (1 + 3 * b * z * z)));
    }
    return close("gelu", out, expected) & close("gradient of gelu", grad_x, expected_grad);
}

}  // namespace

int main(int argc, char** argv) {
    const int cases = argc > 1 ? std::atoi(argv[1]) : 40;
    std::vector<const Kernels*> all = {&kernels_baseline, &kernels_avx512};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) all.push_back(&kernels_avx2);
#endif
    int failed = 0;
    for (int number = 0; number < cases; number++) {
        Case c;
        Results expected(c);
        run_loop(c, expected);
        for (const Kernels* kernels : all) {
            Results got(c), threaded(c);
            run_kernels(*kernels, c, 1, got);
            run_kernels(*kernels, c, 3, threaded);
            bool ok = close("out", got.out, expected.out) & close("lse", got.lse, expected.lse) &
                      close("grad_q", got.grad_q, expected.grad_q) & close("grad_k", got.grad_k, expected.grad_k) &
                      close("grad_v", got.grad_v, expected.grad_v) &
                      close("grad_bias", got.grad_bias, expected.grad_bias);
            if (!same(got, threaded)) ok = false, std::printf("  results depend on the threads\n");
            if (ok) continue;
            failed++;
            std::printf("case %d failed on %s: n %d heads %d dim %d tile %d\n", number, kernels->name, c.n, c.heads,
                        c.dim, c.tile);
        }
    }
    const std::vector<int> lengths = {0, 1, 15, 16, 17, 16384, 50001};
    for (const Kernels* kernels : all)
        for (int count : lengths)
            if (!check_gelu(*kernels, count))
                failed++, std::printf("gelu failed on %s: %d floats\n", kernels->name, count);
    std::printf("%d passed, %d failed\n", ((int)lengths.size() + cases) * (int)all.size() - failed, failed);
    return failed != 0;
}
