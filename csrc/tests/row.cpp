// Biases, masks and dropout of the scores of a row.
#include "../kernels/row.h"

#include "case.h"

namespace {

// Calls body(row, entry, scratch) for every entry of every row of head h.
template <class Body>
void for_each_row(const Problem& p, int h, const float* table, const Body& body) {
    Memory memory;
    Scratch s(p, false, memory);
    const Sequence& seq = p.sequences[0];
    for (int number = 0; number < row_count(seq); number++) {
        const Row row(p, seq, h, number, table);
        row.start_dropout(s);
        for_each_entry(seq, h, number, [&](const Entry& entry, int) {
            if (table) row.start_bias(entry.keys, s);
            body(row, entry, s);
        });
    }
}

const float* table_of(const Case& c, int h) {
    return c.radius < 0 ? nullptr : c.bias.data() + h * (2 * c.radius + 1) + c.radius;
}

}  // namespace

TEST(scores_get_their_bias_and_lose_what_is_no_edge) {
    for (int problem = 0; problem < random_problems(); problem++) {
        Case c(problem);
        const Problem p = c.problem();
        const int h = c.heads - 1;
        for_each_row(p, h, table_of(c, h), [&](const Row& row, const Entry& entry, Scratch& s) {
            for (int g = 0; g < row.groups; g++) {
                const Range keys = {0, entry.keys.count};
                const auto before = c.random.numbers((size_t)keys.count() * G);
                auto after = before;
                Vec highest[2];
                adjust_scores(row, entry, keys, g, after.data(), s, highest);
                for (int lane = 0; lane < G && g * G + lane < row.queries.count; lane++) {
                    float most = -INFINITY;
                    for (int j = 0; j < keys.count(); j++) {
                        const int i = g * G + lane, query = row.queries.token(i), key = entry.keys.token(j);
                        const bool later = entry.skip_globals && c.is_global(key);
                        const bool edge = !entry.mask || entry.mask[j * c.layout.mask_bytes + i / 8] >> (i % 8) & 1;
                        const float bias = (float)c.bias_of(h, query, key);
                        const float expected = edge && !later ? before[j * G + lane] + bias : -INFINITY;
                        CHECK(after[j * G + lane] == expected);
                        most = std::max(most, expected);
                    }
                    CHECK(highest[lane / W][lane % W] == most);
                }
            }
        });
    }
}

TEST(dropout_keeps_what_the_generator_says) {
    int kept_edges = 0, edges = 0;
    for (int problem = 0; problem < random_problems(); problem++) {
        Case c(problem);
        c.dropout = 0.25f;
        const Problem p = c.problem();
        for_each_row(p, 0, nullptr, [&](const Row& row, const Entry& entry, Scratch& s) {
            for (int g = 0; g < row.groups; g++)
                for (int j = 0; j < entry.keys.count; j++)
                    for (int lane = 0; lane < G && g * G + lane < row.queries.count; lane++) {
                        const int key = entry.keys.token(j);
                        const float factor = kept(row, s, g, lane / W, key)[lane % W];
                        CHECK(factor == (float)c.keep(0, 0, row.queries.token(g * G + lane), key));
                        kept_edges += factor != 0, edges++;
                    }
        });
    }
    CHECK(std::fabs((double)kept_edges / edges - 0.75) < 0.01);
}

// Numbers from src/longbird/core/operator/dropout.py, the specification.
TEST(the_generator_mixes_as_specified) {
    const uint32_t known[][2] = {{0x0u, 0x0u},
                                 {0x1u, 0x688990c0u},
                                 {0x2u, 0xd1132181u},
                                 {0x3039u, 0x912efcf7u},
                                 {0x7fffffffu, 0x8d29ffb8u},
                                 {0x80000000u, 0xcc4b4124u},
                                 {0xffffffffu, 0x6768824au}};
    for (const auto& [x, expected] : known) {
        CHECK(mix(x) == expected);
        CHECK(mix(UintVec{} + x)[W - 1] == expected);
    }
}

TEST(a_row_knows_its_tiles) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        for_each_row(p, 0, nullptr, [&](const Row& row, const Entry& entry, Scratch& s) {
            CHECK(row.groups * G >= row.queries.count && (row.groups - 1) * G < row.queries.count);
            for (int i = 0; i < row.queries.count; i++)
                CHECK(row.skips(i) == (row.skips_globals && c.is_global(row.queries.token(i))));
            const HeadView k = view(p.k, row.seq, 0), v = view(p.v, row.seq, 0);
            const Ahead next = row.ahead(k, v, entry.keys.is_global ? -1 : entry.keys.number, s);
            const bool side_by_side = (!c.interleaved || c.heads == 1) && c.order.empty() && !entry.keys.is_global;
            CHECK(next.count == (side_by_side ? 2 : 0));
            if (side_by_side)
                CHECK(next.arrays[0] == k.floats(entry.keys.first) && next.lines * 16 <= entry.keys.count * c.dim);
        });
    }
}
