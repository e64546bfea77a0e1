// gelu and its gradient, against the formula in double precision.
#include <cmath>

#include "harness.h"

TEST(gelu_equals_its_formula) {
    for (const int count : {0, 1, 15, 16, 17, 16384, 50001}) {
        std::vector<float> x(count), grad(count), out(count, NAN), grad_x(count, NAN);
        std::vector<double> expected(count), expected_grad(count);
        for (int i = 0; i < count; i++) x[i] = 8 * (i % 201 - 100) / 100.0f, grad[i] = 1 - i % 7 / 3.0f;
        kernels.gelu(x.data(), nullptr, out.data(), count, 3);
        kernels.gelu(x.data(), grad.data(), grad_x.data(), count, 3);
        for (int i = 0; i < count; i++) {
            const double a = std::sqrt(2 / std::acos(-1.0)), b = 0.044715, z = x[i];
            const double t = std::tanh(a * (z + b * z * z * z));
            expected[i] = 0.5 * z * (1 + t);
            expected_grad[i] = grad[i] * (0.5 * (1 + t) + 0.5 * z * (1 - t * t) * a * (1 + 3 * b * z * z));
        }
        CHECK_CLOSE(out, expected, 1e-6);
        CHECK_CLOSE(grad_x, expected_grad, 1e-6);
    }
}

TEST(gelu_of_what_is_not_finite) {
    const std::vector<float> x = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f};
    std::vector<float> out(5), grad_x(5);
    const std::vector<float> ones(5, 1.0f);
    kernels.gelu(x.data(), nullptr, out.data(), 5, 1);
    kernels.gelu(x.data(), ones.data(), grad_x.data(), 5, 1);
    CHECK(std::isnan(out[0]));
    CHECK(out[1] == INFINITY && out[3] == 1e30f && out[4] == 0);
    CHECK_CLOSE(grad_x, (std::vector<double>{NAN, 1, 0, 1, 0}), 1e-30);
}
