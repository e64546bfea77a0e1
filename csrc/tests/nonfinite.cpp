// NaN and infinity in q and k affect the queries that see them, and no others.
//
// (This does not hold for v: a query that does not see a value still multiplies it by a weight of 0 if another query of
// its tile sees it.)
#include "case.h"

namespace {

// Sets one number of q or k to `value`, and compares the unaffected queries with those of a run without it.
void check_containment(Numbers Case::* where, float value, bool is_key) {
    for (int problem = 0; problem < random_problems(); problem++) {
        Case c(3000 + problem);
        Results clean(c), dirty(c);
        clean.run(c, 1, false);
        const int b = c.batch - 1, h = c.random.integer(0, c.heads - 1), token = c.random.integer(0, c.n - 1);
        (c.*where).floats[c.at(b, h, token, c.dim / 2)] = value;
        dirty.run(c, 1, false);
        std::vector<float> other_outs, other_lses;
        std::vector<double> expected_outs, expected_lses;
        for (int s = 0; s < c.batch; s++)
            for (int head = 0; head < c.heads; head++)
                for (int i = 0; i < c.n; i++) {
                    const bool has_edges = clean.lse[c.row(s, head, i)] != -INFINITY;
                    const bool concerned = s == b && head == h && (is_key ? c.count(h, i, token) > 0 : i == token);
                    if (concerned && has_edges && std::isnan(value)) {
                        CHECK(std::isnan(dirty.lse[c.row(s, head, i)]));
                        for (int d = 0; d < c.dim; d++) CHECK(std::isnan(dirty.out.floats[c.at(s, head, i, d)]));
                    }
                    if (concerned) continue;
                    other_lses.push_back(dirty.lse[c.row(s, head, i)]);
                    expected_lses.push_back(clean.lse[c.row(s, head, i)]);
                    for (int d = 0; d < c.dim; d++) {
                        other_outs.push_back(dirty.out.floats[c.at(s, head, i, d)]);
                        expected_outs.push_back(clean.out.floats[c.at(s, head, i, d)]);
                    }
                }
        CHECK_CLOSE(other_lses, expected_lses, c.tolerance());
        CHECK_CLOSE(other_outs, expected_outs, c.tolerance());
    }
}

}  // namespace

TEST(a_nan_in_a_key_reaches_those_who_see_it) { check_containment(&Case::k, NAN, true); }
TEST(a_nan_in_a_query_stays_in_its_row) { check_containment(&Case::q, NAN, false); }

TEST(an_infinity_in_a_key_reaches_those_who_see_it) {
    for (const float value : {INFINITY, -INFINITY, 3e38f}) check_containment(&Case::k, value, true);
}
TEST(an_infinity_in_a_query_stays_in_its_row) {
    for (const float value : {INFINITY, -INFINITY, 3e38f}) check_containment(&Case::q, value, false);
}

TEST(a_nan_in_a_value_reaches_at_least_those_who_see_it) {
    for (int problem = 0; problem < random_problems(); problem++) {
        Case c(4000 + problem);
        const int h = c.random.integer(0, c.heads - 1), token = c.random.integer(0, c.n - 1), channel = c.dim / 2;
        c.v.floats[c.at(0, h, token, channel)] = NAN;
        Results got(c);
        got.run(c, 1, false);
        for (int s = 0; s < c.batch; s++)
            for (int head = 0; head < c.heads; head++)
                for (int i = 0; i < c.n; i++)
                    for (int d = 0; d < c.dim; d++) {
                        const bool is_nan = std::isnan(got.out.floats[c.at(s, head, i, d)]);
                        const bool may_be = s == 0 && head == h && d == channel;
                        CHECK(is_nan ? may_be : !(may_be && c.count(h, i, token)));
                    }
    }
}
