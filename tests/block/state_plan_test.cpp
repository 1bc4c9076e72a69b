// SPDX-License-Identifier: Apache-2.0

#include "mica/block/state_plan.hpp"

#include "io/temporary_folder.hpp"
#include "mica/block/layer.hpp"

#include <doctest/doctest.h>

namespace mica::test::state_plan_test {
namespace {

using block::Reach;

/// Stores keys and values, or reads those of a layer, through a window or not.
struct Reader {
  static constexpr std::string_view name = "reader";
  struct Config {
    std::size_t source = block::none;
    std::size_t window = 0;
  };
  static void plan(block::StatePlan& state, const Config& c) {
    if (c.source == block::none) state.store_kv(2, 8);
    state.read_kv(c.source, c.window == 0 ? Reach::all : Reach::window, c.window);
  }
};

struct Counter {
  static constexpr std::string_view name = "counter";
  using Config = std::size_t;
  static void plan(block::StatePlan& state, const Config& n) { state.keep_floats(n); }
};

}  // namespace

TEST_CASE("keys and values are as wide as the widest reader, and bounded where all see every token") {
  block::StatePlan state;
  const auto add = [&](std::size_t layer, Reader::Config config) {
    return state.place(layer, [&](block::StatePlan& s) { Reader::plan(s, config); });
  };
  CHECK(add(0, {.window = 5}).kv == 0);
  CHECK(add(1, {}).kv == 1);
  CHECK(add(2, {.source = 0, .window = 9}).kv == 0);
  CHECK(add(3, {.source = 1, .window = 9}).reader == 3);
  REQUIRE(state.kv().size() == 2);
  CHECK(state.kv()[0].window() == 9);
  CHECK_FALSE(state.kv()[0].seen_whole);
  CHECK(state.kv()[1].window() == 0);
  CHECK_FALSE(state.kv()[1].seen_whole);  // layer 3 has a window
  CHECK(state.readers()[3] == 1);
  CHECK(state.floats() == 0);
  const Error error = refusal([&] { add(4, {.source = 2}); });
  CHECK(mentions(error, "layer 4", "layer 2"));
}

TEST_CASE("keys and values that live for one layer share a place with those of their shape") {
  block::StatePlan state;
  const auto pass = [&](std::size_t layer, std::size_t heads) {
    return state.place(layer, [&](block::StatePlan& s) { s.pass_kv(heads, 8); }).kv;
  };
  CHECK(pass(0, 2) == 0);
  CHECK(state.place(1, [](block::StatePlan& s) { Reader::plan(s, {}); }).kv == 1);  // of the same shape, kept
  CHECK(pass(2, 2) == 0);
  CHECK(pass(3, 4) == 2);
  CHECK(pass(4, 2) == 0);
  REQUIRE(state.kv().size() == 3);
  CHECK(state.kv()[0].passes);
  CHECK(state.kv()[0].window() == 0);
  CHECK_FALSE(state.kv()[1].passes);
  CHECK(state.readers()[4] == 0);
}

TEST_CASE("a layer finds its blocks by type, and plans them in their order") {
  block::Layer layer;
  layer.add<Counter>(3);
  layer.add<Reader>({.window = 7});
  layer.add<Counter>(4);
  CHECK(layer.get<Counter>() == 3);  // the first
  CHECK(layer.get<Reader>().window == 7);
  layer.replace<Counter, Reader>({.window = 2});
  CHECK(layer.get<Counter>() == 4);
  CHECK(layer.get<Reader>().window == 2);
  block::StatePlan state;
  std::size_t last = 0;
  for (const block::Layer::Entry& entry : layer.blocks())
    last = state.place(0, [&](block::StatePlan& s) { entry.plan(s); }).floats;
  CHECK(last == 0);
  CHECK(state.floats() == 4);
  CHECK(state.kv().size() == 2);
  const block::Layer empty;
  CHECK_FALSE(empty.has<Reader>());
  CHECK(mentions(refusal([&] { static_cast<void>(empty.get<Reader>()); }), "reader"));
}

}  // namespace mica::test::state_plan_test
