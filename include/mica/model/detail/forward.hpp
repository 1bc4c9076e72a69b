// SPDX-License-Identifier: Apache-2.0
//
// The layers of one step. The blocks of a layer (block/concept.hpp) add to the residual stream:
//
//   embeddings -> begin -> [ block, block, ... ] x layers -> end -> hidden (n, width)
#pragma once

#include "mica/model/detail/step.hpp"

#include <cstddef>
#include <span>

namespace mica::model {

/// Model: a BasicTransformer, for its types. It lives for one step.
template <class Model>
class Forward {
  using Step = model::Step<Model>;
  using Weights = model::Weights<typename Model::Formats, typename Model::Blocks>;

 public:
  Forward(const Weights& weights, typename Model::Observer* observer, Step step) noexcept
      : weights_(weights), observer_(observer), step_(step) {}

  /// Embeddings into the residual stream. False when a block could not read something.
  [[nodiscard]] bool embed() noexcept {
    const auto residual = step_.residual();
    step_.matrix(weights_.token_embd()).visit([&](auto w) {
      for (std::size_t t = 0; t < step_.rows(); ++t) w.decode_row(step_.token_of(t), residual[t].data());
    });
    if (step_.config().embedding_scale != 1) step_.scale(residual, step_.config().embedding_scale);
    return run(weights_.begin());
  }
  /// Layer i, whose unit is acquired. False when a block could not read an expert, or keys and values.
  [[nodiscard]] bool run(std::size_t i) noexcept {
    if (!run(weights_.layer(i))) return false;
    if constexpr (Step::observed) {
      if (observer_ != nullptr) observer_->layer(i, step_.residual());
    }
    return i + 1 != step_.config().layers.size() || run(weights_.end());
  }

 private:
  [[nodiscard]] bool run(const typename Weights::Layer& layer) noexcept {
    for (const auto& any : layer) {
      const bool read = detail::visit_block(any, [this]<class B>(const BoundBlock<B>& b) {
        step_.enter(b.place);
        return B::run(step_, b.config, b.tensors);
      });
      if (!read) return false;
    }
    return true;
  }

  const Weights& weights_;
  typename Model::Observer* observer_;
  Step step_;
};

}  // namespace mica::model
