// SPDX-License-Identifier: Apache-2.0
//
// An observer of a step: it receives the input rows of each matrix product, and the residual stream after
// each layer. Importance matrices and debugging need it; the default observes nothing and costs nothing.
#pragma once

#include "mica/base/matrix_view.hpp"

#include <concepts>
#include <cstddef>
#include <limits>
#include <string_view>

namespace mica {

/// Observes a step. Calls come from the thread that steps, between the runs of the workers; rows are valid
/// during the call. active: false tells the model to make no calls at all.
// clang-format off
template <class O>
concept Observer = requires(O& observer, std::string_view tensor, MatrixView<const float> rows,
                            std::size_t index) {
  { std::bool_constant<O::active>::value } -> std::convertible_to<bool>;
  { observer.product(tensor, rows, index) } noexcept;  // inputs; index: the expert, or no_expert
  { observer.layer(index, rows) } noexcept;            // the residual stream after a layer, (n, width)
};
// clang-format on

namespace model {

/// Stands for the tensor of all tokens where a call of Observer::product could name an expert.
inline constexpr std::size_t no_expert = std::numeric_limits<std::size_t>::max();

/// Observes nothing.
struct NoObserver {
  // Required by Observer
  static constexpr bool active = false;
  void product(std::string_view, MatrixView<const float>, std::size_t) noexcept {}
  void layer(std::size_t, MatrixView<const float>) noexcept {}
};

static_assert(Observer<NoObserver>);

}  // namespace model
}  // namespace mica
