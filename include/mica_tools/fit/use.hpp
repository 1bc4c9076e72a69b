// SPDX-License-Identifier: Apache-2.0
//
// The uses of a model, and what each of them requires of a fit.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/fit/catalogue.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace mica::fit {

/// The use of a model.
struct Use {
  std::string_view name;  // of --use
  double min_decode;      // tokens per second that are quick enough
  std::size_t tokens;     // of context
};

/// People read 238 words a minute (M. Brysbaert, 2019, doi 10.1016/j.jml.2019.104047): about 5 tokens a
/// second. Thoughts are not read and are often longer than the answer, so `reasoning` needs twice that.
inline constexpr std::array<Use, 4> uses = {{
    {"general", 5, 4096},
    {"coding", 5, 8192},
    {"chat", 5, 4096},
    {"reasoning", 10, 8192},
}};

/// The use of that name. Raises a usage error that lists the known ones.
[[nodiscard]] inline const Use& use_of(std::string_view name) {
  std::string known;
  for (const Use& use : uses) {
    if (use.name == name) return use;
    known += join(known.empty() ? "" : " ", use.name);
  }
  raise(ErrorCode::usage, "--use: found \"", escaped(name), "\", allowed: ", known);
}

/// The factor of a model's size for a use: 4 for a model that was made for it, 1/2 for one that was made for
/// another. Qwen2.5-Coder 7B solves as many tasks of HumanEval, 88 %, as Qwen2.5 32B, which is 4.3 times as
/// large (their technical reports, arXiv 2409.12186 and 2412.15115).
[[nodiscard]] constexpr double use_factor(const Use& use, MadeFor made_for) noexcept {
  const bool coding = use.name == "coding", reasoning = use.name == "reasoning";
  if (made_for == MadeFor::coding) return coding ? 4 : 0.5;
  if (made_for == MadeFor::reasoning) return reasoning ? 4 : 0.5;
  return made_for == MadeFor::thinking && reasoning ? 4 : 1;
}

}  // namespace mica::fit
