// SPDX-License-Identifier: Apache-2.0
//
// The command that runs a fit.
#pragma once

#include "mica_tools/fit/select.hpp"

#include <string>

namespace mica::program {

/// "mica run qwen3-8b:Q4_K_M", with the flags of its context, keys and values, and streamed weights; for
/// modes of other engines "mica pull ...". Empty if no GGUF file of the model is known.
[[nodiscard]] std::string fit_command(const fit::Fit& fit);

}  // namespace mica::program
