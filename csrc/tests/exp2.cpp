// 2^x against the C library in double precision.
#include "../kernels/exp2.h"

#include <cmath>

#include "harness.h"

namespace {

// The same number in all lanes but one, on which the results must not depend.
float exp2_of(float x) {
    float in[W], out[W];
    for (int lane = 0; lane < W; lane++) in[lane] = lane == 1 ? x : 0.5f;
    store(out, exp2(load(in)));
    return out[1];
}

}  // namespace

TEST(exp2_is_right_to_two_units_in_the_last_place) {
    for (int i = 0; i <= 400000; i++) {
        const float x = -126 + 253.99f * (float)i / 400000;
        const double expected = std::exp2((double)x);
        CHECK(std::fabs(exp2_of(x) - expected) <= 2.4e-7 * expected);
    }
}

TEST(exp2_of_whole_numbers_is_exact) {
    for (int x = -126; x <= 127; x++) CHECK(exp2_of((float)x) == std::ldexp(1.0f, x));
}

TEST(exp2_ends_in_zero_and_infinity) {
    for (const float x : {-127.0f, -127.5f, -1000.0f, -3e38f, -INFINITY}) CHECK(exp2_of(x) == 0);
    for (float x = -127; x < -126; x += 1 / 1024.0f) CHECK(exp2_of(x) >= 0 && exp2_of(x) <= std::ldexp(1.0f, -126));
    CHECK(exp2_of(128) == INFINITY);
}

TEST(exp2_keeps_a_nan) { CHECK(std::isnan(exp2_of(NAN))); }
