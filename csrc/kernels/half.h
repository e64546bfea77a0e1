// bf16 and fp16 are storage formats only: all arithmetic is in float. Conversions round to nearest, ties to even.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

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
    if (bits < 0x38800000) {                       // subnormal: the addition rounds, in units of 2^-24
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
