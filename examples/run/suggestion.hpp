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

/// Raises ErrorCode::usage: "synth: unknown shape 'lama-8b'.  Did you mean llama-8b?  Known: ...". Elements of
/// `infos` have a name.
template <class Infos>
[[noreturn]] void refuse_unknown(std::string_view what, std::string_view word, const Infos& infos,
                                 std::string_view all) {
  io::NearName near{std::string(word)};
  for (const auto& info : infos) near.offer(std::string(info.name));
  raise(ErrorCode::usage, what, " '", escaped(word), "'.",
        near.best() ? join("  Did you mean ", *near.best(), "?") : std::string(), "  Known: ", all);
}

}  // namespace mica::program
