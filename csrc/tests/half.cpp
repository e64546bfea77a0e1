// bf16 and fp16 against their definitions: every one of the 65,536 values, and rounding between all of them.
#include "../kernels/half.h"

#include <cmath>

#include "harness.h"

namespace {

struct Format {
    const char* name;
    int mantissa, bias;
    float (*from)(uint16_t);
    uint16_t (*to)(float);

    int exponent(uint16_t x) const { return (x & 0x7fff) >> mantissa; }
    int last_exponent() const { return 0x7fff >> mantissa; }
    uint16_t infinity() const { return (uint16_t)(last_exponent() << mantissa); }
    bool is_nan(uint16_t x) const { return (x & 0x7fff) > infinity(); }

    // The value of the bits.
    double value(uint16_t x) const {
        const int e = exponent(x), fraction = x & ((1 << mantissa) - 1);
        const double sign = x & 0x8000 ? -1 : 1;
        if (e == last_exponent()) return fraction ? NAN : sign * INFINITY;
        const int whole = e ? 1 << mantissa : 0;
        return sign * std::ldexp((double)(whole + fraction), std::max(e, 1) - bias - mantissa);
    }

    // The nearest value, with ties to even: the smallest pattern above the midpoint.
    uint16_t nearest(float x) const {
        if (std::isnan(x)) return (uint16_t)(infinity() + 1);
        const double magnitude = std::fabs((double)x);
        const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
        uint16_t low = 0, high = infinity();  // value(low) <= magnitude < value(high), or infinity
        if (std::isinf(x)) return sign | high;
        while (high - low > 1) {
            const uint16_t middle = (uint16_t)((low + high) / 2);
            (value(middle) <= magnitude ? low : high) = middle;
        }
        // Infinity takes the place of the next value.
        const double step = value(low) - value((uint16_t)(low - 1));
        const double above = high == infinity() ? value(low) + step : value(high);
        const double below = magnitude - value(low), rest = above - magnitude;
        return sign | (below < rest || (below == rest && low % 2 == 0) ? low : high);
    }
};

const Format formats[] = {{"bf16", 7, 127, from_bf16, to_bf16}, {"fp16", 10, 15, from_f16, to_f16}};

bool same_bits(float a, double b) {
    return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
}

void check_rounding(const Format& format, float x) {
    const uint16_t got = format.to(x), expected = format.nearest(x);
    if (got == expected || (format.is_nan(got) && format.is_nan(expected))) return;
    char text[100];
    std::snprintf(text, sizeof text, "%s of %.9g is %04x, expected %04x", format.name, x, got, expected);
    fail(__FILE__, __LINE__, text);
}

}  // namespace

TEST(halves_mean_what_their_bits_say) {
    for (const Format& format : formats)
        for (int x = 0; x < 65536; x++) CHECK(same_bits(format.from((uint16_t)x), format.value((uint16_t)x)));
}

TEST(halves_survive_the_way_to_float_and_back) {
    for (const Format& format : formats)
        for (int i = 0; i < 65536; i++) {
            const uint16_t x = (uint16_t)i, back = format.to(format.from(x));
            CHECK(format.is_nan(x) ? format.is_nan(back) && (back & 0x8000) == (x & 0x8000) : back == x);
        }
}

// The midpoint of every two neighbours, and the floats next to it.
TEST(halves_round_to_the_nearest_and_ties_to_even) {
    for (const Format& format : formats)
        for (uint16_t x = 0; x < format.infinity(); x++) {
            const double step = x ? format.value(x) - format.value((uint16_t)(x - 1)) : format.value(1);
            const bool last = x + 1 == format.infinity();
            const double above = last ? format.value(x) + step : format.value((uint16_t)(x + 1));
            const double middle = (format.value(x) + above) / 2;
            const float tie = (float)middle;
            CHECK((double)tie == middle);
            for (const float y : {std::nextafter(tie, 0.0f), tie, std::nextafter(tie, INFINITY)})
                check_rounding(format, y), check_rounding(format, -y);
        }
}

// Every 9,973rd float, including subnormal numbers, infinities and NaN.
TEST(halves_round_floats_of_all_sizes) {
    for (const Format& format : formats)
        for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 9973) {
            const uint32_t pattern = (uint32_t)bits;
            float x;
            std::memcpy(&x, &pattern, 4);
            check_rounding(format, x);
        }
}

TEST(halves_know_infinity_and_nan) {
    for (const Format& format : formats) {
        CHECK(format.to(INFINITY) == format.infinity() && format.to(-INFINITY) == (format.infinity() | 0x8000));
        CHECK(format.to(3.4e38f) == format.infinity() && format.to(-3.4e38f) == (format.infinity() | 0x8000));
        // A signalling NaN with only its last bit set, which truncation would turn into infinity.
        for (const uint32_t pattern : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu}) {
            float nan;
            std::memcpy(&nan, &pattern, 4);
            CHECK(format.is_nan(format.to(nan)));
        }
    }
}
