// Transposition of square blocks in registers.
#include "../kernels/transpose.h"

#include "harness.h"

TEST(transpose_turns_rows_into_columns) {
    Vec block[W];
    float row[W];
    for (int i = 0; i < W; i++) {
        for (int j = 0; j < W; j++) row[j] = (float)(100 * i + j);
        block[i] = load(row);
    }
    transpose(block);
    for (int i = 0; i < W; i++) {
        store(row, block[i]);
        for (int j = 0; j < W; j++) CHECK(row[j] == (float)(100 * j + i));
    }
}

TEST(vectors_load_and_store_anywhere) {
    float from[3 * W], to[3 * W];
    for (int i = 0; i < 3 * W; i++) from[i] = (float)i;
    for (int offset = 0; offset < W; offset++) {
        store(to + W - offset, load(from + offset));
        for (int i = 0; i < W; i++) CHECK(to[W - offset + i] == (float)(offset + i));
    }
}

TEST(lanes_follow_their_bits) {
    for (uint32_t bits : {0u, 1u, 1u << (W - 1), 0xaaaau, 0xffffffffu}) {
        const IntVec lanes = lanes_of(bits);
        for (int i = 0; i < W; i++) CHECK(lanes[i] == ((bits >> i & 1) ? -1 : 0));
        CHECK(any(lanes) == ((bits << (32 - W)) != 0));
    }
}

TEST(max_takes_a_nan_on_the_right_alone) {
    const float nan = __builtin_nanf("");
    CHECK(max(splat(1), splat(2))[0] == 2 && max(splat(2), splat(1))[W - 1] == 2);
    CHECK(max(splat(nan), splat(2))[0] == 2);
    const float through = max(splat(2), splat(nan))[0];
    CHECK(through != through);
}
