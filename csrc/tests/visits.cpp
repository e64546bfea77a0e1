// The entries that rows of a layout visit, against the edges of the layout.
#include "../kernels/visits.h"

#include "case.h"

TEST(rows_visit_every_edge_as_often_as_it_counts) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        const Sequence& seq = p.sequences[0];
        std::vector<int> seen(c.counts.size());
        for (int h = 0; h < c.heads; h++)
            for (int row = 0; row < row_count(seq); row++) {
                const Tile queries = query_tile(seq, row);
                for_each_entry(seq, h, row, [&](const Entry& entry, int) {
                    for (int i = 0; i < queries.count; i++)
                        for (int j = 0; j < entry.keys.count; j++) {
                            const int query = queries.token(i), key = entry.keys.token(j);
                            const bool elsewhere = !is_global_row(seq, row) && c.is_global(query);
                            const bool later = entry.skip_globals && c.is_global(key);
                            const int bytes = c.layout.mask_bytes, g = i / G;
                            const bool bit = !entry.mask || mask_bits(entry.mask, bytes, j, g) >> (i % G) & 1;
                            seen[((size_t)h * c.n + query) * c.n + key] += bit && !elsewhere && !later;
                        }
                });
            }
        CHECK(seen == c.counts);
    }
}

TEST(entries_are_counted_and_announced) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        const Sequence& seq = p.sequences[0];
        for (int h = 0; h < c.heads; h++)
            for (int row = 0; row < row_count(seq); row++) {
                std::vector<int> tiles, announced;
                for_each_entry(seq, h, row, [&](const Entry& entry, int after) {
                    if (!entry.keys.is_global) tiles.push_back(entry.keys.number);
                    announced.push_back(after);
                });
                CHECK((int64_t)announced.size() == entry_count(seq, h, row));
                for (size_t i = 0; i < announced.size(); i++)
                    CHECK(announced[i] == (i + 1 < tiles.size() ? tiles[i + 1] : -1));
            }
    }
}

TEST(visible_keys_are_the_tightest_ranges) {
    for (int problem = 0; problem < random_problems(); problem++) {
        const Case c(problem);
        const Problem p = c.problem();
        const Sequence& seq = p.sequences[0];
        for (int row = 0; row < c.layout.queries.count; row++) {
            const int groups = (query_tile(seq, row).count + G - 1) / G;
            for_each_entry(seq, 0, row, [&](const Entry& entry, int) {
                const VisibleKeys visible = visible_keys(entry, c.layout.mask_bytes, groups);
                int first = entry.keys.count, last = -1;
                for (int g = 0; g < groups; g++) {
                    int begin = entry.keys.count, end = 0;
                    for (int j = 0; j < entry.keys.count; j++) {
                        bool seen = !entry.mask;
                        for (int i = g * G; entry.mask && i < (g + 1) * G && i < 8 * c.layout.mask_bytes; i++)
                            seen |= entry.mask[j * c.layout.mask_bytes + i / 8] >> (i % 8) & 1;
                        if (seen) begin = std::min(begin, j), end = j + 1;
                    }
                    const Range got = visible.of_group[g];
                    CHECK(got.empty() ? begin >= end : got.begin == begin && got.end == end);
                    if (begin < end) first = std::min(first, begin), last = std::max(last, end);
                }
                CHECK(visible.all.empty() ? last < 0 : visible.all.begin == first && visible.all.end == last);
            });
        }
    }
}
