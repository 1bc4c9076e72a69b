// SPDX-License-Identifier: Apache-2.0
//
// Only the k best.
#pragma once

#include "mica/base/error.hpp"
#include "mica/sample/concept.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::sample {

/// Keeps the k best candidates, in order; 0 keeps all.
class TopK : public Memoryless {
 public:
  /// k >= 0, else raises.
  explicit TopK(std::int64_t k) : k_(static_cast<std::size_t>(k)) {
    if (k < 0) raise(ErrorCode::usage, "top-k: found ", k, ", allowed 0 (keeps all) or more");
  }

  [[nodiscard]] std::size_t k() const noexcept { return k_; }

  // Required by SamplerStage
  void apply(Candidates& candidates) noexcept {
    if (k_ != 0) candidates.keep_best(k_);
  }

 private:
  std::size_t k_;
};
static_assert(SamplerStage<TopK>);

}  // namespace mica::sample
