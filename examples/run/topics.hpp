// SPDX-License-Identifier: Apache-2.0
//
// The topics of `mica help TOPIC`: each is one file in topics/.
#pragma once

#include <span>
#include <string_view>

namespace mica::program {

struct Topic {
  std::string_view name;
  std::string_view summary;  // one line of help
  std::string_view text;     // lines of at most 80 characters
};

/// All topics in the order of help.
[[nodiscard]] std::span<const Topic> topics() noexcept;
/// Null when there is none of that name.
[[nodiscard]] const Topic* find_topic(std::string_view name) noexcept;

}  // namespace mica::program
