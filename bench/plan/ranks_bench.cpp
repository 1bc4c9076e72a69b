// SPDX-License-Identifier: Apache-2.0
//
// Tables of docs/ranks.md: tokens a second of published shapes on equal machines, by the arithmetic of
// mica plan --ranks (mica_tools/fit/rank_plan.hpp). Nothing is run.
//
//   ranks_bench [GB/s that a machine reads, 20 by default]
#include "mica_tools/fit/candidate.hpp"
#include "mica_tools/fit/rank_plan.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  using namespace mica;
  struct Link {
    const char* name;
    plan::Network network;
    ranks::Split split = ranks::Split::rows;
  };
  const Link links[] = {{"100 Mbit/s, 1 ms; layers", {12.5e6, 1e-3}, ranks::Split::layers},
                        {"100 Mbit/s, 1 ms", {12.5e6, 1e-3}},
                        {"1 Gbit/s, 100 us", {125e6, 100e-6}},
                        {"10 Gbit/s, 30 us", {1.25e9, 30e-6}},
                        {"100 Gbit/s, 5 us", {12.5e9, 5e-6}}};
  constexpr std::size_t counts[] = {1, 2, 4, 8, 16};
  const double reads = 1e9 * (argc > 1 ? std::atof(argv[1]) : 20);
  if (reads <= 0) return std::fputs("the rate is a number above 0\n", stderr), 2;
  std::printf("| model, Q4_K_M | network | 1 rank | 2 | 4 | 8 | 16 | most weights of a rank of 16 |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const char* const name : {"llama-8b", "llama-70b", "qwen3-235b-a22b"}) {
    const auto document =
        quantize::SyntheticModel(*arch::find_shape(name), quantize::Recipe::Q4_K_M).document();
    plan::Question question;
    question.model = {.n_ctx = 4096, .log = {}};
    for (const Link& link : links) {
      question.choice.ranks = ranks::Several<ranks::AnyLink>(ranks::Division(), link.split);
      std::string row;
      std::uint64_t weights = 0;
      for (const std::size_t n : counts) {
        const std::vector<plan::RankMachine> machines(n, {"", std::uint64_t{1} << 42, reads, 0});
        const auto planned = plan::plan_ranks(document, question, machines, link.network, fit::plan_within<>);
        char cell[32];
        std::snprintf(cell, sizeof cell, " %.1f |", 1 / planned.seconds());
        row += cell;
        weights = 0;
        for (const plan::RankPlan& rank : planned.ranks) weights = std::max(weights, rank.plan.weight_bytes);
      }
      std::printf("| %s | %s |%s %s |\n", name, link.name, row.c_str(), budget::size_text(weights).c_str());
    }
  }
  return 0;
}
