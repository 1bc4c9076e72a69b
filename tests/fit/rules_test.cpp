// SPDX-License-Identifier: Apache-2.0
//
// Rules of other tools say what their pages say, and how far that is from what is true.

#include "mica_tools/fit/rules.hpp"

#include "fit/planned.hpp"

#include <doctest/doctest.h>

namespace mica::test::rules_test {

namespace rules = fit::rules;

TEST_CASE("the calculator's worked example: 13 B weights, a file of 15,000 MB, 8,192 tokens") {
  constexpr rules::Calculator example{
      .file_mb = 15000, .billions = 13, .layers = 32, .width = 4096, .tokens = 8192};
  CHECK(example.kv_mb() == doctest::Approx(4294.97).epsilon(1e-6));  // 4 * 4096 * 32 * 8192 bytes
  CHECK(example.overhead_mb() == doctest::Approx(410));
  CHECK(example.total_mb() == doctest::Approx(19704.97).epsilon(1e-6));
  // With eight of thirty-two heads, as a model of 32 layers and 4,096 numbers has (Llama 3.1 8B), a quarter of that.
  CHECK(rules::kv_mb(32, 8, 128, 8192, 4) == doctest::Approx(1073.74).epsilon(1e-5));
  CHECK(rules::kv_mb(32, 32, 128, 8192, 4) == doctest::Approx(example.kv_mb()));
  fit::Candidate llama = candidate("llama-8b");
  const plan::Plan plan = llama.plan({.n_ctx = 8192});
  CHECK(static_cast<double>(plan.accounts[budget::Account::kv]) / 1e6 ==
        doctest::Approx(1073.74).epsilon(0.001));
}

TEST_CASE("llmfit's memory: the figures of its pages") {
  // 7 B in Q4_K_M: 7 * 0.58 = 4.06; 0.000008 * 7 * 8192 = 0.46; and half a GB.
  CHECK(rules::llmfit_memory(7, "Q4_K_M", 0) == doctest::Approx(4.56));
  CHECK(rules::llmfit_kv_unknown(7, 8192) == doctest::Approx(0.459).epsilon(0.001));
  CHECK(rules::llmfit_memory(7, "Q4_K_M", rules::llmfit_kv_unknown(7, 8192)) ==
        doctest::Approx(5.019).epsilon(0.001));
  CHECK(rules::llmfit_kv(32, 8, 128, 8192, 2) == doctest::Approx(1.0));  // Llama 3.1 8B: one GiB
  CHECK(rules::llmfit_bytes_per_weight("IQ3_XS") == 0.58);               // not known
}

TEST_CASE("llmfit charges layers that keep a state as if they had keys and values: four times too much") {
  // Qwen3.5 9B: 32 layers, 4 KV heads of 256; 8 of the layers attend.
  const double theirs = rules::llmfit_kv(32, 4, 256, 32768, 2);
  fit::Candidate qwen = candidate("qwen3.5-9b");
  const plan::Plan plan = qwen.plan({.n_ctx = 32768});
  const double ours = static_cast<double>(plan.accounts[budget::Account::kv]) / rules::gib;
  CHECK(theirs == doctest::Approx(4.0));
  CHECK(ours == doctest::Approx(1.0).epsilon(0.01));
}

TEST_CASE("llmfit's speed: bandwidth on cards, a constant on processors") {
  // 1008 GB/s, 8 B in Q4_K_M: 1008 / (8 * 0.5) * 0.55
  CHECK(rules::llmfit_decode_on_card(1008, 8, rules::llmfit_speed_bytes_per_weight("Q4_K_M")) ==
        doctest::Approx(138.6));
  CHECK(rules::llmfit_decode_on_card(1008, 8, 0.5, 0.5) == doctest::Approx(69.3));
  CHECK(rules::llmfit_decode_on_cpu(7, "Q4_K_M", 2) == doctest::Approx(3.45));  // 70 / 7 * 1.15 * 0.3
  CHECK(rules::llmfit_decode_on_cpu(7, "Q8_0", 8) == doctest::Approx(2.64));    // 70 / 7 * 0.8 * 1.1 * 0.3
}

}  // namespace mica::test::rules_test
