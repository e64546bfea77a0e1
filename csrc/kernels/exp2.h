// The exponential of the softmax.
#pragma once

#include "vec.h"

namespace {

// 2^x for x <= 128, accurate to about one unit in the last place; exactly 0 for x <= -127. NaN stays NaN. Adding 1.5 *
// 2^23 rounds x to the nearest integer, a polynomial of degree 5 covers the rest in [-1/2, 1/2] (relative error 1.9e-7;
// its constant is exactly 1, so that the clamp gives exactly 0), and the integer is added to the exponent.
inline Vec exp2(Vec x) {
    const Vec magic = splat(12582912.0f);
    x = max(splat(-127.0f), x);
    const Vec shifted = x + magic;
    const Vec r = x - (shifted - magic);
    Vec p = splat(1.326472731e-3f);
    p = p * r + 9.671512991e-3f;
    p = p * r + 5.550733581e-2f;
    p = p * r + 2.402224243e-1f;
    p = p * r + 6.931470037e-1f;
    p = p * r + 1.0f;
    return (Vec)((IntVec)p + ((IntVec)shifted << 23));
}

}  // namespace
