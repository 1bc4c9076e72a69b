// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/fit/rank_plan.hpp"

#include "io/temporary_folder.hpp"
#include "mica_tools/fit/candidate.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::rank_plan_test {
namespace {

using plan::RankMachine, plan::RanksPlan;

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

struct Fixture {
  gguf::Document document =
      quantize::SyntheticModel(*arch::find_shape("llama-8b"), quantize::Recipe::Q4_K_M).document();
  plan::Question question = [] {
    plan::Question q;
    q.model = {.n_ctx = 2048, .chunk = 128, .log = {}};
    return q;
  }();

  [[nodiscard]] RanksPlan plan(const std::vector<RankMachine>& machines, plan::Network network = {}) const {
    return plan::plan_ranks(document, question, machines, network, fit::plan_within<>);
  }
};

std::vector<RankMachine> equal_machines(std::size_t n, std::uint64_t memory) {
  return std::vector<RankMachine>(n, {.name = "m", .memory_bytes = memory, .read_bytes = 20e9});
}

}  // namespace

TEST_CASE("equal machines have equal shares, and a token takes the time of one of them and of the network") {
  const Fixture f;
  const RanksPlan one = f.plan(equal_machines(1, 16 * gib)), four = f.plan(equal_machines(4, 4 * gib));
  CHECK(one.wire_seconds == 0);
  CHECK(one.latency_seconds == 0);
  CHECK(four.traffic.exchanges == 130);  // four in each of 32 layers, the embedding, logits
  for (const plan::RankPlan& rank : four.ranks) {
    CHECK(rank.share == doctest::Approx(0.25));
    CHECK(rank.plan.peak_bytes <= 4 * gib);
    CHECK(static_cast<double>(rank.plan.weight_bytes) ==
          doctest::Approx(static_cast<double>(one.ranks[0].plan.weight_bytes) / 4).epsilon(0.01));
    CHECK(rank.seconds == doctest::Approx(one.ranks[0].seconds / 4).epsilon(0.01));
  }
  CHECK(four.bytes_of(0) == doctest::Approx(four.traffic.bytes * 3 / 4));
  CHECK(four.wire_seconds == doctest::Approx(four.bytes_of(0) / 125e6));
  CHECK(four.latency_seconds == doctest::Approx(130 * 100e-6));
  CHECK(four.seconds() == doctest::Approx(four.ranks[0].seconds + four.wire_seconds + four.latency_seconds));
}

TEST_CASE("a machine that reads faster has more, as far as its memory holds it") {
  const Fixture f;
  std::vector<RankMachine> machines = equal_machines(2, 8 * gib);
  machines[0].read_bytes = 60e9;
  const RanksPlan fast = f.plan(machines);
  CHECK(fast.ranks[0].share == doctest::Approx(0.75).epsilon(0.05));
  CHECK(fast.ranks[0].seconds == doctest::Approx(fast.ranks[1].seconds).epsilon(0.15));
  machines[0].memory_bytes = 2 * gib;
  const RanksPlan small = f.plan(machines);
  CHECK(small.ranks[0].share < 0.45);
  CHECK(small.ranks[0].plan.peak_bytes <= 2 * gib);
  CHECK(small.ranks[0].plan.peak_bytes > 3 * gib / 2);
  CHECK(small.seconds() > fast.seconds());
}

TEST_CASE("machines that divide layers work one after the other, and exchange little") {
  Fixture f;
  const RanksPlan rows = f.plan(equal_machines(4, 4 * gib));
  f.question.choice.ranks = ranks::Several<ranks::AnyLink>(ranks::Division(), ranks::Split::layers);
  const RanksPlan layers = f.plan(equal_machines(4, 4 * gib));
  CHECK(layers.traffic.exchanges == 4);  // three times to the next one, and logits
  CHECK(layers.traffic.bytes == 3 * 4096 * 4 + 2 * 40 * 4);
  double work = 0;
  for (const plan::RankPlan& rank : layers.ranks) {
    CHECK(rank.share == doctest::Approx(0.25).epsilon(0.15));  // the last one has the output matrix
    CHECK(rank.plan.peak_bytes <= 4 * gib);
    work += rank.seconds;
  }
  CHECK(layers.seconds() == doctest::Approx(work + layers.traffic.bytes / 125e6 + 4 * 100e-6));
  CHECK(layers.seconds() > 2 * rows.seconds());
  std::vector<RankMachine> machines = equal_machines(2, 8 * gib);
  machines[1].memory_bytes = 2 * gib;
  const RanksPlan uneven = f.plan(machines);
  CHECK(uneven.ranks[1].plan.peak_bytes <= 2 * gib);
  CHECK(uneven.ranks[1].plan.peak_bytes > 3 * gib / 2);
  const auto slow = [&](ranks::Split split) {
    f.question.choice.ranks = ranks::Several<ranks::AnyLink>(ranks::Division(), split);
    return f.plan(equal_machines(2, 4 * gib), {12.5e6, 1e-3}).seconds();
  };
  CHECK(slow(ranks::Split::layers) < slow(ranks::Split::rows));  // 100 Mbit/s
}

TEST_CASE("what the memory of all machines does not hold is refused, or streamed from disks") {
  Fixture f;
  std::vector<RankMachine> machines = equal_machines(3, gib);
  const Error error = refusal([&] { return f.plan(machines); });
  CHECK(error.code() == ErrorCode::budget);
  CHECK(std::string(error.what()).find("the memory of these 3 machines holds ") != std::string::npos);
  f.question.choice.weights = paging::Choice::streamed;
  CHECK(refusal([&] { return f.plan(machines); }).code() == ErrorCode::usage);  // no disk is described
  for (RankMachine& machine : machines) machine.disk_bytes = 1e9;
  machines[2].disk_bytes = 3e9;
  const RanksPlan streamed = f.plan(machines);
  std::uint64_t streamed_bytes = 0;
  for (const plan::RankPlan& rank : streamed.ranks) {
    CHECK(rank.plan.peak_bytes <= gib);
    streamed_bytes += rank.plan.streamed_bytes;
  }
  CHECK(streamed_bytes > gib);
  CHECK(streamed.ranks[2].share > streamed.ranks[0].share);
  CHECK(streamed.ranks[2].seconds == doctest::Approx(streamed.ranks[0].seconds).epsilon(0.3));
}

}  // namespace mica::test::rank_plan_test
