// SPDX-License-Identifier: Apache-2.0
//
// Chooses a variant of a model when none is named, by the rules of `mica fit` (fit/select.hpp): the requested
// context first with headroom, then without, then its halves down to 1,024 tokens; for each of them the
// largest variant first, keys and values in F16 before Q8_0. The header of one variant is read; the memory of
// the others is computed from the difference of their bytes.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/fit/candidate.hpp"
#include "mica_tools/fit/level.hpp"
#include "mica_tools/fit/select.hpp"
#include "mica_tools/hub/variant.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mica::hub {

/// A chosen variant, and the reason in words.
struct Choice {
  std::size_t variant = 0;  // its place among the variants
  std::string reason;       // "chose Q4_K_M of 3 quantisations: ..."
};

namespace detail {

/// The variants among which the rules choose: those in formats with a known name and at most eight bits a
/// weight, or all variants if there are none of these.
[[nodiscard]] inline std::vector<std::size_t> eligible(std::span<const Variant> variants) {
  std::vector<std::size_t> chosen, all;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    all.push_back(i);
    const auto recipe = quantize::find_recipe(variants[i].quant);
    if (recipe && quantize::is_quantized(quantize::info(*recipe).base)) chosen.push_back(i);
  }
  return chosen.empty() ? all : chosen;
}

}  // namespace detail

/// The variant whose header stands for all: Q4_K_M, else the one in the middle of those that can be chosen.
/// Requires at least one variant.
[[nodiscard]] inline std::size_t reference_variant(std::span<const Variant> variants) {
  const std::vector<std::size_t> eligible = detail::eligible(variants);
  for (const std::size_t i : eligible) {
    if (variants[i].quant == "Q4_K_M") return i;
  }
  return eligible[eligible.size() / 2];
}

/// The first variant that fits in `available` bytes, or else the reference with streamed weights, or else the
/// smallest. candidate: the header of reference_variant(). n_ctx: the requested context; 0: that of `mica
/// fit`. Raises what planning the candidate raises. Cost: some tens of plans at most.
[[nodiscard]] inline Choice choose(std::span<const Variant> variants, fit::Candidate& candidate,
                                   std::uint64_t available, std::size_t n_ctx = 0) {
  const std::size_t reference = reference_variant(variants);
  const std::vector<std::size_t> eligible = detail::eligible(variants);
  const std::string of =
      join(" of ", variants.size(), variants.size() == 1 ? " quantisation" : " quantisations");
  const fit::Pools pools{0, available};
  const auto need = [&](std::size_t variant, const fit::Setting& setting) {
    const std::uint64_t peak = candidate.plan(setting).peak_bytes, bytes = variants[reference].bytes;
    return fit::Pools{0, std::max(peak, bytes) - bytes + variants[variant].bytes};
  };
  const std::size_t wanted = n_ctx == 0 ? fit::default_context : n_ctx;
  std::size_t tokens = n_ctx == 0 ? std::min(candidate.n_ctx_train(), wanted) : wanted;
  for (const std::size_t first = tokens;; tokens /= 2) {
    for (const bool spacious : {true, false}) {
      for (const std::size_t i : eligible) {
        for (const kv::Element element : {kv::Element::f16, kv::Element::q8_0}) {
          const fit::Pools needed = need(i, {.n_ctx = tokens, .element = element});
          if (!(spacious ? fit::has_headroom(needed, pools) : fit::fits(needed, pools))) continue;
          return {i, join("chose ", variants[i].quant, of, ": the largest that fits at ", tokens, " tokens",
                          element == kv::Element::f16 ? "" : " with keys and values in Q8_0",
                          spacious ? " with 20 % headroom" : "",
                          tokens == first ? "" : join(" (at ", first, " tokens none does)"), "; it needs ",
                          budget::size_text(needed.ram), " of ", budget::size_text(available))};
        }
      }
    }
    if (n_ctx != 0 || tokens / 2 < fit::min_context) break;
  }
  const fit::Setting streamed{
      .n_ctx = tokens, .element = kv::Element::q8_0, .streamed = true, .budget_bytes = available};
  if (candidate.plan(streamed).peak_bytes <= available)
    return {reference, join("chose ", variants[reference].quant, of, ": none fits in ",
                            budget::size_text(available), ", and this one does with streamed weights")};
  return {eligible.back(), join("chose ", variants[eligible.back()].quant, of, ": none fits in ",
                                budget::size_text(available), ", and this one is the smallest")};
}

}  // namespace mica::hub
