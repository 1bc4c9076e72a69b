// SPDX-License-Identifier: Apache-2.0
//
// Names for answers and calls that no other one has.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace mica::serve {

/// The prefix and random letters and digits: "chatcmpl-" and 24 of them.
[[nodiscard]] inline std::string random_id(std::string_view prefix, std::size_t letters = 24) {
  constexpr std::string_view all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::random_device device;
  std::string out(prefix);
  for (std::size_t i = 0; i < letters; ++i) out += all[device() % all.size()];
  return out;
}

}  // namespace mica::serve
