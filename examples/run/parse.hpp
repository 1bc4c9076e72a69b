// SPDX-License-Identifier: Apache-2.0
//
// From a command line, the environment and a configuration file to a verb whose options are set.
#pragma once

#include "verbs.hpp"

#include <string>
#include <vector>

namespace mica::program {

/// A verb that can run.
struct Request {
  AnyVerb verb;
  std::vector<std::string> notes;  // about ignored or doubtful flags, for stderr
  std::string config;              // the output of --print-config; empty: the verb runs
};

/// Help and version texts, and wrong uses of a verb, are thrown as Stop; an unknown verb and a configuration
/// file that cannot be read as Error.
[[nodiscard]] Request parse(int argc, char** argv);

}  // namespace mica::program
