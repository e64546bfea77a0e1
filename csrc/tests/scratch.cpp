// Copying tiles into the work space of a thread.
#include "../kernels/scratch.h"

#include "case.h"

namespace {

Tile some_tile(const Case& c, int number) { return tile_of(c.layout.keys, number % c.layout.keys.count); }

}  // namespace

TEST(rows_are_padded_with_zeros) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        Memory memory;
        Scratch s(p, false, memory);
        const Tile tile = some_tile(c, problem);
        const int rows = round_up(tile.count, G);
        std::fill_n(s.rows.get(), rows * s.padded_dim, NAN);
        read_rows(view(p.q, p.sequences[0], 0), tile, s, s.rows.get());
        for (int i = 0; i < rows; i++)
            for (int d = 0; d < s.padded_dim; d++) {
                const bool real = i < tile.count && d < c.dim;
                CHECK(s.rows[i * s.padded_dim + d] == (real ? c.q.floats[c.at(0, 0, tile.token(i), d)] : 0));
            }
    }
}

TEST(rows_become_lanes_and_rows_again) {
    for (int problem = 0; problem < random_problems(); problem++) {
        Case c(problem);
        const Problem p = c.problem();
        Memory memory;
        Scratch s(p, false, memory);
        const int queries = s.groups * G;
        const auto rows = c.random.numbers((size_t)queries * s.padded_dim), factors = c.random.numbers(queries);
        to_lanes(rows.data(), s.groups, s, 0.75f, s.q.get());
        for (int i = 0; i < queries; i++)
            for (int d = 0; d < s.padded_dim; d++)
                CHECK(s.q[(i / G * s.padded_dim + d) * G + i % G] == rows[i * s.padded_dim + d] * 0.75f);
        from_lanes(s.q.get(), s.groups, s, factors.data(), s.rows.get());
        for (int i = 0; i < queries; i++)
            for (int d = 0; d < s.padded_dim; d++)
                CHECK(s.rows[i * s.padded_dim + d] == rows[i * s.padded_dim + d] * 0.75f * factors[i]);
    }
}

// Regardless of earlier copies: of the same or another head, and of tiles that share a slot.
TEST(keys_and_values_are_those_of_the_tile) {
    for (const DType dtype : {DType::f32, DType::bf16})
        for (int problem = 0; problem < random_problems(); problem++) {
            Case c(problem, dtype);
            const Problem p = c.problem();
            const std::vector<float> k = c.k.values(), v = c.v.values();
            Memory memory;
            Scratch s(p, false, memory);
            s.slot_count = std::min(s.slot_count, std::max(2, global_tiles(p.sequences[0])));
            for (int visit = 0; visit < 60; visit++) {
                const Sequence& seq = p.sequences[c.random.integer(0, c.batch - 1)];
                const int h = c.random.integer(0, c.heads - 1);
                const int number = c.random.integer(0, c.layout.keys.count + global_tiles(seq) - 1);
                const bool global = number >= c.layout.keys.count;
                const Tile tile =
                    global ? global_tile(seq, number - c.layout.keys.count) : tile_of(c.layout.keys, number);
                const HeadView k_head = view(p.k, seq, h), v_head = view(p.v, seq, h);
                const auto [k_rows, v_rows] = key_rows(k_head, v_head, tile, seq.number * c.heads + h, s);
                for (int j = 0; j < tile.count; j++)
                    for (int d = 0; d < c.dim; d++) {
                        const size_t at = c.at((int)seq.batch, h, tile.token(j), d);
                        CHECK(k_rows[j * c.dim + d] == k[at] && v_rows[j * c.dim + d] == v[at]);
                    }
            }
        }
}

TEST(only_tiles_that_need_a_copy_have_slots) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        Memory memory;
        const Scratch s(p, false, memory);
        const bool side_by_side = !c.interleaved || c.heads == 1;
        const int tiles = side_by_side && c.order.empty() ? 0 : c.layout.keys.count;
        CHECK(s.slot_count == tiles + ((int)c.globals.size() + c.tile - 1) / c.tile);
    }
}

TEST(a_memory_that_only_counts_asks_for_as_much) {
    for (int problem = 0; problem < random_problems(); problem++)
        for (const bool backward : {false, true}) {
            const Case c(problem);
            Memory real, counting{true};
            const Scratch scratch(c.problem(), backward, real), nothing(c.problem(), backward, counting);
            CHECK(real.bytes == counting.bytes && real.bytes > 0 && scratch.q && !nothing.q);
        }
}
