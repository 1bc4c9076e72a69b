// SPDX-License-Identifier: Apache-2.0
//
// The targets of quantisation: Q4_K_M and others. A recipe is a number in files (general.file_type), the
// format of most tensors, and those of the output matrix and of the token embedding. mix_rules.hpp has the
// exceptions.
#pragma once

#include "mica/base/error.hpp"
#include "mica/format/lists.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mica::quantize {

/// The recipes, in the order of size.
// clang-format off
enum class Recipe : std::uint8_t {
  F32, BF16, F16, Q8_0, Q6_K, Q5_1, Q5_K_M, Q5_K_S, Q5_0,
  Q4_1, Q4_K_M, Q4_K_S, Q4_0, IQ4_NL, IQ4_XS, MXFP4_MOE,
  Q3_K_L, Q3_K_M, IQ3_M, Q3_K_S, IQ3_S, IQ3_XS, IQ3_XXS,
  Q2_K, Q2_K_S, IQ2_M, IQ2_S, IQ2_XS, Q2_0, TQ2_0, IQ2_XXS, IQ1_M, TQ1_0, IQ1_S, Q1_0,
};
// clang-format on

/// The part of a recipe that does not depend on the model.
struct RecipeInfo {
  Recipe recipe;            // its place in the list
  std::string_view name;    // as command lines spell it
  std::uint32_t file_type;  // general.file_type of the output
  format::Id base;          // the format of tensors without a rule
  format::Id head;          // output.weight; without one the token embedding
  format::Id embedding;     // token_embd.weight beside an output.weight
};

/// By Recipe.
// clang-format off
inline constexpr auto recipes = [] {
  using R = Recipe;
  using format::BF16, format::F16, format::F32, format::IQ1_M, format::IQ1_S, format::IQ2_S,
      format::IQ2_XS, format::IQ2_XXS, format::IQ3_S, format::IQ3_XXS, format::IQ4_NL, format::IQ4_XS,
      format::Q1_0, format::Q2_0, format::Q2_K, format::Q3_K, format::Q4_0, format::Q4_1, format::Q4_K,
      format::Q5_0, format::Q5_1, format::Q5_K, format::Q6_K, format::Q8_0, format::TQ1_0, format::TQ2_0;
  return std::array{
      RecipeInfo{R::F32,       "F32",        0, F32::id,     F32::id,  F32::id},
      RecipeInfo{R::BF16,      "BF16",      32, BF16::id,    BF16::id, BF16::id},
      RecipeInfo{R::F16,       "F16",        1, F16::id,     F16::id,  F16::id},
      RecipeInfo{R::Q8_0,      "Q8_0",       7, Q8_0::id,    Q8_0::id, Q8_0::id},
      RecipeInfo{R::Q6_K,      "Q6_K",      18, Q6_K::id,    Q6_K::id, Q6_K::id},
      RecipeInfo{R::Q5_1,      "Q5_1",       9, Q5_1::id,    Q6_K::id, Q5_1::id},
      RecipeInfo{R::Q5_K_M,    "Q5_K_M",    17, Q5_K::id,    Q6_K::id, Q5_K::id},
      RecipeInfo{R::Q5_K_S,    "Q5_K_S",    16, Q5_K::id,    Q6_K::id, Q5_K::id},
      RecipeInfo{R::Q5_0,      "Q5_0",       8, Q5_0::id,    Q6_K::id, Q5_0::id},
      RecipeInfo{R::Q4_1,      "Q4_1",       3, Q4_1::id,    Q6_K::id, Q4_1::id},
      RecipeInfo{R::Q4_K_M,    "Q4_K_M",    15, Q4_K::id,    Q6_K::id, Q4_K::id},
      RecipeInfo{R::Q4_K_S,    "Q4_K_S",    14, Q4_K::id,    Q6_K::id, Q4_K::id},
      RecipeInfo{R::Q4_0,      "Q4_0",       2, Q4_0::id,    Q6_K::id, Q4_0::id},
      RecipeInfo{R::IQ4_NL,    "IQ4_NL",    25, IQ4_NL::id,  Q6_K::id, IQ4_NL::id},
      RecipeInfo{R::IQ4_XS,    "IQ4_XS",    30, IQ4_XS::id,  Q6_K::id, IQ4_XS::id},
      RecipeInfo{R::MXFP4_MOE, "MXFP4_MOE", 38, Q8_0::id,    Q8_0::id, Q8_0::id},
      RecipeInfo{R::Q3_K_L,    "Q3_K_L",    13, Q3_K::id,    Q6_K::id, Q3_K::id},
      RecipeInfo{R::Q3_K_M,    "Q3_K_M",    12, Q3_K::id,    Q6_K::id, Q3_K::id},
      RecipeInfo{R::IQ3_M,     "IQ3_M",     27, IQ3_S::id,   Q6_K::id, IQ3_S::id},
      RecipeInfo{R::Q3_K_S,    "Q3_K_S",    11, Q3_K::id,    Q6_K::id, Q3_K::id},
      RecipeInfo{R::IQ3_S,     "IQ3_S",     26, IQ3_S::id,   Q6_K::id, IQ3_S::id},
      RecipeInfo{R::IQ3_XS,    "IQ3_XS",    22, IQ3_S::id,   Q6_K::id, IQ3_S::id},
      RecipeInfo{R::IQ3_XXS,   "IQ3_XXS",   23, IQ3_XXS::id, Q5_K::id, IQ3_S::id},
      RecipeInfo{R::Q2_K,      "Q2_K",      10, Q2_K::id,    Q6_K::id, Q2_K::id},
      RecipeInfo{R::Q2_K_S,    "Q2_K_S",    21, Q2_K::id,    Q6_K::id, Q2_K::id},
      RecipeInfo{R::IQ2_M,     "IQ2_M",     29, IQ2_S::id,   Q5_K::id, IQ3_S::id},
      RecipeInfo{R::IQ2_S,     "IQ2_S",     28, IQ2_XS::id,  Q5_K::id, IQ3_S::id},
      RecipeInfo{R::IQ2_XS,    "IQ2_XS",    20, IQ2_XS::id,  Q5_K::id, Q2_K::id},
      RecipeInfo{R::Q2_0,      "Q2_0",      41, Q2_0::id,    Q6_K::id, Q4_K::id},
      RecipeInfo{R::TQ2_0,     "TQ2_0",     37, TQ2_0::id,   Q6_K::id, Q4_K::id},
      RecipeInfo{R::IQ2_XXS,   "IQ2_XXS",   19, IQ2_XXS::id, Q5_K::id, Q2_K::id},
      RecipeInfo{R::IQ1_M,     "IQ1_M",     31, IQ1_M::id,   Q5_K::id, Q2_K::id},
      RecipeInfo{R::TQ1_0,     "TQ1_0",     36, TQ1_0::id,   Q6_K::id, Q4_K::id},
      RecipeInfo{R::IQ1_S,     "IQ1_S",     24, IQ1_S::id,   Q5_K::id, Q2_K::id},
      RecipeInfo{R::Q1_0,      "Q1_0",      40, Q1_0::id,    Q6_K::id, Q1_0::id},
  };
}();
// clang-format on

/// The entry of a recipe.
[[nodiscard]] constexpr const RecipeInfo& info(Recipe recipe) noexcept {
  return recipes[static_cast<std::size_t>(recipe)];
}

/// Whether tensors become blocks: everything but the plain floats.
[[nodiscard]] constexpr bool is_quantized(format::Id id) noexcept {
  return id != format::F32::id && id != format::F16::id && id != format::BF16::id && id != format::F64::id;
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
