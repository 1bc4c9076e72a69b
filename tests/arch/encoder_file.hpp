// SPDX-License-Identifier: Apache-2.0
//
// What every text encoder's tests do with a file: embed texts alone and together, in steps of any size, and
// compare with rows that a reference (arch/reference.hpp) gives.

#pragma once

#include "arch/reference.hpp"
#include "mica/runtime/embedder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace mica::test {

using Ids = std::vector<text::TokenId>;

/// Embeddings of texts, (texts, width), in steps of `chunk` tokens.
template <class Family>
std::vector<float> embed_family(FamilyFile& file, const std::vector<Ids>& texts, std::size_t chunk,
                                EmbedderOptions options = {}, std::size_t n_ctx = 64) {
  exec::Inline executor;
  FamilyModel<Family> model(file.document(), executor, {.n_ctx = n_ctx, .chunk = chunk, .log = {}});
  Embedder<FamilyModel<Family>> embedder(model, options);
  std::vector<std::span<const text::TokenId>> spans;
  for (const Ids& text : texts) spans.emplace_back(text.data(), text.size());
  std::vector<float> rows(texts.size() * embedder.width());
  CHECK(embedder.embed(spans, {rows.data(), texts.size(), embedder.width()}) == model::StepStatus::ok);
  return rows;
}

/// The largest difference.
inline double distance(const std::vector<float>& found, const std::vector<reference::Row>& wanted) {
  double worst = 0;
  REQUIRE(found.size() == wanted.size() * wanted.front().size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = wanted[i / wanted.front().size()][i % wanted.front().size()];
    worst = std::max(worst, std::fabs(static_cast<double>(found[i]) - expected));
  }
  return worst;
}

/// Rows of length 1.
inline std::vector<reference::Row> of_length_one(std::vector<reference::Row> rows) {
  for (reference::Row& row : rows) {
    double squares = 0;
    for (const double v : row) squares += v * v;
    row = reference::scaled(std::move(row), 1 / std::sqrt(squares));
  }
  return rows;
}

[[nodiscard]] inline reference::Row mean_of(const reference::Rows& rows) {
  reference::Row sum(rows.front().size());
  for (const reference::Row& row : rows) sum = reference::add(std::move(sum), row);
  return reference::scaled(std::move(sum), 1 / static_cast<double>(rows.size()));
}

/// Three texts, the last one longer than what a kernel attends to together.
[[nodiscard]] inline std::vector<Ids> three_texts() {
  const auto all = random_ids(120, family_vocabulary);
  return {Ids(all.begin(), all.begin() + 9), Ids(all.begin() + 9, all.begin() + 10),
          Ids(all.begin() + 10, all.begin() + 110)};
}

/// Embeddings are those of states(ids) after pooling with pool(rows), of length 1; alone, together and in one
/// step after the other they have the same bits.
template <class Family, class States, class Pool>
void check_encoder(FamilyFile& file, States&& states, Pool&& pool, double tolerance = 2e-5) {
  const std::vector<Ids> texts = three_texts();
  std::vector<reference::Row> wanted;
  for (const Ids& text : texts) wanted.push_back(pool(states(text)));
  const std::vector<float> together = embed_family<Family>(file, texts, 128, {}, 128);
  CHECK(distance(together, of_length_one(wanted)) < tolerance);
  CHECK(same_bits(together, embed_family<Family>(file, texts, 100, {}, 128)));
  CHECK(same_bits(together, embed_family<Family>(file, texts, 128, {.texts = 1}, 128)));
  const std::size_t width = together.size() / texts.size();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto alone = embed_family<Family>(file, {texts[i]}, 128, {}, 128);
    const auto first = together.begin() + static_cast<std::ptrdiff_t>(i * width);
    CHECK(same_bits(alone, std::vector<float>(first, first + static_cast<std::ptrdiff_t>(width))));
  }
}

}  // namespace mica::test
