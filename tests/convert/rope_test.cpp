// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/convert/rope.hpp"

#include "mica_tools/convert/families/gemma.hpp"
#include "mica_tools/convert/families/phi3.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace mica::test::rope_test {
namespace {

using convert::Config;
using convert::Json;
using convert::Rope;

Rope rope_of(const Config& config) { return convert::read_rope(config, {}); }

TEST_CASE("both spellings of a rotation mean the same") {
  const Config old(Json{{"rope_theta", 5e5}, {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}, "c");
  const Config now(Json{{"rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "linear"}, {"factor", 2.0}}}},
                   "c");
  for (const Config* const config : {&old, &now}) {
    const Rope rope = rope_of(*config);
    CHECK(rope.base == 5e5);
    CHECK(rope.type == "linear");
    CHECK(convert::scaling_real(*config, rope, "factor") == 2.0);
    CHECK_FALSE(rope.window_base);
  }
}

TEST_CASE("layers with windows have a base of their own") {
  const Config old(Json{{"rope_theta", 1e6}, {"rope_local_base_freq", 1e4}}, "c");
  const Config now(Json{{"rope_parameters",
                         {{"full_attention",
                           {{"rope_theta", 1e6}, {"rope_type", "default"}, {"partial_rotary_factor", 0.5}}},
                          {"sliding_attention", {{"rope_theta", 1e4}, {"rope_type", "default"}}}}}},
                   "c");
  CHECK(rope_of(old).window_base == 1e4);
  CHECK(rope_of(now).window_base == 1e4);
  CHECK(rope_of(now).base == 1e6);
  CHECK(rope_of(now).partial == 0.5);
  const Config full(Json{{"rope_parameters", {{"full_attention", {{"rope_theta", 1e6}}}}}}, "c");
  CHECK(rope_of(full).base == 1e6);
  CHECK_FALSE(rope_of(full).window_base);
}

TEST_CASE("a scaling has the type that its config names, old names among them, or none") {
  const auto type = [](const Json& scaling) {
    const Config config(Json{{"rope_scaling", scaling}}, "c");
    return rope_of(config).type;
  };
  CHECK(type({{"rope_type", "yarn"}, {"type", "linear"}}) == "yarn");
  CHECK(type({{"type", "su"}}) == "longrope");  // Phi-3's name before it was one of all models
  CHECK(type({{"type", "mrope"}}) == "default");
  CHECK(type({{"factor", 2.0}}) == "default");
  CHECK(rope_of(Config(Json::object(), "c")).type == "default");
}

TEST_CASE("the context before a scaling is in it or beside it") {
  const Config inside(Json{{"original_max_position_embeddings", 7},
                           {"rope_scaling", {{"original_max_position_embeddings", 4096}}}},
                      "c");
  const Config beside(Json{{"original_max_position_embeddings", 4096}, {"rope_scaling", {{"type", "su"}}}},
                      "c");
  CHECK(convert::original_context(inside, rope_of(inside)) == 4096);
  CHECK(convert::original_context(beside, rope_of(beside)) == 4096);
  const Config nowhere(Json{{"rope_scaling", {{"type", "su"}}}}, "c");
  CHECK_THROWS_WITH_AS((void)convert::original_context(nowhere, rope_of(nowhere)),
                       "c: key 'original_max_position_embeddings' is missing", Error);
}

TEST_CASE("a rotation that makes no sense is refused") {
  CHECK_THROWS_AS(rope_of(Config(Json{{"rope_theta", 0}}, "c")), Error);
  CHECK_THROWS_AS(rope_of(Config(Json{{"partial_rotary_factor", 2.0}}, "c")), Error);
  CHECK_THROWS_AS(rope_of(Config(Json{{"rope_scaling", {{"type", 3}}}}, "c")), Error);
}

std::vector<float> llama3(double low, double high, unsigned context) {
  const Config config(Json{{"rope_theta", 500000.0},
                           {"rope_scaling",
                            {{"rope_type", "llama3"},
                             {"factor", 8.0},
                             {"low_freq_factor", low},
                             {"high_freq_factor", high},
                             {"original_max_position_embeddings", context}}}},
                      "c");
  convert::Sizes sizes{};
  sizes.head_dim = 128;
  return convert::llama3_factors(config, rope_of(config), sizes);
}

TEST_CASE("Llama 3.1's factors leave short waves, stretch long ones and rise between") {
  const auto factors = llama3(1, 4, 8192);
  REQUIRE(factors.size() == 64);
  CHECK(factors.front() == 1.0F);
  CHECK(factors.back() == 8.0F);
  for (std::size_t i = 1; i < factors.size(); ++i) CHECK(factors[i] >= factors[i - 1]);
  // Pair 31: wave 2 pi 500000^(62/128) = 3620 fits 2.263 times, a blend of (2.263 - 1) / 3.
  const double blend = (8192 / (2 * std::acos(-1.0) * std::pow(500000.0, 62.0 / 128)) - 1) / 3;
  CHECK(factors[31] == doctest::Approx(1 / ((1 - blend) / 8 + blend)));
}

TEST_CASE("without room for a blend the factors jump") {
  const auto factors = llama3(1, 1, 8192);
  for (const float factor : factors) CHECK((factor == 1.0F || factor == 8.0F));
  CHECK_THROWS_AS(llama3(4, 1, 8192), Error);
}

TEST_CASE("a stretched context multiplies attention by what Phi-3 says") {
  using convert::families::detail::longrope_factor;
  CHECK(longrope_factor(4096, 4096) == 1.0);
  CHECK(longrope_factor(4096, 1) == 1.0);
  CHECK(longrope_factor(131072, 4096) == doctest::Approx(1.190238));  // the published model's
}

TEST_CASE("the quantile of the normal distribution has the published value") {
  using convert::families::detail::normal_quantile;
  CHECK(static_cast<float>(normal_quantile(0.95)) == 1.6448536F);
  CHECK(normal_quantile(0.5) == doctest::Approx(0.0));
  CHECK(normal_quantile(0.025) == doctest::Approx(-1.959963985));
}

}  // namespace
}  // namespace mica::test::rope_test
