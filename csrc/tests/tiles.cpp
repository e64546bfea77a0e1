// Addresses of tiles and rows.
#include "../kernels/tiles.h"

#include "case.h"

TEST(tiles_hold_the_tokens_of_their_positions) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        for (int t = 0; t < c.layout.keys.count; t++) {
            const Tile tile = tile_of(c.layout.keys, t);
            CHECK(tile.count == c.starts[t + 1] - c.starts[t] && tile.position == c.starts[t]);
            CHECK(tile.number == t && !tile.is_global);
            for (int i = 0; i < tile.count; i++) CHECK(tile.token(i) == c.token(c.starts[t] + i));
            for (int i = 1; tile.step && i < tile.count; i++) CHECK(tile.token(i) - tile.token(i - 1) == tile.step);
        }
    }
}

TEST(global_tiles_hold_every_global_token_once) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        const Sequence& seq = p.sequences[0];
        std::vector<int32_t> found;
        for (int t = 0; t < global_tiles(seq); t++) {
            const Tile tile = global_tile(seq, t);
            CHECK(tile.count >= 1 && tile.count <= c.tile && tile.is_global);
            CHECK(tile.position == (int64_t)found.size() && tile.number == c.layout.keys.count + t);
            for (int i = 0; i < tile.count; i++) found.push_back(tile.token(i));
        }
        CHECK(found == c.globals);
    }
}

TEST(views_find_every_row_in_every_format) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
        for (int problem = 0; problem < random_problems() / 4; problem++) {
            const Case c(problem, dtype);
            const Problem p = c.problem();
            const std::vector<float> expected = c.k.values();
            std::vector<float> row(c.dim), twice;
            Numbers copy(dtype, std::vector<float>(c.size(), 0.0f));
            const Tensor to = c.tensor(copy, c.dim);
            for (const Sequence& seq : p.sequences)
                for (int h = 0; h < c.heads; h++)
                    for (int token = 0; token < c.n; token++) {
                        read_row(view(p.k, seq, h), token, row.data(), c.dim);
                        const float* there = expected.data() + c.at((int)seq.batch, h, token, 0);
                        CHECK(std::equal(row.begin(), row.end(), there));
                        write_row(view(to, seq, h), token, row.data(), c.dim);
                    }
            CHECK(copy.values() == expected);
        }
}

TEST(packed_sequences_start_where_they_say) {
    const std::vector<float> numbers = {0, 1, 10, 11, 20, 21, 30, 31};  // [token][head]
    const Tensor t{const_cast<float*>(numbers.data()), DType::f32, 0, 1, 2};
    Sequence seq;
    seq.token_start = 2;
    CHECK(*view(t, seq, 0).floats(0) == 20 && *view(t, seq, 1).floats(1) == 31);
    CHECK(view(Tensor{nullptr, DType::bf16, 9, 9, 7}, seq, 1).base == nullptr);
}
