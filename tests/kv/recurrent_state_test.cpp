// SPDX-License-Identifier: Apache-2.0

#include "mica/kv/recurrent_state.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/counting.hpp"
#include "mica/base/visit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

namespace mica::test::recurrent_state_test {
namespace {

using State = kv::RecurrentState<alloc::Aligned>;
using budget::Account;

/// Makes the state that of some tokens, and looks whether it is.
void become(State& state, std::size_t tokens) {
  std::fill_n(state.data(), state.size(), static_cast<float>(tokens));
}
bool is(State& state, std::size_t tokens) {
  return std::all_of(state.data(), state.data() + state.size(),
                     [&](float x) { return x == static_cast<float>(tokens); });
}

void run_to(State& state, std::size_t tokens) {
  become(state, tokens);
  state.save(tokens);
}

}  // namespace

TEST_CASE("a state begins with zeros") {
  State state({}, 37, 2);
  CHECK(state.size() == 37);
  CHECK(is(state, 0));
}

TEST_CASE("a state goes back to the latest checkpoint that is not after a position") {
  for (const std::size_t checkpoints : {3u, 7u}) {
    CAPTURE(checkpoints);
    State state({}, 5, checkpoints);
    for (const std::size_t tokens : {10u, 20u, 30u}) run_to(state, tokens);
    become(state, 35);
    CHECK(state.restore(34) == 30);
    CHECK(is(state, 30));
    CHECK(state.restore(30) == 30);
    CHECK(state.restore(29) == 20);
    CHECK(is(state, 20));
    CHECK(state.restore(12) == 10);
    CHECK(is(state, 10));
    CHECK(state.restore(9) == 0);
    CHECK(is(state, 0));
    CHECK(state.restore(1000) == 0);  // all others were of a text that was given up
  }
}

TEST_CASE("a state without checkpoints goes back to the beginning") {
  State state({}, 5, 0);
  run_to(state, 10);
  CHECK(is(state, 10));
  CHECK(state.restore(10) == 0);
  CHECK(is(state, 0));
}

TEST_CASE("when all places are taken, the checkpoint of the fewest tokens goes") {
  State state({}, 5, 2);
  for (const std::size_t tokens : {10u, 20u, 30u}) run_to(state, tokens);
  CHECK(state.restore(25) == 20);
  CHECK(state.restore(15) == 0);
  State one({}, 5, 1);
  for (const std::size_t tokens : {10u, 20u}) run_to(one, tokens);
  CHECK(one.restore(20) == 20);
  CHECK(is(one, 20));
  CHECK(one.restore(19) == 0);
}

TEST_CASE("a checkpoint of a text that was given up leaves its place first") {
  State state({}, 5, 3);
  for (const std::size_t tokens : {10u, 20u, 30u}) run_to(state, tokens);
  CHECK(state.restore(15) == 10);
  run_to(state, 18);
  run_to(state, 24);
  CHECK(state.restore(24) == 24);
  CHECK(state.restore(23) == 18);
  CHECK(state.restore(17) == 10);
  CHECK(is(state, 10));
}

TEST_CASE("the place for drafts has a copy when it is told so, and is neither a checkpoint nor in a file") {
  State state({}, 5, 1, true);
  CHECK(state.checkpoints() == 1);
  run_to(state, 10);
  REQUIRE(state.draft_copy() != nullptr);
  std::fill_n(state.draft_copy(), 5, 12.0f);
  state.set_draft_copy(12);
  CHECK(state.copies() == std::vector<std::size_t>{10});
  run_to(state, 20);
  CHECK(state.restore(15) == 12);
  CHECK(state.data()[0] == 12.0f);
  state.drop_draft_copy();
  CHECK(state.restore(11) == 0);  // its only checkpoint was replaced by that of 20
  CHECK(State({}, 5, 1).draft_copy() == nullptr);
  State none({}, 0, 1, true);
  CHECK(none.draft_copy() == nullptr);
  CHECK(none.checkpoints() == 0);
}

TEST_CASE("a model without recurrent layers has a state of nothing, whatever it asks for") {
  budget::Ledger ledger(0);
  using Booked = alloc::Budgeted<alloc::Aligned>;
  kv::RecurrentState<Booked> state(Booked(ledger, Account::kv), 0, 1000);
  CHECK(state.size() == 0);
  state.save(10);
  CHECK(state.restore(10) == 0);
}

TEST_CASE("state and checkpoints are booked under their names, dry as wet, and given back") {
  const auto peaks = [](auto type) {
    using A = typename decltype(type)::type;
    budget::Ledger ledger;
    {
      kv::RecurrentState<A> state(A(ledger, Account::kv), 100, 2, true);
      state.save(1);
      CHECK(state.restore(2) == 1);
    }
    CHECK(ledger.used() == 0);
    return ledger.peaks();
  };
  const auto wet = peaks(Type<alloc::Budgeted<alloc::Aligned>>{}), dry = peaks(Type<alloc::Counting>{});
  CHECK(wet.bytes == dry.bytes);
  CHECK(wet[Account::state] == 400);
  CHECK(wet[Account::checkpoints] == 1200);
  CHECK(wet[Account::kv] == 0);
}

TEST_CASE("a budget that is too small refuses, says of what, and keeps nothing") {
  using Booked = alloc::Budgeted<alloc::Aligned>;
  for (const std::size_t limit : {0u, 399u, 400u, 1599u}) {
    budget::Ledger ledger(limit);
    const Error error =
        refusal([&] { return kv::RecurrentState<Booked>(Booked(ledger, Account::kv), 100, 3); });
    CHECK(error.code() == ErrorCode::budget);
    CHECK(mentions(error, limit < 400 ? "state: 1 x 100" : "checkpoints: 3 x 100", "fewer checkpoints"));
    CHECK(ledger.used() == 0);
  }
  const std::size_t max_value = std::numeric_limits<std::size_t>::max();
  CHECK(refusal([&] { return State({}, 100, max_value); }).code() == ErrorCode::budget);
}

}  // namespace mica::test::recurrent_state_test
