// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/convert/change.hpp"

#include <doctest/doctest.h>

#include <set>

namespace mica::test::change_test {
namespace {

using convert::Config;
using convert::Json;
using convert::Order;
using Indices = std::vector<std::uint32_t>;

const Config& delta_config() {
  static const Config config(Json{{"linear_num_key_heads", 2},
                                  {"linear_num_value_heads", 4},
                                  {"linear_key_head_dim", 3},
                                  {"linear_value_head_dim", 2}},
                             "config.json");
  return config;
}

Indices order(Order order, std::uint64_t n, convert::Sizes sizes = {}) {
  return convert::indices(order, n, delta_config(), sizes, "w");
}

TEST_CASE("halves of a head become neighbours, head by head") {
  convert::Sizes sizes{};
  sizes.heads = 2;
  sizes.kv_heads = 1;
  CHECK(order(Order::q_pairs, 12, sizes) == Indices{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11});
  CHECK(order(Order::k_pairs, 6, sizes) == Indices{0, 3, 1, 4, 2, 5});
  CHECK_THROWS_WITH_AS(order(Order::q_pairs, 10, sizes), "w: 10 rows or columns; needed: a multiple of 4",
                       Error);
}

TEST_CASE("fused matrices come apart by halves or by turns") {
  CHECK(order(Order::first_half, 6) == Indices{0, 1, 2});
  CHECK(order(Order::second_half, 6) == Indices{3, 4, 5});
  CHECK(order(Order::even, 6) == Indices{0, 2, 4});
  CHECK(order(Order::odd, 6) == Indices{1, 3, 5});
  CHECK_THROWS_AS(order(Order::odd, 7), Error);
  CHECK_THROWS_AS(order(Order::first_half, 0), Error);
}

TEST_CASE("value heads go round the key heads instead of standing behind their own") {
  CHECK(order(Order::value_heads, 4) == Indices{0, 2, 1, 3});
  CHECK(order(Order::value_heads, 8) == Indices{0, 1, 4, 5, 2, 3, 6, 7});
  Indices wanted;
  for (std::uint32_t i = 0; i < 12; ++i) wanted.push_back(i);  // queries and keys stay
  for (const std::uint32_t i : {12u, 13u, 16u, 17u, 14u, 15u, 18u, 19u}) wanted.push_back(i);
  CHECK(order(Order::qkv_value_heads, 20) == wanted);
  CHECK_THROWS_AS(order(Order::qkv_value_heads, 21), Error);
  for (const std::uint64_t n : {0U, 6U})
    CHECK_THROWS_WITH_AS(order(Order::value_heads, n), doctest::Contains("a multiple of 4"), Error);
}

TEST_CASE("learned positions begin behind the row of the padding, if there is one") {
  const auto positions = [](const Json& json, std::uint64_t n) {
    return convert::indices(Order::behind_padding, n, Config(json, "config.json"), {}, "w");
  };
  CHECK(positions({{"pad_token_id", 1}}, 5) == Indices{2, 3, 4});
  CHECK(positions(Json::object(), 3) == Indices{0, 1, 2});
  CHECK_THROWS_WITH_AS((void)positions({{"pad_token_id", 1}}, 2), "w: 2 rows or columns; needed: more than 2",
                       Error);
}

TEST_CASE("groups of q, k, v and z are sorted by what they are, and nothing is lost") {
  // A group has 3 q, 3 k, 4 v, 4 z.
  CHECK(order(Order::grouped_qkv, 28) ==
        Indices{0, 1, 2, 14, 15, 16, 3, 4, 5, 17, 18, 19, 6, 7, 8, 9, 20, 21, 22, 23});
  CHECK(order(Order::grouped_z, 28) == Indices{10, 11, 12, 13, 24, 25, 26, 27});
  std::set<std::uint32_t> all;
  for (const Order each : {Order::grouped_qkv, Order::grouped_z}) {
    const Indices part = order(each, 28);
    all.insert(part.begin(), part.end());
  }
  CHECK(all.size() == 28);
  CHECK_THROWS_AS(order(Order::grouped_z, 27), Error);
}

TEST_CASE("head counts that make no delta net are refused") {
  const auto refused = [](int keys, int values) {
    Json json{{"linear_num_key_heads", keys},
              {"linear_num_value_heads", values},
              {"linear_key_head_dim", 3},
              {"linear_value_head_dim", 2}};
    const Config config(json, "config.json");
    CHECK_THROWS_AS((void)convert::indices(Order::value_heads, 4, config, {}, "w"), Error);
  };
  refused(0, 4);
  refused(3, 4);
  refused(2, 0);
}

TEST_CASE("functions of values are what they are called") {
  std::vector<float> values = {0.0F, 1.0F, -1.0F};
  convert::apply(convert::Function::same, values);
  CHECK(values[1] == 1.0F);
  convert::apply(convert::Function::plus_one, values);
  CHECK(values == std::vector<float>{1.0F, 2.0F, 0.0F});
  convert::apply(convert::Function::negative_exp, values);
  CHECK(values[2] == -1.0F);
  CHECK(values[0] == doctest::Approx(-2.718281828));
}

}  // namespace
}  // namespace mica::test::change_test
