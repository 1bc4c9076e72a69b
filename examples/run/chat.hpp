// SPDX-License-Identifier: Apache-2.0
//
// Chat at a terminal or on a pipe: lines in, answers out, commands that begin with a slash.
#pragma once

#include "chat_format.hpp"
#include "mica/runtime/open.hpp"

#include <optional>
#include <string>

namespace mica::program {

/// Talks until the input ends or somebody leaves. first: the first thing said, if any. Returns the exit code.
int chat(const Options& options, Model& model, ChatFormat format, const std::optional<std::string>& first);

}  // namespace mica::program
