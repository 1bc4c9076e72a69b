// SPDX-License-Identifier: Apache-2.0
//
// The types of quantize, as messages, help and completion list them.
#pragma once

#include "mica_tools/encode/encode.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <string>

namespace mica::program {

/// "F32 BF16 ...": the types whose format can be written, or (false) those that only a dry run knows.
[[nodiscard]] inline std::string recipe_words(bool writable = true) {
  std::string words;
  for (const quantize::RecipeInfo& each : quantize::recipes) {
    if (format::known_codecs.writes(each.base) == writable)
      words += join(words.empty() ? "" : " ", each.name);
  }
  return words;
}

}  // namespace mica::program
