// SPDX-License-Identifier: Apache-2.0
//
// The order of fits: the best model that is quick enough, and what makes a model better than another.

#include "mica_tools/fit/rank.hpp"

#include "fit/planned.hpp"
#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace mica::test::rank_test {
namespace {

using fit::Fit, fit::Level, fit::Mode, fit::Ranked, fit::Tier, fit::Use;

const Use& general = fit::use_of("general");

/// A made fit of a model of the catalogue.
Fit made_of(std::string_view name, double tokens = 20) {
  fit::Candidate one = candidate(name);
  const fit::Parts parameters = one.parameters();
  Fit fit = made_fit(parameters.all, tokens, 50);
  fit.name = name;
  fit.active = parameters.active;
  fit.experts = parameters.experts;
  fit.row = fit.model = one.row();
  return fit;
}

double quality(std::string_view name, std::string_view use = "general") {
  return fit::quality_of(made_of(name), fit::use_of(use)).total;
}

/// All models of the catalogue; their plans are shared by all machines with as many cores.
std::vector<fit::Candidate>& candidates() {
  static std::vector<fit::Candidate> all = [] {
    std::vector<fit::Candidate> each;
    for (const fit::Row& row : fit::catalogue) each.emplace_back(row, 2, planned);
    return each;
  }();
  return all;
}

Ranked first_of(const fit::Machine& machine, const Use& use) {
  const fit::Selector selector(machine, {0, use.min_decode});
  std::vector<Fit> fits;
  const auto bytes = static_cast<double>(machine.available_bytes + machine.vram_bytes);
  for (fit::Candidate& one : candidates()) {
    // Larger models would be streamed, and are not first where any model is in memory.
    if (one.weights(one.ladder().size() - 1).all < bytes) fits.push_back(selector.select(one));
  }
  return fit::ranked(std::move(fits), use).front();
}

}  // namespace

TEST_CASE("Qwen3 is as good as Qwen2.5 of the next size, as its report says") {
  // Qwen3 technical report, section 3.3: base models are comparable to those of a higher scale.
  constexpr std::pair<std::string_view, std::string_view> equals[] = {{"qwen3-1.7b", "qwen2.5-3b"},
                                                                      {"qwen3-4b", "qwen2.5-7b"},
                                                                      {"qwen3-8b", "qwen2.5-14b"},
                                                                      {"qwen3-14b", "qwen2.5-32b"},
                                                                      {"qwen3-32b", "qwen2.5-72b"}};
  for (const auto& each : equals) {
    CAPTURE(each.first);
    const double newer = quality(each.first), larger = quality(each.second);
    CHECK(newer >= larger);
    CHECK(newer < 1.5 * larger);
  }
}

TEST_CASE("a model of half a year later is as good as one with twice the weights") {
  CHECK(fit::date_factor({2025, 1}) == 1);
  CHECK(fit::date_factor({2025, 7}) == doctest::Approx(2));
  CHECK(fit::date_factor({2024, 1}) == doctest::Approx(0.25));
  CHECK(fit::date_factor({2026, 4}) == doctest::Approx(std::exp2(2.5)));
  CHECK(quality("llama-3.3-70b") > quality("llama-3.1-70b"));  // the same shape, five months later
  CHECK(quality("qwen3.5-9b") > quality("gemma2-9b"));
  CHECK(quality("qwen3-8b") > quality("llama2-13b"));
}

TEST_CASE("a mixture counts as a dense model between its active weights and all of them") {
  CHECK(fit::dense_weights(8e9, 8e9, 0) == 8e9);
  CHECK(fit::dense_weights(32e9, 2e9, 30e9) == doctest::Approx(8e9));
  CHECK(fit::dense_weights(7.5e9, 4.5e9, 0) == 4.5e9);  // tables
  CHECK(quality("qwen3-30b-a3b") > quality("qwen3-8b"));
  CHECK(quality("qwen3-30b-a3b") < quality("qwen3-32b"));
}

TEST_CASE("bits that are missing cost size: few down to four bits, much below three") {
  CHECK(fit::worth_of("Q8_0", 0) == 1);
  CHECK(fit::worth_of("Q4_K_M", 0) > 0.85);
  CHECK(fit::worth_of("Q2_K", 0) < 0.2);
  CHECK(fit::worth_of("IQ3_XXS", 3.06) == fit::worth_of("Q3_K_S", 0));  // by its bits
  // From Q8_0 to Q4_K_M a larger model is better, from Q4_K_M to Q2_K a smaller one.
  Fit large = made_fit(14e9, 20, 50), small = made_fit(8e9, 20, 50);
  large.worth = fit::worth_of("Q4_K_M", 0);
  CHECK(fit::quality_of(large, general).total > fit::quality_of(small, general).total);
  large.worth = fit::worth_of("Q2_K", 0);
  small.worth = fit::worth_of("Q4_K_M", 0);
  CHECK(fit::quality_of(large, general).total < fit::quality_of(small, general).total);
}

TEST_CASE("a model that was made for a use is before its siblings there, and behind them elsewhere") {
  constexpr std::pair<std::string_view, std::string_view> coders[] = {
      {"qwen2.5-coder-0.5b", "qwen2.5-0.5b"},
      {"qwen2.5-coder-7b", "qwen2.5-7b"},
      {"qwen2.5-coder-32b", "qwen2.5-72b"},
      {"qwen3-coder-30b-a3b", "qwen3-30b-a3b"},
      {"devstral-small", "mistral-small"}};
  for (const auto& each : coders) {
    CAPTURE(each.first);
    CHECK(quality(each.first, "coding") > quality(each.second, "coding"));
    for (const char* use : {"general", "chat", "reasoning"}) {
      CAPTURE(use);
      CHECK(quality(each.first, use) <= quality(each.second, use));
    }
  }
  CHECK(quality("deepseek-r1-distill-qwen-7b", "reasoning") > quality("qwen2.5-7b", "reasoning"));
  CHECK(quality("deepseek-r1-distill-qwen-7b") < quality("qwen2.5-7b"));
  CHECK(quality("qwen3-8b", "reasoning") == doctest::Approx(4 * quality("qwen3-8b")));  // it thinks
  CHECK(quality("gemma3-12b", "reasoning") == quality("gemma3-12b"));                   // it does not
  CHECK(mentions(refusal([] { return fit::use_of("poems").tokens; }),
                 "allowed: general coding chat reasoning"));
}

TEST_CASE("speed beyond that of the use and memory that remains count for nothing, quality does") {
  Fit good = made_fit(8e9, 5, 83), fast = made_fit(7e9, 500, 5);
  good.name = "good";
  fast.name = "fast";
  CHECK(fit::ranked({fast, good}, general).front().fit.name == "good");
  good.decode = 4.9;  // slower than a person reads
  CHECK(fit::ranked({fast, good}, general).front().fit.name == "fast");
  good.decode = 9.9;
  CHECK(fit::ranked({fast, good}, fit::use_of("reasoning")).front().fit.name == "fast");
}

TEST_CASE("a fit is quick with the speed, the context and the headroom of its use") {
  Fit fit = made_fit(8e9, 5, 83);
  CHECK(fit::tier_of(fit, general) == Tier::quick);
  CHECK(fit::tier_of(fit, fit::use_of("reasoning")) == Tier::limited);  // 10 tokens a second
  fit.setting.n_ctx = fit.requested = 4096;                             // trained for no more
  CHECK(fit::tier_of(fit, general) == Tier::quick);
  CHECK(fit::tier_of(fit, fit::use_of("coding")) == Tier::limited);
  fit.wanted = 4096;  // no more was requested
  CHECK(fit::tier_of(fit, fit::use_of("coding")) == Tier::quick);
  fit.level = Level::marginal;
  CHECK(fit::tier_of(fit, general) == Tier::limited);
}

TEST_CASE("what stays in memory comes before what is streamed, and that before what does not run") {
  Fit slow = made_fit(0.5e9, 1, 90), streamed = made_fit(70e9, 30, 90), tight = made_fit(70e9, 30, 150),
      tighter = made_fit(70e9, 30, 190);
  slow.name = "slow";
  streamed.name = "streamed";
  streamed.mode = Mode::streamed;
  streamed.level = Level::marginal;
  tight.name = "tight";
  tighter.name = "tighter";
  tight.level = tighter.level = Level::too_tight;
  const auto order = fit::ranked({tighter, tight, streamed, slow}, general);
  CHECK(order[0].fit.name == "slow");
  CHECK(order[0].tier == Tier::limited);
  CHECK(order[1].fit.name == "streamed");
  CHECK(order[2].fit.name == "tight");
  CHECK(order[3].fit.name == "tighter");
  CHECK(order[3].tier == Tier::too_tight);
}

TEST_CASE("slow fits are ordered by speed, equal ones by name, in whatever order they come") {
  std::vector<Fit> fits;
  for (const char* name : {"c", "a", "b", "faster", "better", "slow", "slower"}) {
    fits.push_back(made_fit(8e9, 50, 50));
    fits.back().name = name;
  }
  fits[3].decode = 60;
  fits[4].active = 9e9;
  fits[5].decode = 4;
  fits[6].decode = 3;
  fits[6].active = 90e9;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    std::shuffle(fits.begin(), fits.end(), random);
    std::string order;
    for (const Ranked& row : fit::ranked(fits, general)) order += row.fit.name + " ";
    CHECK(order == "better faster a b c slow slower ");
  }
}

TEST_CASE("a quantisation is chosen that is quick enough, and one of Q4_K_M where none is") {
  const fit::Machine plain = machine(32);  // 50 GB/s, of which 70 % are reached
  fit::Candidate nine = candidate("qwen3.5-9b"), large = candidate("qwen2-32b");
  CHECK(fit::Selector(plain, {}).select(nine).quantisation == "Q8_0");
  const Fit quick = fit::Selector(plain, {0, 5}).select(nine);
  CHECK(quick.quantisation != "Q8_0");
  CHECK(quick.decode >= 5);
  CHECK(quick.worth > fit::worth_of("Q3_K_M", 0));
  // The next better one is too slow.
  fit::Candidate better = candidate("qwen3.5-9b");
  REQUIRE(better.keep_only(nine.ladder()[quick.setting.quantisation - 1].name));
  CHECK(fit::Selector(plain, {0, 5}).select(better).decode < 5);
  // Fewer bits would be quick enough, but they are for memory.
  fit::Candidate twelve = candidate("gemma3-12b"), in_three = candidate("gemma3-12b");
  REQUIRE(in_three.keep_only("Q3_K_M"));
  CHECK(fit::Selector(plain, {0, 5}).select(in_three).decode >= 5);
  const Fit in_four = fit::Selector(plain, {0, 5}).select(twelve);
  CHECK(in_four.quantisation == "Q4_K_M");
  CHECK(in_four.decode < 5);
  const Fit slow = fit::Selector(plain, {0, 5}).select(large);
  CHECK(slow.decode < 5);
  CHECK(slow.quantisation == "Q4_K_M");
}

TEST_CASE("a card is left for a slower mode only if the model has fewer than four bits there") {
  // 26 B weights in Q5_K_M fit on 24 GiB; in Q8_0 they would run with experts beside the processor.
  fit::Candidate fits_well = candidate("gemma4-26b-a4b");
  const fit::Machine card = machine(64, 24);
  CHECK(fit::Selector(card, {0, 5}).select(fits_well).mode == Mode::gpu);
  // 47 B weights fit there in Q2_K alone.
  fit::Candidate fits_badly = candidate("mixtral-8x7b");
  CHECK(fit::Selector(card, {}).select(fits_badly).quantisation == "Q2_K");
  const Fit offloaded = fit::Selector(card, {0, 5}).select(fits_badly);
  CHECK(offloaded.mode == Mode::moe_offload);
  CHECK(offloaded.worth >= fit::worth_of("Q4_K_M", 0));
  CHECK(offloaded.decode >= 5);
}

TEST_CASE("more memory never gives a worse first choice") {
  for (const char* use : {"general", "reasoning"}) {
    for (const std::uint64_t vram : {0u, 12u}) {
      Tier tier = Tier::too_tight;
      double quality = 0;
      for (const std::uint64_t ram : {1u, 3u, 6u, 12u, 32u, 256u}) {
        const Ranked first = first_of(machine(ram, vram), fit::use_of(use));
        CAPTURE(use);
        CAPTURE(vram);
        CAPTURE(ram);
        CAPTURE(first.fit.name);
        CHECK(first.tier <= tier);
        if (first.tier == tier) CHECK(first.quality.total >= quality);
        tier = first.tier;
        quality = first.quality.total;
      }
      CHECK(tier == Tier::quick);
    }
  }
}

TEST_CASE("a larger card never gives a worse first choice, but for bits between Q8_0 and Q4_K_M") {
  const auto without_bits = [](const Ranked& row) {
    return row.quality.total / row.quality.worth * std::min(row.quality.worth, fit::worth_of("Q4_K_M", 0));
  };
  double quality = 0;
  for (const std::uint64_t vram : {0u, 4u, 8u, 12u, 16u, 24u, 32u, 48u, 80u}) {
    const Ranked first = first_of(machine(64, vram), general);
    CAPTURE(vram);
    CAPTURE(first.fit.name);
    CHECK(first.tier == Tier::quick);
    CHECK(without_bits(first) >= quality);
    quality = without_bits(first);
  }
}

TEST_CASE("a file is judged by the model whose name or shape it has") {
  const quantize::SyntheticModel eight(*arch::find_shape("qwen3-8b"), quantize::Recipe::Q4_K_M);
  fit::Candidate one(eight.document(), 2, planned);
  CHECK(one.row() == nullptr);
  REQUIRE(one.model() != nullptr);
  CHECK(one.model()->name == "qwen3-8b");
  const quantize::SyntheticModel stories(*arch::find_shape("stories-15m"), quantize::Recipe::Q8_0);
  fit::Candidate unknown(stories.document(), 2, planned);
  CHECK(unknown.model() == nullptr);
  const Fit fit = fit::Selector(machine(1), {}).select(unknown);
  CHECK(fit::quality_of(fit, general).total == doctest::Approx(15191712.0 / 1e9));
}

}  // namespace mica::test::rank_test
