// SPDX-License-Identifier: Apache-2.0
//
// The minimal Observer: it counts.

#pragma once

#include "mica/model/observer.hpp"

namespace mica::archetype {

struct Observer {
  // Required by Observer
  static constexpr bool active = true;
  void product(std::string_view /*tensor*/, mica::MatrixView<const float> /*rows*/,
               std::size_t /*index*/) noexcept {
    ++products;
  }
  void layer(std::size_t /*index*/, mica::MatrixView<const float> /*rows*/) noexcept { ++layers; }

  std::size_t products = 0;
  std::size_t layers = 0;
};
static_assert(mica::Observer<Observer>);

}  // namespace mica::archetype
