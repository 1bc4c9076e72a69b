// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/importance.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

namespace mica::test::importance_test {

TEST_CASE("means are sums by counts, and ones where nothing was seen") {
  quantize::Importance importance;
  importance.entries["blk.0.attn_q.weight"] = {{2, 4, 6}, {2}};
  importance.entries["blk.0.ffn_up_exps.weight"] = {{1, 2, 3, 4, 0, 0}, {1, 2, 0}};
  const auto means = [&](std::string_view name, std::size_t expert, std::size_t experts,
                         std::size_t columns) {
    return importance.find(name)->means(name, expert, experts, columns);
  };
  CHECK(means("blk.0.attn_q.weight", 0, 1, 3) == std::vector<float>{1, 2, 3});
  CHECK(means("blk.0.ffn_up_exps.weight", 0, 3, 2) == std::vector<float>{1, 2});
  CHECK(means("blk.0.ffn_up_exps.weight", 1, 3, 2) == std::vector<float>{1.5F, 2});
  CHECK(means("blk.0.ffn_up_exps.weight", 2, 3, 2) == std::vector<float>{1, 1});
  CHECK(refusal([&] { return means("blk.0.attn_q.weight", 0, 1, 4); }).code() == ErrorCode::file);
  CHECK(mentions(refusal([&] { return means("blk.0.attn_q.weight", 0, 2, 1); }), "3 sums and 1 counts",
                 "2 matrices"));
  CHECK(mentions(refusal([&] { return means("blk.0.ffn_up_exps.weight", 0, 2, 3); }), "another model"));
}

}  // namespace mica::test::importance_test
