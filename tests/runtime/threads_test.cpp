// SPDX-License-Identifier: Apache-2.0
//
// Threads as the headers allow them: the sessions of one model take turns under a lock of the program; a tokenizer
// needs none. Run under the preset tsan, this shows races.

#include "io/temporary_folder.hpp"
#include "mica/arch/llama.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/session.hpp"
#include "model/run_model.hpp"
#include "model/tiny_model.hpp"
#include "runtime/scripted_model.hpp"

#include <doctest/doctest.h>

#include <array>
#include <mutex>
#include <thread>

namespace mica::test::threads_test {
namespace {

using Threaded = Transformer<arch::Llama, WithExecutor<exec::Team>>;

constexpr std::size_t steps = 12;

/// Feeds the ids one by one, and collects the sums of the logits. Each step with its logits is a turn.
std::vector<float> logits_of(Session<Threaded>& session, std::span<const TokenId> ids, std::mutex& turn) {
  std::vector<float> all;
  for (const TokenId& id : ids) {
    const std::lock_guard lock(turn);
    REQUIRE(session.feed(std::span(&id, 1)) == model::StepStatus::ok);
    const auto row = session.logits();
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

}  // namespace

TEST_CASE("two threads with a session each of one model get what one thread gets, if they take turns") {
  TinyModel tiny{Recipe{}};
  exec::Team team(2);
  Threaded model(tiny.document(), team, {.n_ctx = 64, .chunk = 8, .log = {}});
  const std::array ids = {random_ids(steps, 67, 1), random_ids(steps, 67, 2)};
  std::mutex turn;
  std::array<std::vector<float>, 2> expected, found;
  for (std::size_t i = 0; i < 2; ++i) {
    Session<Threaded> session(model);
    expected[i] = logits_of(session, ids[i], turn);
  }
  Session<Threaded> first(model), second(model);
  const auto work = [&](std::size_t i) { found[i] = logits_of(i == 0 ? first : second, ids[i], turn); };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (std::size_t i = 0; i < 2; ++i) CHECK(same_bits(found[i], expected[i]));
}

TEST_CASE("one tokenizer encodes and decodes on several threads without a lock") {
  const text::Spm tokenizer = byte_tokenizer();
  const auto work = [&](std::size_t& tokens) {
    for (int i = 0; i < 50; ++i) tokens += tokenizer.encode("Once upon a time", {.add_special = true}).size();
  };
  std::array<std::size_t, 2> tokens{};
  std::thread other(work, std::ref(tokens[1]));
  work(tokens[0]);
  other.join();
  CHECK(tokens[0] == 50 * 23);  // BOS, 13 letters, and three bytes for each space
  CHECK(tokens[1] == tokens[0]);
}

}  // namespace mica::test::threads_test
