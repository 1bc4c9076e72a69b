// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/mix_rules.hpp"

#include <doctest/doctest.h>

namespace mica::test::mix_rules_test {

using format::Id;
using quantize::format_by_rule;
using quantize::MixFacts;
using quantize::Recipe;
using quantize::TensorRole;

// A dense model of 32 layers, two query heads a key.
constexpr MixFacts dense{.layers = 32, .heads_per_kv_head = 2};
constexpr MixFacts grouped{.layers = 32, .heads_per_kv_head = 8};
constexpr MixFacts mixtral{.layers = 32, .experts = 8, .heads_per_kv_head = 4};

// Pure functions are tested by the compiler.
static_assert(format_by_rule(Recipe::Q4_K_M, TensorRole::value, {0, 32}, dense) == format::Q6_K::id);
static_assert(format_by_rule(Recipe::Q4_K_M, TensorRole::value, {4, 32}, dense) == format::Q4_K::id);
static_assert(format_by_rule(Recipe::Q4_K_M, TensorRole::value, {6, 32}, dense) == format::Q6_K::id);
static_assert(format_by_rule(Recipe::Q4_K_M, TensorRole::down, {28, 32}, dense) == format::Q6_K::id);
static_assert(format_by_rule(Recipe::Q4_K_M, TensorRole::up, {0, 32}, dense) == format::Q4_K::id);
static_assert(format_by_rule(Recipe::Q4_K_S, TensorRole::value, {3, 32}, dense) == format::Q5_K::id);
static_assert(format_by_rule(Recipe::Q4_K_S, TensorRole::value, {4, 32}, dense) == format::Q4_K::id);
static_assert(format_by_rule(Recipe::Q2_K, TensorRole::value, {9, 32}, dense) == format::Q3_K::id);
static_assert(format_by_rule(Recipe::Q2_K, TensorRole::value, {9, 32}, grouped) == format::Q4_K::id);
static_assert(format_by_rule(Recipe::Q3_K_M, TensorRole::down, {1, 32}, dense) == format::Q5_K::id);
static_assert(format_by_rule(Recipe::Q3_K_M, TensorRole::down, {2, 32}, dense) == format::Q4_K::id);
static_assert(format_by_rule(Recipe::Q8_0, TensorRole::down, {2, 32}, dense) == format::Q8_0::id);

TEST_CASE("eight experts share their attention, which gets more") {
  for (const Recipe recipe : {Recipe::Q4_0, Recipe::Q4_K_M, Recipe::Q6_K, Recipe::IQ4_XS}) {
    CHECK(format_by_rule(recipe, TensorRole::value, {9, 32}, mixtral) == format::Q8_0::id);
    CHECK(format_by_rule(recipe, TensorRole::key, {9, 32}, mixtral) == format::Q8_0::id);
  }
  CHECK(format_by_rule(Recipe::Q4_K_M, TensorRole::attention_out, {9, 32}, mixtral) == format::Q5_K::id);
  CHECK(format_by_rule(Recipe::IQ2_XS, TensorRole::attention_out, {9, 32}, mixtral) == format::Q5_K::id);
  CHECK(format_by_rule(Recipe::IQ2_XS, TensorRole::key, {9, 32}, mixtral) == format::Q4_K::id);
}

TEST_CASE("importance makes some of the extra bits unnecessary, and others necessary") {
  MixFacts weighted = dense;
  weighted.importance = true;
  CHECK(format_by_rule(Recipe::IQ4_XS, TensorRole::down, {0, 32}, dense) == format::Q5_K::id);
  CHECK(format_by_rule(Recipe::IQ4_XS, TensorRole::down, {0, 32}, weighted) == format::IQ4_XS::id);
  CHECK(format_by_rule(Recipe::Q4_0, TensorRole::down, {0, 32}, dense) == format::Q4_0::id);
  CHECK(format_by_rule(Recipe::Q4_0, TensorRole::down, {0, 32}, weighted) == format::Q4_1::id);
}

TEST_CASE("eighty layers of small values get five bits where they would get fewer") {
  MixFacts large{.layers = 80, .heads_per_kv_head = 8};
  large.of_70b = true;
  CHECK(format_by_rule(Recipe::Q4_K_S, TensorRole::value, {40, 80}, large) == format::Q5_K::id);
  CHECK(format_by_rule(Recipe::Q3_K_S, TensorRole::value, {40, 80}, large) == format::Q5_K::id);
  CHECK(format_by_rule(Recipe::Q6_K, TensorRole::value, {40, 80}, large) == format::Q6_K::id);
  CHECK(format_by_rule(Recipe::IQ2_XS, TensorRole::value, {40, 80}, large) == format::Q4_K::id);
  CHECK(format_by_rule(Recipe::Q4_K_S, TensorRole::down, {40, 80}, large) == format::Q4_K::id);
}

TEST_CASE("a model without layers or heads has a format for everything") {
  for (const quantize::RecipeInfo& each : quantize::recipes) {
    for (int part = 0; part <= static_cast<int>(TensorRole::other); ++part) {
      const Id id = format_by_rule(each.recipe, static_cast<TensorRole>(part), {0, 0}, MixFacts{});
      CHECK(format::info(id).block_size > 0);
    }
  }
}

}  // namespace mica::test::mix_rules_test
