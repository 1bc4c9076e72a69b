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
    const std::size_t n = std::min(chunk, ids.size() - done);
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

/// Whether two rows of floats are the same bits, NaN included.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace mica::test
