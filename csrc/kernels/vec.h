// Vectors of W floats, written with the compiler's vector extensions so that one source serves every instruction set.
//
// The including file defines W: 8 with AVX2, 16 with AVX-512, 4 otherwise. Everything is in an unnamed namespace,
// because the same functions exist once for each instruction set and the linker must not merge them.
#pragma once

#include <cstdint>

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
inline Vec splat(float x) { return x - Vec{}; }  // not x + 0, which compilers do not fold because it changes -0

// a > b ? a : b, which propagates a NaN in b. Compilers turn the plain expression into a compare and a blend.
inline Vec max(Vec a, Vec b) {
#if defined(__AVX512F__) && LONGBIRD_LANES == 16
    return (Vec)_mm512_mask_max_ps((__m512)a, 0xffff, (__m512)a,
                                   (__m512)b);  // GCC 12 warns about the unmasked intrinsic
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

// The W lowest bits of `bits` as a lane mask.
inline IntVec lanes_of(uint32_t bits) {
    IntVec bit;
    for (int i = 0; i < W; i++) bit[i] = 1 << i;
    return ((IntVec{} + (int32_t)bits) & bit) != 0;
}

}  // namespace
