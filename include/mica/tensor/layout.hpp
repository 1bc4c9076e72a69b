// SPDX-License-Identifier: Apache-2.0
//
// What a pack layout promises: some rows of a matrix change places so that kernels find what they need together. It is a
// permutation: a packed matrix has as many bytes as the file has, and any block can be had back. Rows beyond the last
// whole panel keep the layout of the file.
#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/q4_k.hpp"

#include <concepts>
#include <cstddef>
#include <string_view>

namespace mica {

/// How a panel of L::rows rows lies in memory. All members are static.
///   pack<F>(rows, n, panel)       `rows`: the first row in the file's layout, n blocks each; `panel` does not overlap it
///   block<F>(panel, n, r, b)      block b of row r, as in the file
// clang-format off
template <class L>
concept PackLayout = requires(const format::Q4_K::Block* rows, const std::byte* cpanel, std::byte* panel, std::size_t n) {
  { L::name } -> std::convertible_to<std::string_view>;
  { L::rows } -> std::convertible_to<std::size_t>;  // in a panel
  { L::template pack<format::Q4_K>(rows, n, panel) } noexcept -> std::same_as<void>;
  { L::template block<format::Q4_K>(cpanel, n, n, n) } noexcept -> std::same_as<format::Q4_K::Block>;
};
// clang-format on

namespace tensor {

/// No layout but the file's: for who wants weights as they are.
struct FileRows {
  static constexpr std::string_view name = "file";
  static constexpr std::size_t rows = 1;
};

}  // namespace tensor
}  // namespace mica
