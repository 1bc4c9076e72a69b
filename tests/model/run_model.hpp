// SPDX-License-Identifier: Apache-2.0
//
// Runs a Transformer over some ids and keeps the logits of every position.

#pragma once

#include "mica/base/rng.hpp"
#include "mica/model/transformer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace mica::test {

/// Ids below n_vocab; the same seed gives the same ids.
inline std::vector<text::TokenId> random_ids(std::size_t n, std::size_t n_vocab, std::uint64_t seed = 7) {
  CounterRng rng(seed);
  std::vector<text::TokenId> ids(n);
  for (auto& id : ids) id = static_cast<text::TokenId>(rng.next() % n_vocab);
  return ids;
}

/// Feeds ids in steps of up to `chunk` tokens; answers the logits after each, (ids, n_vocab).
template <class Model>
std::vector<float> feed(Model& model, typename Model::Cache& cache, std::span<const text::TokenId> ids,
                        std::size_t chunk) {
  std::vector<float> out;
  for (std::size_t done = 0; done < ids.size();) {
    const std::size_t n = std::min({chunk, model.chunk(), ids.size() - done});
    REQUIRE(model.step(cache, ids.subspan(done, n)) == model::StepStatus::ok);
    std::vector<std::size_t> rows(n);
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    const auto logits = model.logits(rows);
    REQUIRE(logits.rows() == n);
    for (std::size_t r = 0; r < n; ++r) out.insert(out.end(), logits[r].begin(), logits[r].end());
    done += n;
  }
  return out;
}

/// Feeds each text to a cache of its own, all in shared steps: text i joins in step i, and takes sizes[(step
/// + i) % size] tokens of every step until it ends. Answers the logits after each token, by text. Steps and
/// rows of logits must have room for one such round.
template <class Model>
std::vector<std::vector<float>> feed_shared(Model& model,
                                            const std::vector<std::vector<text::TokenId>>& texts,
                                            const std::vector<std::size_t>& sizes) {
  std::vector<typename Model::Cache> caches;
  for (std::size_t i = 0; i < texts.size(); ++i) caches.push_back(model.make_cache());
  std::vector<std::vector<float>> out(texts.size());
  for (std::size_t step = 0;; ++step) {
    std::vector<typename Model::SequenceStep> parts;
    std::vector<std::size_t> owner, rows;  // owner: the text of each row
    for (std::size_t i = 0; i < texts.size() && i <= step; ++i) {
      const auto left = std::span(texts[i]).subspan(caches[i].tokens);
      const auto tokens = left.first(std::min(left.size(), sizes[(step + i) % sizes.size()]));
      if (!tokens.empty()) parts.push_back({&caches[i], tokens});
      owner.insert(owner.end(), tokens.size(), i);
    }
    if (parts.empty() && step >= texts.size()) return out;
    if (parts.empty()) continue;
    REQUIRE(model.step(parts).status == model::StepStatus::ok);
    rows.resize(owner.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    const auto logits = model.logits(rows);
    REQUIRE(logits.rows() == rows.size());
    for (const std::size_t r : rows)
      out[owner[r]].insert(out[owner[r]].end(), logits[r].begin(), logits[r].end());
  }
}

/// Whether two rows of floats are the same bits, NaN included.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace mica::test
