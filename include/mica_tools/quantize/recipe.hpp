// SPDX-License-Identifier: Apache-2.0
//
// The targets of quantisation: Q4_K_M and others. A recipe is a number in files (general.file_type), the
// format of most tensors, and those of the output matrix and of the token embedding. mix_rules.hpp has the
// exceptions.
#pragma once

#include "mica/base/error.hpp"
#include "mica/format/id.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::quantize {

/// The recipes, in the order of size.
enum class Recipe : std::uint8_t {
  F32,
  BF16,
  F16,
  Q8_0,
  Q6_K,
  Q5_1,
  Q5_K_M,
  Q5_K_S,
  Q5_0,
  Q4_1,
  Q4_K_M,
  Q4_K_S,
  Q4_0,
  IQ4_NL,
  IQ4_XS,
  MXFP4_MOE,
  Q3_K_L,
  Q3_K_M,
  IQ3_M,
  Q3_K_S,
  IQ3_S,
  IQ3_XS,
  IQ3_XXS,
  Q2_K,
  Q2_K_S,
  IQ2_M,
  IQ2_S,
  IQ2_XS,
  Q2_0,
  TQ2_0,
  IQ2_XXS,
  IQ1_M,
  TQ1_0,
  IQ1_S,
  Q1_0,
};

/// The part of a recipe that does not depend on the model.
struct RecipeInfo {
  Recipe recipe;
  std::string_view name;    // as command lines spell it
  std::uint32_t file_type;  // general.file_type of the output
  format::Id base;          // the format of tensors without a rule
  format::Id head;          // output.weight; without one the token embedding
  format::Id embedding;     // token_embd.weight beside an output.weight
};

// clang-format off
inline constexpr auto recipes = [] {
  using R = Recipe;
  using I = format::Id;
  return std::array{
      RecipeInfo{R::F32,       "F32",        0, I::F32,     I::F32,  I::F32},
      RecipeInfo{R::BF16,      "BF16",      32, I::BF16,    I::BF16, I::BF16},
      RecipeInfo{R::F16,       "F16",        1, I::F16,     I::F16,  I::F16},
      RecipeInfo{R::Q8_0,      "Q8_0",       7, I::Q8_0,    I::Q8_0, I::Q8_0},
      RecipeInfo{R::Q6_K,      "Q6_K",      18, I::Q6_K,    I::Q6_K, I::Q6_K},
      RecipeInfo{R::Q5_1,      "Q5_1",       9, I::Q5_1,    I::Q6_K, I::Q5_1},
      RecipeInfo{R::Q5_K_M,    "Q5_K_M",    17, I::Q5_K,    I::Q6_K, I::Q5_K},
      RecipeInfo{R::Q5_K_S,    "Q5_K_S",    16, I::Q5_K,    I::Q6_K, I::Q5_K},
      RecipeInfo{R::Q5_0,      "Q5_0",       8, I::Q5_0,    I::Q6_K, I::Q5_0},
      RecipeInfo{R::Q4_1,      "Q4_1",       3, I::Q4_1,    I::Q6_K, I::Q4_1},
      RecipeInfo{R::Q4_K_M,    "Q4_K_M",    15, I::Q4_K,    I::Q6_K, I::Q4_K},
      RecipeInfo{R::Q4_K_S,    "Q4_K_S",    14, I::Q4_K,    I::Q6_K, I::Q4_K},
      RecipeInfo{R::Q4_0,      "Q4_0",       2, I::Q4_0,    I::Q6_K, I::Q4_0},
      RecipeInfo{R::IQ4_NL,    "IQ4_NL",    25, I::IQ4_NL,  I::Q6_K, I::IQ4_NL},
      RecipeInfo{R::IQ4_XS,    "IQ4_XS",    30, I::IQ4_XS,  I::Q6_K, I::IQ4_XS},
      RecipeInfo{R::MXFP4_MOE, "MXFP4_MOE", 38, I::Q8_0,    I::Q8_0, I::Q8_0},
      RecipeInfo{R::Q3_K_L,    "Q3_K_L",    13, I::Q3_K,    I::Q6_K, I::Q3_K},
      RecipeInfo{R::Q3_K_M,    "Q3_K_M",    12, I::Q3_K,    I::Q6_K, I::Q3_K},
      RecipeInfo{R::IQ3_M,     "IQ3_M",     27, I::IQ3_S,   I::Q6_K, I::IQ3_S},
      RecipeInfo{R::Q3_K_S,    "Q3_K_S",    11, I::Q3_K,    I::Q6_K, I::Q3_K},
      RecipeInfo{R::IQ3_S,     "IQ3_S",     26, I::IQ3_S,   I::Q6_K, I::IQ3_S},
      RecipeInfo{R::IQ3_XS,    "IQ3_XS",    22, I::IQ3_S,   I::Q6_K, I::IQ3_S},
      RecipeInfo{R::IQ3_XXS,   "IQ3_XXS",   23, I::IQ3_XXS, I::Q5_K, I::IQ3_S},
      RecipeInfo{R::Q2_K,      "Q2_K",      10, I::Q2_K,    I::Q6_K, I::Q2_K},
      RecipeInfo{R::Q2_K_S,    "Q2_K_S",    21, I::Q2_K,    I::Q6_K, I::Q2_K},
      RecipeInfo{R::IQ2_M,     "IQ2_M",     29, I::IQ2_S,   I::Q5_K, I::IQ3_S},
      RecipeInfo{R::IQ2_S,     "IQ2_S",     28, I::IQ2_XS,  I::Q5_K, I::IQ3_S},
      RecipeInfo{R::IQ2_XS,    "IQ2_XS",    20, I::IQ2_XS,  I::Q5_K, I::Q2_K},
      RecipeInfo{R::Q2_0,      "Q2_0",      41, I::Q2_0,    I::Q6_K, I::Q4_K},
      RecipeInfo{R::TQ2_0,     "TQ2_0",     37, I::TQ2_0,   I::Q6_K, I::Q4_K},
      RecipeInfo{R::IQ2_XXS,   "IQ2_XXS",   19, I::IQ2_XXS, I::Q5_K, I::Q2_K},
      RecipeInfo{R::IQ1_M,     "IQ1_M",     31, I::IQ1_M,   I::Q5_K, I::Q2_K},
      RecipeInfo{R::TQ1_0,     "TQ1_0",     36, I::TQ1_0,   I::Q6_K, I::Q4_K},
      RecipeInfo{R::IQ1_S,     "IQ1_S",     24, I::IQ1_S,   I::Q5_K, I::Q2_K},
      RecipeInfo{R::Q1_0,      "Q1_0",      40, I::Q1_0,    I::Q6_K, I::Q1_0},
  };
}();
// clang-format on

/// The entry of a recipe.
[[nodiscard]] constexpr const RecipeInfo& info(Recipe recipe) noexcept {
  return recipes[static_cast<std::size_t>(recipe)];
}

/// Whether tensors become blocks: everything but the plain floats.
[[nodiscard]] constexpr bool is_quantized(format::Id id) noexcept {
  return id != format::Id::F32 && id != format::Id::F16 && id != format::Id::BF16 && id != format::Id::F64;
}

/// "F32 BF16 ...", for messages.
[[nodiscard]] inline std::string recipe_names() {
  std::string names;
  for (const RecipeInfo& each : recipes) names += join(names.empty() ? "" : " ", each.name);
  return names;
}

/// The recipe of that name, in upper or lower case, of a K format alone (its middle recipe), or of a file
/// type's number. Empty when there is none.
[[nodiscard]] inline std::optional<Recipe> find_recipe(std::string_view text) {
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  if (name == "Q3_K" || name == "Q4_K" || name == "Q5_K") name += "_M";
  if (name == "MXFP4") name = "MXFP4_MOE";
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  for (const RecipeInfo& each : recipes) {
    if (each.name == name || (is_number && each.file_type == number)) return each.recipe;
  }
  return std::nullopt;
}

static_assert([] {
  for (std::size_t i = 0; i < recipes.size(); ++i) {
    if (recipes[i].recipe != static_cast<Recipe>(i)) return false;
  }
  return true;
}());

}  // namespace mica::quantize
