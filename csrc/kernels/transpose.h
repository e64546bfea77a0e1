// Transposition of square blocks of floats in registers.
#pragma once

#include "vec.h"

namespace {

// Transposes W rows of W floats in W registers, in log2(W) rounds that each interleave two halves.
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

}  // namespace
