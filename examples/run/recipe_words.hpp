// SPDX-License-Identifier: Apache-2.0
//
// The types of quantize, as messages, help and completion list them.
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <string>

namespace mica::program {

/// "F32 BF16 ...": all of them.
[[nodiscard]] inline std::string recipe_words() {
  std::string words;
  for (const quantize::RecipeInfo& each : quantize::recipes)
    words += join(words.empty() ? "" : " ", each.name);
  return words;
}

}  // namespace mica::program
