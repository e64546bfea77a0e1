// Whole forward and backward passes on random problems, against the definition in double precision.
#include "case.h"

namespace {

void check_passes(DType dtype, unsigned seed) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(seed + problem, dtype);
        const Expected expected(c);
        Results got(c);
        got.run(c, 1);
        const double tolerance = c.tolerance();
        CHECK_CLOSE(got.out.values(), expected.out, tolerance);
        CHECK_CLOSE(got.lse, expected.lse, tolerance);
        CHECK_CLOSE(got.grad_q.values(), expected.grad_q, tolerance);
        CHECK_CLOSE(got.grad_k.values(), expected.grad_k, tolerance);
        CHECK_CLOSE(got.grad_v.values(), expected.grad_v, tolerance);
        CHECK_CLOSE(got.grad_bias, expected.grad_bias, 10 * tolerance);  // sums over all queries, which may cancel
    }
}

}  // namespace

TEST(attention_in_float_equals_its_definition) { check_passes(DType::f32, 0); }
TEST(attention_in_bf16_equals_its_definition) { check_passes(DType::bf16, 1000); }
TEST(attention_in_fp16_equals_its_definition) { check_passes(DType::f16, 2000); }
