// SPDX-License-Identifier: Apache-2.0
//
// The flags for output, which every verb has.
#pragma once

#include "flags.hpp"

#include <cstdint>

namespace mica::program {

enum class ColorMode : std::uint8_t { automatic, always, never };

struct OutputOptions {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  bool jsonl = false;
  ColorMode color = ColorMode::automatic;
  bool raw_output = false;  // of a model's text on a terminal

  void add_to(Flags& flags) {
    flags.group("Output");
    flags.toggle("-q,--quiet", quiet, "nothing on stderr but errors");
    flags.toggle("-v,--verbose", verbose, "also choices of the library");
    flags.toggle("--json", json, "one JSON object on stdout, for an error too");
    flags.toggle("--jsonl", jsonl, "one JSON object a line");
    flags.choice("-co,--color", color,
                 {{"auto", ColorMode::automatic},
                  {"always", ColorMode::always},
                  {"on", ColorMode::always},
                  {"never", ColorMode::never},
                  {"off", ColorMode::never}},
                 "auto", "WHEN", "auto, always, never");
    flags.toggle(
        "--raw-output", raw_output,
        "pass control sequences of a model's or template's text to a terminal; else only its colours");
  }
};

}  // namespace mica::program
