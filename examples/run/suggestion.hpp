// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean ...?" about a word that is not among the known ones.
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/near_name.hpp"

#include <string>
#include <string_view>

namespace mica::program {

/// "  Did you mean NAME?", or nothing where no name is near.
template <class Names>
[[nodiscard]] std::string suggestion(std::string_view word, const Names& known) {
  io::NearName near{std::string(word)};
  for (const auto& name : known) near.offer(name);
  return near.best() ? join("  Did you mean ", *near.best(), "?") : std::string();
}

}  // namespace mica::program
