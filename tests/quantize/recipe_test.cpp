// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/recipe.hpp"

#include <doctest/doctest.h>

#include <set>

namespace mica::test::recipe_test {

using quantize::find_recipe;
using quantize::Recipe;

TEST_CASE(
    "recipes are found by name in any case, by the name of a K format, and by the number of a file type") {
  CHECK(find_recipe("Q4_K_M") == Recipe::Q4_K_M);
  CHECK(find_recipe("q4_k_s") == Recipe::Q4_K_S);
  CHECK(find_recipe("Q4_K") == Recipe::Q4_K_M);
  CHECK(find_recipe("q3_k") == Recipe::Q3_K_M);
  CHECK(find_recipe("Q5_K") == Recipe::Q5_K_M);
  CHECK(find_recipe("Q2_K") == Recipe::Q2_K);
  CHECK(find_recipe("mxfp4") == Recipe::MXFP4_MOE);
  CHECK(find_recipe("15") == Recipe::Q4_K_M);
  CHECK(find_recipe("0") == Recipe::F32);
  CHECK_FALSE(find_recipe("Q4_K_X"));
  CHECK_FALSE(find_recipe("15x"));
  CHECK_FALSE(find_recipe("4"));
  CHECK_FALSE(find_recipe(""));
}

TEST_CASE("no two recipes share a name or a file type") {
  std::set<std::string_view> names;
  std::set<std::uint32_t> types;
  for (const quantize::RecipeInfo& each : quantize::recipes) {
    CAPTURE(each.name);
    CHECK(names.insert(each.name).second);
    CHECK(types.insert(each.file_type).second);
    CHECK(find_recipe(each.name) == each.recipe);
  }
}

}  // namespace mica::test::recipe_test
