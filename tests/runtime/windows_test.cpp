// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/measure/windows.hpp"

#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/inline.hpp"
#include "mica_tools/measure/log_probabilities.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

namespace mica::test::windows_test {
namespace {

using Plain = Transformer<arch::Llama, WithExecutor<exec::Inline>>;

struct Row {
  std::vector<float> logits;
  TokenId next;
};

std::vector<Row> rows_of(const Windows& windows, std::size_t i, std::size_t chunk, std::size_t logits_rows) {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  Plain model{
      tiny.document(), executor, {.n_ctx = 64, .chunk = chunk, .logits_rows = logits_rows, .log = {}}};
  Session session(model);
  std::vector<Row> rows;
  REQUIRE(windows.run(session, i, nullptr, [&](std::span<const float> logits, TokenId next) {
    rows.push_back({{logits.begin(), logits.end()}, next});
  }) == model::StepStatus::ok);
  return rows;
}

}  // namespace

TEST_CASE("windows are whole, and what is left over is dropped") {
  std::vector<TokenId> tokens(23);
  std::iota(tokens.begin(), tokens.end(), TokenId{0});
  const Windows windows(tokens, 7, std::nullopt);
  CHECK(windows.size() == 3);
  CHECK(windows[2].front() == 14);
  CHECK(windows[2].size() == 7);
  CHECK(windows.counted() == 3);  // after positions 3, 4 and 5
  CHECK(Windows::counted(512) == 255);
}

TEST_CASE("windows without a second half, and texts shorter than a window, are refused") {
  CHECK(refusal([] { return Windows(std::vector<TokenId>(9, 1), 3, {}); }).code() == ErrorCode::usage);
  const Error error = refusal([] { return Windows(std::vector<TokenId>(9, 1), 10, {}); });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "9 tokens"));
}

TEST_CASE("each counted position comes once, in order, with the token that came next") {
  const auto ids = random_ids(60, 67);
  for (const std::size_t width : {19U, 20U}) {
    const Windows windows(ids, width, TokenId{1});
    const auto rows = rows_of(windows, 1, 64, 16);
    REQUIRE(rows.size() == windows.counted());
    for (std::size_t r = 0; r < rows.size(); ++r) CHECK(rows[r].next == windows[1][width / 2 + r + 1]);
    // The rows of the model itself, fed with BOS in the place of the first token.
    const TinyModel tiny{Recipe{}};
    exec::Inline executor;
    Plain model{tiny.document(), executor, {.n_ctx = 64, .chunk = 64, .logits_rows = 1, .log = {}}};
    Session session(model);
    const auto fed = windows.fed(1);
    CHECK(fed.front() == 1);
    CHECK(std::equal(fed.begin() + 1, fed.end(), windows[1].begin() + 1));
    REQUIRE(session.feed(fed) == model::StepStatus::ok);
    const std::size_t position = width - 2;
    CHECK(same_bits(rows.back().logits, session.logits(std::span(&position, 1))[0]));
  }
}

TEST_CASE("rows do not depend on the chunk or on how many are computed at a time") {
  const Windows windows(random_ids(40, 67), 20, std::nullopt);
  const auto expected = rows_of(windows, 0, 64, 16);
  for (const auto& [chunk, at_once] : {std::pair{3U, 1U}, std::pair{7U, 2U}, std::pair{13U, 16U}}) {
    const auto rows = rows_of(windows, 0, chunk, at_once);
    REQUIRE(rows.size() == expected.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      CHECK(rows[r].next == expected[r].next);
      CHECK(same_bits(rows[r].logits, expected[r].logits));
    }
  }
}

}  // namespace mica::test::windows_test
