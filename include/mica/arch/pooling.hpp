// SPDX-License-Identifier: Apache-2.0
//
// How the states of a text become one row, and what users call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mica::arch {

/// Which states of a text become its row.
enum class Pooling : std::uint8_t {
  none,   ///< the file says nothing of it
  mean,   ///< their mean
  first,  ///< that of the first token, CLS
  last,   ///< that of the last token
};

/// "mean", "cls", "last"; "none".
[[nodiscard]] constexpr std::string_view name(Pooling pooling) noexcept {
  constexpr std::string_view names[] = {"none", "mean", "cls", "last"};
  return names[static_cast<std::size_t>(pooling)];
}

/// The pooling of a name; empty for another text, and for "none", which is no choice.
[[nodiscard]] constexpr std::optional<Pooling> pooling_named(std::string_view text) noexcept {
  for (const Pooling pooling : {Pooling::mean, Pooling::first, Pooling::last}) {
    if (name(pooling) == text) return pooling;
  }
  return std::nullopt;
}

}  // namespace mica::arch
