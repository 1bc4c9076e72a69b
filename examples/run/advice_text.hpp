// SPDX-License-Identifier: Apache-2.0
//
// Advice about a machine and a file (mica_tools/advice) as lines and as JSON.
#pragma once

#include "mica_tools/advice/advice.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace mica::program {

/// A line for each: the topic, at least `width` bytes wide, and advice::text().
[[nodiscard]] std::string advice_text(std::span<const advice::Advice> lines, std::size_t width);

/// An array of objects with `topic`, `found`, `fine`, and unless it is fine `meaning`, `change`, `command`.
[[nodiscard]] std::string advice_json(std::span<const advice::Advice> lines);

}  // namespace mica::program
