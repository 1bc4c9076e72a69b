// SPDX-License-Identifier: Apache-2.0
//
// The tensors that get another format than most: one table for all recipes. The choices are those of
// llama-quantize, so that files of the same name have the same formats. Errors of values and of the last
// matrix of a feed-forward spread most; the first and last layers, and every third between, get more bits
// than the rest.
#pragma once

#include "mica_tools/quantize/recipe.hpp"
#include "mica_tools/quantize/tensor_role.hpp"

#include <cstdint>
#include <initializer_list>
#include <span>

namespace mica::quantize {

/// The facts of a model that rules use.
struct MixFacts {
  std::size_t layers = 0;             // block_count
  std::size_t experts = 0;            // of a layer; 0: dense
  std::size_t heads_per_kv_head = 0;  // in the first layer
  bool falcon = false;                // of that family
  bool of_70b = false;                // 80 layers of shared keys and values
  bool importance = false;            // whether there is an importance matrix
};

/// The place of a tensor among those of its role.
struct MixPlace {
  std::size_t index = 0;  // by its layer or by count
  std::size_t count = 0;  // of all of them
};

namespace detail {

using RecipeSet = std::uint64_t;

[[nodiscard]] constexpr RecipeSet set_of(std::initializer_list<Recipe> recipes) noexcept {
  RecipeSet set = 0;
  for (const Recipe each : recipes) set |= RecipeSet{1} << static_cast<unsigned>(each);
  return set;
}
[[nodiscard]] constexpr bool has(RecipeSet set, Recipe recipe) noexcept {
  return (set >> static_cast<unsigned>(recipe) & 1) != 0;
}

/// Which layers a rule is for.
enum class Where : std::uint8_t {
  all,
  first_two,
  first_four,
  first_sixteenth,
  first_eighth,
  middle,
  more_bits
};

/// The conditions of a rule; all must be true.
enum Needs : std::uint8_t {
  nothing = 0,
  grouped = 1,  // four query heads or more share a key
  many = 2,     // grouped, or four experts or more
  eight_experts = 4,
  other_experts = 8,  // any number but eight
  falcon = 16,
  not_falcon = 32,
  unweighted = 64,  // without importance
  weighted = 128,
};

struct Rule {
  RecipeSet recipes;
  std::uint8_t needs;
  Where where;
  format::Id format;
};

[[nodiscard]] constexpr bool is_at(Where where, MixPlace place) noexcept {
  const auto [i, n] = place;
  // clang-format off
  switch (where) {
    case Where::all:             return true;
    case Where::first_two:       return i < 2;
    case Where::first_four:      return i < 4;
    case Where::first_sixteenth: return i < n / 16;
    case Where::first_eighth:    return i < n / 8;
    case Where::middle:          return i >= n / 8 && i < 7 * n / 8;
    case Where::more_bits:       return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
  }
  // clang-format on
  return false;
}

[[nodiscard]] constexpr bool is_true_of(std::uint8_t needs, const MixFacts& facts) noexcept {
  const bool is_grouped = facts.heads_per_kv_head >= 4;
  const auto fails = [&](Needs need, bool holds) { return (needs & need) != 0 && !holds; };
  return !fails(grouped, is_grouped) && !fails(many, is_grouped || facts.experts >= 4) &&
         !fails(eight_experts, facts.experts == 8) && !fails(other_experts, facts.experts != 8) &&
         !fails(falcon, facts.falcon) && !fails(not_falcon, !facts.falcon) &&
         !fails(unweighted, !facts.importance) && !fails(weighted, facts.importance);
}

using R = Recipe;
using format::IQ2_S, format::IQ2_XXS, format::IQ3_S, format::IQ3_XXS, format::Q2_K, format::Q3_K,
    format::Q4_1, format::Q4_K, format::Q5_1, format::Q5_K, format::Q6_K, format::Q8_0;
using W = Where;

inline constexpr RecipeSet lowest = set_of({R::IQ2_XXS, R::IQ2_XS, R::IQ2_S, R::IQ2_M, R::IQ1_S, R::IQ1_M});
inline constexpr RecipeSet low_two = set_of({R::IQ2_S, R::IQ2_M});
inline constexpr RecipeSet low_one = set_of({R::IQ1_S, R::IQ1_M});
inline constexpr RecipeSet any_other = ~lowest;
inline constexpr RecipeSet four_levels = set_of({R::IQ4_NL, R::IQ4_XS});
inline constexpr RecipeSet medium = set_of({R::Q4_K_M, R::Q5_K_M});

// The first rule that holds is taken.
// clang-format off
inline constexpr Rule value_rules[] = {
    {lowest,                          many,          W::all,        Q4_K::id},
    {low_two,                         nothing,       W::all,        IQ3_S::id},
    {lowest,                          nothing,       W::all,        Q2_K::id},
    {any_other,                       eight_experts, W::all,        Q8_0::id},
    {set_of({R::Q2_K, R::Q2_K_S}),    grouped,       W::all,        Q4_K::id},
    {set_of({R::Q2_K}),               nothing,       W::all,        Q3_K::id},
    {set_of({R::IQ3_XXS, R::IQ3_XS, R::IQ3_S}), grouped, W::all,    Q4_K::id},
    {set_of({R::IQ3_XXS}),            unweighted,    W::all,        IQ3_S::id},
    {set_of({R::IQ3_M}),              nothing,       W::all,        Q4_K::id},
    {set_of({R::Q3_K_M}),             nothing,       W::first_two,  Q5_K::id},
    {set_of({R::Q3_K_M}),             nothing,       W::all,        Q4_K::id},
    {set_of({R::Q3_K_L}),             nothing,       W::all,        Q5_K::id},
    {four_levels,                     grouped,       W::all,        Q5_K::id},
    {medium,                          nothing,       W::more_bits,  Q6_K::id},
    {set_of({R::Q4_K_S}),             nothing,       W::first_four, Q5_K::id},
};

inline constexpr Rule key_rules[] = {
    {lowest,                          eight_experts, W::all,        Q4_K::id},
    {any_other,                       eight_experts, W::all,        Q8_0::id},
    {set_of({R::IQ3_XS}),             nothing,       W::all,        IQ3_XXS::id},
    {set_of({R::IQ3_XXS}),            nothing,       W::all,        IQ2_S::id},
};

inline constexpr Rule query_rules[] = {
    {set_of({R::IQ3_XS}),             nothing,       W::all,        IQ3_XXS::id},
    {set_of({R::IQ3_XXS}),            nothing,       W::all,        IQ2_S::id},
};

inline constexpr Rule attention_out_rules[] = {
    {lowest,                          eight_experts, W::all,        Q5_K::id},
    {low_one,                         nothing,       W::all,        IQ2_XXS::id},
    {low_two,                         nothing,       W::all,        IQ3_S::id},
    {set_of({R::Q3_K_L}),             falcon,        W::all,        Q4_K::id},
    {set_of({R::Q2_K, R::IQ3_XS, R::IQ3_XXS, R::Q3_K_S, R::Q3_K_M, R::IQ4_NL, R::Q4_K_S, R::Q4_K_M, R::IQ3_S,
             R::IQ3_M, R::IQ4_XS}),   eight_experts | not_falcon, W::all, Q5_K::id},
    {set_of({R::Q2_K}),               not_falcon,    W::all,        Q3_K::id},
    {set_of({R::IQ3_XXS}),            not_falcon,    W::all,        IQ3_S::id},
    {set_of({R::Q3_K_M, R::IQ3_M}),   not_falcon,    W::all,        Q4_K::id},
    {set_of({R::Q3_K_L}),             other_experts | not_falcon, W::all, Q5_K::id},
};

inline constexpr Rule down_rules[] = {
    {low_two,                         nothing,       W::first_eighth, IQ3_S::id},
    {lowest,                          nothing,       W::first_eighth, Q2_K::id},
    {set_of({R::Q2_K}),               nothing,       W::all,          Q3_K::id},
    {set_of({R::Q2_K_S}),             nothing,       W::first_eighth, Q4_K::id},
    {set_of({R::IQ3_XXS}),            unweighted,    W::first_eighth, Q4_K::id},
    {set_of({R::IQ3_XXS}),            unweighted,    W::all,          Q3_K::id},
    {set_of({R::Q3_K_M}),             nothing,       W::first_sixteenth, Q5_K::id},
    {set_of({R::Q3_K_M}),             not_falcon,    W::all,          Q4_K::id},
    {set_of({R::Q3_K_M}),             nothing,       W::more_bits,    Q4_K::id},
    {set_of({R::IQ3_M}),              nothing,       W::first_eighth, Q4_K::id},
    {set_of({R::IQ3_M}),              eight_experts, W::more_bits,    Q4_K::id},
    {set_of({R::Q3_K_L}),             falcon,        W::all,          Q4_K::id},
    {set_of({R::Q3_K_L}),             nothing,       W::all,          Q5_K::id},
    {set_of({R::Q4_K_M}),             falcon,        W::first_sixteenth, Q6_K::id},
    {set_of({R::Q4_K_M}),             falcon,        W::more_bits,    Q5_K::id},
    {set_of({R::Q4_K_M}),             not_falcon,    W::more_bits,    Q6_K::id},
    {four_levels,                     unweighted,    W::first_eighth, Q5_K::id},
    {set_of({R::Q5_K_M}),             nothing,       W::more_bits,    Q6_K::id},
    {set_of({R::Q4_K_S}),             not_falcon,    W::first_eighth, Q5_K::id},
    {set_of({R::Q4_0}),               weighted,      W::first_eighth, Q4_1::id},
    {set_of({R::Q5_0}),               weighted,      W::first_eighth, Q5_1::id},
};

inline constexpr Rule gate_and_up_rules[] = {
    {set_of({R::IQ3_XS}),             nothing,       W::middle,       IQ3_XXS::id},
};
// clang-format on

[[nodiscard]] constexpr std::span<const Rule> rules_of(TensorRole role) noexcept {
  // clang-format off
  switch (role) {
    case TensorRole::value:         return value_rules;
    case TensorRole::key:           return key_rules;
    case TensorRole::query:         return query_rules;
    case TensorRole::attention_out: return attention_out_rules;
    case TensorRole::down:          return down_rules;
    case TensorRole::up:
    case TensorRole::gate:          return gate_and_up_rules;
    case TensorRole::head:
    case TensorRole::embedding:
    case TensorRole::other:         return {};
  }
  // clang-format on
  return {};
}

}  // namespace detail

/// The format of a matrix inside of a layer, before its width is considered.
[[nodiscard]] constexpr format::Id format_by_rule(Recipe recipe, TensorRole role, MixPlace place,
                                                  const MixFacts& facts) noexcept {
  format::Id format = info(recipe).base;
  for (const detail::Rule& rule : detail::rules_of(role)) {
    if (!detail::has(rule.recipes, recipe) || !detail::is_true_of(rule.needs, facts)) continue;
    if (!detail::is_at(rule.where, place)) continue;
    format = rule.format;
    break;
  }
  // There the values are an eighth of the queries: more bits for them cost next to nothing.
  const bool small = role == TensorRole::value && facts.of_70b && !detail::has(detail::lowest, recipe);
  return small && (format == format::Q3_K::id || format == format::Q4_K::id) ? format::Q5_K::id : format;
}

}  // namespace mica::quantize
