// SPDX-License-Identifier: Apache-2.0
//
// How much a model has computed: what tests ask that say that something is computed once.

#pragma once

#include "mica/base/matrix_view.hpp"

#include <cstddef>
#include <string_view>

namespace mica::test {

/// Counts the rows that go through a model.
struct Rows {
  // Required by Observer
  static constexpr bool active = true;
  void product(std::string_view, MatrixView<const float>, std::size_t) noexcept {}
  void layer(std::size_t layer, MatrixView<const float> rows) noexcept {
    if (layer == 0) count += rows.rows();
  }

  std::size_t count = 0;
};

}  // namespace mica::test
