// The three products on one tile, against loops in double precision, for every number of rows in the last register tile,
// with channels known at compile time and not.
#include "../kernels/products.h"

#include <cmath>

#include "harness.h"

namespace {

constexpr double CLOSE = 2e-6;

// Calls body(dim, integral constant of Dim).
template <class Body>
void for_each_dim(const Body& body) {
    for (const int dim : {1, 5, 16, 40, 256}) body(dim, Rows<0>{});
    body(32, Rows<32>{}), body(64, Rows<64>{}), body(128, Rows<128>{});
}

// The channels of scatter are a multiple of G.
template <class Body>
void for_each_padded_dim(const Body& body) {
    for (const int dim : {G, 3 * G}) body(dim, Rows<0>{});
    if constexpr (32 % G == 0) body(32, Rows<32>{});
    body(64, Rows<64>{}), body(128, Rows<128>{});
}

}  // namespace

TEST(row_tiles_cover_every_row_once) {
    for (int rows = 0; rows <= 5 * ROWS; rows++) {
        int next = 0;
        for_row_tiles(rows, [&](int row, auto r) {
            CHECK(row == next && decltype(r)::value <= ROWS);
            next = row + decltype(r)::value;
        });
        CHECK(next == rows);
    }
}

TEST(scores_are_keys_times_queries) {
    Random random(1);
    for_each_dim([&](int dim, auto known) {
        for (int rows = 1; rows <= 2 * ROWS + 1; rows++) {
            const auto a = random.numbers((size_t)rows * dim), b = random.numbers((size_t)dim * G);
            std::vector<float> c(rows * G, NAN);
            std::vector<double> expected(rows * G, 0.0);
            for (int r = 0; r < rows; r++)
                for (int channel = 0; channel < dim; channel++)
                    for (int lane = 0; lane < G; lane++)
                        expected[r * G + lane] += (double)a[r * dim + channel] * b[channel * G + lane];
            const float low = 0.25f;  // previous maximum
            Vec highest[2] = {splat(low), splat(low)};
            Ahead none;
            scores<decltype(known)::value>(a.data(), dim, rows, b.data(), c.data(), highest, none);
            CHECK_CLOSE(c, expected, CLOSE);
            for (int lane = 0; lane < G; lane++) {
                float most = low;
                for (int r = 0; r < rows; r++) most = std::max(most, c[r * G + lane]);
                CHECK(highest[lane / W][lane % W] == most);
            }
        }
    });
}

TEST(scores_pass_a_nan_on_to_the_highest) {
    Random random(2);
    const auto a = random.numbers(3 * 64);
    auto b = random.numbers(64 * G);
    b[5 * G + 1] = NAN;
    std::vector<float> c(3 * G);
    Vec highest[2] = {splat(-INFINITY), splat(-INFINITY)};
    Ahead none;
    scores<64>(a.data(), 64, 3, b.data(), c.data(), highest, none);
    for (int lane = 0; lane < G; lane++) CHECK(std::isnan(c[2 * G + lane]) == (lane == 1));
}

TEST(combine_adds_values_times_probabilities) {
    Random random(3);
    for_each_dim([&](int dim, auto known) {
        for (const int keys : {1, 2, 7, 16, 33}) {
            const auto a = random.numbers((size_t)keys * dim), b = random.numbers((size_t)keys * G);
            auto c = random.numbers((size_t)dim * G);
            std::vector<double> expected(c.begin(), c.end());
            for (int key = 0; key < keys; key++)
                for (int channel = 0; channel < dim; channel++)
                    for (int lane = 0; lane < G; lane++)
                        expected[channel * G + lane] += (double)a[key * dim + channel] * b[key * G + lane];
            combine<decltype(known)::value>(a.data(), dim, keys, b.data(), c.data());
            CHECK_CLOSE(c, expected, CLOSE);
        }
    });
}

TEST(scatter_adds_over_all_queries) {
    Random random(4);
    for_each_padded_dim([&](int dim, auto known) {
        for (int rows = 1; rows <= 2 * ROWS + 1; rows++)
            for (const int groups : {1, 3}) {
                const int stride = (rows + 2) * G;
                const auto a = random.numbers((size_t)groups * stride), b = random.numbers((size_t)groups * G * dim);
                auto c = random.numbers((size_t)rows * dim);
                std::vector<double> expected(c.begin(), c.end());
                for (int g = 0; g < groups; g++)
                    for (int query = 0; query < G; query++)
                        for (int r = 0; r < rows; r++)
                            for (int channel = 0; channel < dim; channel++)
                                expected[r * dim + channel] +=
                                    (double)a[g * stride + r * G + query] * b[(size_t)(g * G + query) * dim + channel];
                scatter<decltype(known)::value>(a.data(), stride, groups, rows, b.data(), dim, c.data());
                CHECK_CLOSE(c, expected, CLOSE);
            }
    });
}

TEST(fetching_ahead_takes_every_step_and_then_stops) {
    const std::vector<float> array(16 * 10);
    Ahead ahead;
    ahead.add(array.data()), ahead.lines = 10, ahead.steps = 4;
    for (int i = 0; i < 7; i++) ahead.fetch();
    CHECK(ahead.step == 4);
    Ahead none;
    none.fetch();
    CHECK(none.step == 0);
}
