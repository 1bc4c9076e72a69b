// SPDX-License-Identifier: Apache-2.0
//
// The planner of all families, compiled once, and the fits of tests.

#pragma once

#include "mica_tools/fit/rank.hpp"

#include <cstdint>
#include <string_view>

namespace mica::test {

inline constexpr std::uint64_t GiB = std::uint64_t{1} << 30;

/// fit::plan_within of all families.
[[nodiscard]] plan::Plan planned(const gguf::Document& document, plan::Question question,
                                 std::uint64_t budget_bytes);

[[nodiscard]] inline fit::Candidate candidate(std::string_view name, bool mlx = false) {
  return {fit::row_of(name), 2, planned, mlx};
}

/// A machine of so many GiB, of which nine tenths are available; with a card where vram is not 0.
[[nodiscard]] inline fit::Machine machine(std::uint64_t ram, std::uint64_t vram = 0) {
  fit::Description said;
  said.ram_bytes = ram * GiB;
  if (vram != 0) said.vram_bytes = vram * GiB;
  said.cores = 2;
  return fit::described({}, said);
}

[[nodiscard]] inline fit::Fit fit_of(std::string_view name, const fit::Machine& machine,
                                     fit::Request requested = {}) {
  fit::Candidate one = candidate(name);
  return fit::Selector(machine, requested).select(one);
}

/// A fit of a dense model: its weights, tokens per second, and the bytes that it needs of 100.
[[nodiscard]] inline fit::Fit made_fit(double parameters, double tokens, std::uint64_t need,
                                       std::size_t n_ctx = 8192) {
  fit::Fit fit;
  fit.name = "made";
  fit.parameters = fit.active = parameters;
  fit.decode = tokens;
  fit.need = {0, need};
  fit.available = {0, 100};
  fit.setting.n_ctx = fit.requested = n_ctx;
  fit.wanted = 8192;
  fit.level = fit::Level::good;
  return fit;
}

}  // namespace mica::test
