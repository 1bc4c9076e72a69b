// SPDX-License-Identifier: Apache-2.0
//
// Fits as a table and as JSON.
#pragma once

#include "mica_tools/fit/rank.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace mica::program {

/// "6.0 GiB of memory, 5.4 GiB available, 2 cores, ...": one line.
[[nodiscard]] std::string machine_text(const fit::Machine& machine);

/// One line: the first fit, and the command that runs it. all: of the whole catalogue. Empty if it does not
/// run.
[[nodiscard]] std::string fit_summary(const fit::Ranked& first, const fit::Use& use, bool all);

/// Lines below a table: how its models are run.
[[nodiscard]] std::string fit_hint(std::span<const fit::Ranked> rows);

/// A header and a line for each fit. max: with a column of the longest context that fits. width: of the
/// terminal, 0: any. Columns are left out until lines fit, and a last line names them.
[[nodiscard]] std::string fit_table(std::span<const fit::Ranked> rows, bool max, std::size_t width);

/// The machine and an object for each fit.
[[nodiscard]] std::string fit_json(const fit::Machine& machine, const fit::Use& use,
                                   std::span<const fit::Ranked> rows);

/// The arithmetic of a fit: the accounts of its plan, and the results of other rules.
[[nodiscard]] std::string explanation(const fit::Machine& machine, const fit::Use& use,
                                      fit::Candidate& candidate, const fit::Fit& fit);

}  // namespace mica::program
