// SPDX-License-Identifier: Apache-2.0
//
// What one template may cost. A template comes out of a file of unknown origin, so parsing and rendering are
// bounded by these numbers alone; every default is far above what the templates of real models need.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mica::jinja {

/// Ceilings for parsing and rendering one template; reaching one is an error that names it.
struct Limits {
  std::size_t source_bytes = std::size_t{1} << 20;  ///< length of the template's text
  std::uint32_t nesting = 200;                      ///< brackets, blocks and operators inside one another
  std::uint64_t steps = 1'000'000;                  ///< work of one rendering, counted by Meter
  std::size_t output_bytes = std::size_t{8} << 20;  ///< length of the rendered text, and of any one string
  std::uint32_t call_depth = 64;                    ///< macros calling macros
  std::uint32_t evaluation_depth = 1000;  ///< expressions and blocks inside one another, through calls
  std::int64_t range_items = 100'000;     ///< items of one range(), the ceiling of Jinja's own sandbox
};

/// Lists and mappings inside one another, the same for every template: values outlive the rendering that made
/// them.
inline constexpr std::uint32_t max_container_depth = 64;

}  // namespace mica::jinja
