// The comparison that all other tests use; in particular, it detects NaN.
#include <cmath>

#include "harness.h"

TEST(equal_lists_are_close) {
    CHECK(largest_error({1, 2, -INFINITY}, {1, 2, -INFINITY}) == 0);
    CHECK(largest_error({1, NAN}, {1, NAN}) == 0);
    CHECK(largest_error({}, {}) == 0);
}

TEST(the_largest_difference_is_found) {
    CHECK(largest_error({1, 2, 3}, {1, 2.5, 3.25}) == 0.5);
    CHECK(is_close({100, 2}, {101, 2}, 0.01) && !is_close({100, 2}, {101, 2}, 0.009));
    CHECK(is_close({0, 0}, {0.25, 0}, 0.25) && !is_close({0, 0}, {0.25, 0}, 0.2));
}

TEST(a_nan_is_never_close_to_a_number) {
    for (const double tolerance : {0.0, 1.0, 1e30}) {
        CHECK(!is_close({1, NAN, 3}, {1, 2, 3}, tolerance));
        CHECK(!is_close({NAN, 2, 3}, {1, 2, 3}, tolerance));
        CHECK(!is_close({1, 2, NAN}, {1, 2, 3}, tolerance));
        CHECK(!is_close({1, 2, 3}, {1, NAN, 3}, tolerance));
        CHECK(!is_close({NAN}, {INFINITY}, tolerance));
    }
}

TEST(infinities_are_close_to_themselves_alone) {
    CHECK(!is_close({INFINITY, 0}, {1, 0}, 1e30));
    CHECK(!is_close({1, 0}, {INFINITY, 0}, 1e30));
    CHECK(!is_close({INFINITY}, {-INFINITY}, 1e30));
}

TEST(lists_of_different_lengths_are_not_close) {
    CHECK(!is_close({1}, {1, 1}, 1e30));
    CHECK(!is_close({1, 1}, {1}, 1e30));
}
