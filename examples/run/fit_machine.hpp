// SPDX-License-Identifier: Apache-2.0
//
// The machine that a command line asks about.
#pragma once

#include "mica_tools/fit/machine.hpp"

namespace mica::program {

struct Options;

/// This machine, at the speed that `mica doctor --measure` found, or what --machine FILE says, or flags, which win. Raises ErrorCode::usage for what cannot be, file for a file
/// that is not there or no such JSON.
[[nodiscard]] fit::Machine machine_of(const Options& options);

}  // namespace mica::program
