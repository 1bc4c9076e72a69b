// SPDX-License-Identifier: Apache-2.0
//
// Short names of models that are published as GGUF files: those of the catalogue (fit/catalogue.hpp), which
// has their repositories. NAME:QUANT names one quantisation.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/fit/catalogue.hpp"
#include "mica_tools/hub/name.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace mica::hub {

/// The row of a short name or of a shape's name, if it has a repository of GGUF files; else null.
/// Requires lower case.
[[nodiscard]] constexpr const fit::Row* find_published(std::string_view name) noexcept {
  const fit::Row* const row = fit::find_row(name);
  return row == nullptr || row->gguf.empty() ? nullptr : row;
}

/// The model of a short name, with or without ":QUANT" after it, in any case; empty for other texts.
[[nodiscard]] inline std::optional<Name> parse_short_name(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const fit::Row* const found = find_published(remote::detail::lower(text.substr(0, colon)));
  if (found == nullptr) return std::nullopt;
  return parse_repo(join(found->gguf, text.substr(colon)), text);
}

/// "; did you mean NAME?" for the most similar short name; empty if none is similar.
[[nodiscard]] inline std::string near_published(std::string_view text) {
  const auto near = fit::near_row(remote::detail::lower(text.substr(0, text.find(':'))));
  return near ? join("; did you mean ", *near, "?") : std::string();
}

}  // namespace mica::hub
