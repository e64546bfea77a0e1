// Vectors of W floats through the compiler's vector extensions, so that one source serves every instruction set.
//
// W is fixed by the file that includes this (8 with AVX2, 16 with AVX-512, 4 otherwise). Everything is in an unnamed
// namespace: the same functions exist once for each instruction set and must not be merged by the linker.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef LONGBIRD_LANES
#error "define LONGBIRD_LANES before including vec.h"
#endif

namespace {

constexpr int W = LONGBIRD_LANES;

typedef float Vec __attribute__((vector_size(4 * W)));
typedef int32_t IntVec __attribute__((vector_size(4 * W)));
typedef uint32_t UintVec __attribute__((vector_size(4 * W)));
typedef float UnalignedVec __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef uint32_t UnalignedUintVec __attribute__((vector_size(4 * W), aligned(4), may_alias));

inline Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
inline UintVec load(const uint32_t* p) { return *reinterpret_cast<const UnalignedUintVec*>(p); }
inline void store(float* p, Vec x) { *reinterpret_cast<UnalignedVec*>(p) = x; }
inline Vec splat(float x) { return x - Vec{}; }  // x + 0 is not folded to x: it would lose the sign of -0

// a > b ? a : b, so that a NaN in b comes through. The plain expression makes a compare and a blend of it.
inline Vec max(Vec a, Vec b) {
#if defined(__AVX512F__) && LONGBIRD_LANES == 16
    return (Vec)_mm512_mask_max_ps((__m512)a, 0xffff, (__m512)a, (__m512)b);  // the plain one makes GCC 12 warn
#elif defined(__AVX__) && LONGBIRD_LANES == 8
    return (Vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE2__) && LONGBIRD_LANES == 4
    return (Vec)_mm_max_ps((__m128)a, (__m128)b);
#else
    return a > b ? a : b;
#endif
}

inline bool any(IntVec m) {
#if defined(__AVX__) && LONGBIRD_LANES == 8
    return _mm256_movemask_ps((__m256)m) != 0;
#else
    int32_t found = 0;
    for (int i = 0; i < W; i++) found |= m[i];
    return found != 0;
#endif
}

// 2^x for x <= 128, to about one unit in the last place; exactly 0 from -127 down. A NaN stays a NaN.
// Round to the nearest integer by adding 1.5 * 2^23, a polynomial of degree 5 on [-1/2, 1/2] (relative error 1.9e-7, its
// constant exactly 1 so that the clamp gives exactly 0), and the integer added to the exponent.
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

// The W lowest bits of `bits` as a lane mask.
inline IntVec lanes_of(uint32_t bits) {
    IntVec bit;
    for (int i = 0; i < W; i++) bit[i] = 1 << i;
    return ((IntVec{} + (int32_t)bits) & bit) != 0;
}

// The mixing function of the dropout generator (see ops/dropout.py, its specification).
inline uint32_t mix(uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}
inline UintVec mix(UintVec x) {
    x ^= x >> 16, x *= 0x7feb352du;
    x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

// Turns W rows of W floats, the W registers being the rows: log2(W) rounds, each of which interleaves two halves.
inline void transpose(Vec (&rows)[W]) {
    for (int round = 1; round < W; round *= 2) {
        Vec next[W];
        for (int i = 0; i < W / 2; i++) {
            const Vec a = rows[i], b = rows[i + W / 2];
#if LONGBIRD_LANES == 16
            next[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            next[2 * i + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif LONGBIRD_LANES == 8
            next[2 * i] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
            next[2 * i + 1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
            next[2 * i] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
            next[2 * i + 1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
        }
        for (int i = 0; i < W; i++) rows[i] = next[i];
    }
}

// ---- bf16 and fp16 storage; all arithmetic is in float ----

inline float from_bf16(uint16_t x) {
    const uint32_t bits = (uint32_t)x << 16;
    float f;
    std::memcpy(&f, &bits, 4);
    return f;
}

inline uint16_t to_bf16(float f) {
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if (f != f) return (uint16_t)((bits >> 16) | 0x40);  // keep a NaN a NaN
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float from_f16(uint16_t x) {
#if defined(__F16C__)
    return _cvtsh_ss(x);
#else
    const uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = (x >> 10) & 31, mantissa = x & 1023;
    float f;
    if (exponent == 0) {
        f = (float)mantissa * 5.9604644775390625e-8f;  // a subnormal counts units of 2^-24
        return sign ? -f : f;
    }
    const uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
    std::memcpy(&f, &bits, 4);
    return f;
#endif
}

inline uint16_t to_f16(float f) {
#if defined(__F16C__)
    return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
#else
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    const uint16_t sign = (uint16_t)((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00;
    if (bits >= 0x477ff000) return sign | 0x7c00;  // rounds to 65536 or more: infinity
    if (bits < 0x38800000) {                       // subnormal: let the addition round, in units of 2^-24
        float magnitude;
        std::memcpy(&magnitude, &bits, 4);
        magnitude += 0.5f;
        std::memcpy(&bits, &magnitude, 4);
        return sign | (uint16_t)(bits - 0x3f000000);
    }
    bits += 0xfff + ((bits >> 13) & 1) - (112u << 23);
    return sign | (uint16_t)(bits >> 13);
#endif
}

}  // namespace
