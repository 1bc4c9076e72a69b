// SPDX-License-Identifier: Apache-2.0
//
// "Did you mean ...?" about a word that is not among the known ones.
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/detail/near_name.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace mica::program {

/// " Did you mean NAME?", or nothing if no name is near. name_of: the name of an element of `known`.
template <class Names, class NameOf = std::identity>
[[nodiscard]] std::string suggestion(std::string_view word, const Names& known, NameOf name_of = {}) {
  io::NearName near{std::string(word)};
  for (const auto& each : known) near.offer(name_of(each));
  return near.best() ? join(" Did you mean ", *near.best(), "?") : std::string();
}

/// A message with a period at its end, unless it ends with one or is a question.
[[nodiscard]] inline std::string sentence(std::string text) {
  return text.ends_with('.') || text.ends_with('?') ? text : text + '.';
}

/// Raises ErrorCode::usage: "synth: unknown shape 'lama-8b'. Did you mean llama-8b? Known: ...". Elements
/// of `infos` have a name.
template <class Infos>
[[noreturn]] void refuse_unknown(std::string_view what, std::string_view word, const Infos& infos,
                                 std::string_view all) {
  const std::string near = suggestion(word, infos, [](const auto& info) { return info.name; });
  raise(ErrorCode::usage, what, " '", escaped(word), "'.", near, " Known: ", all);
}

}  // namespace mica::program
