// SPDX-License-Identifier: Apache-2.0
//
// The machine that a command line asks about.
#pragma once

#include "flags.hpp"
#include "mica_tools/fit/machine.hpp"

#include <string>

namespace mica::program {

/// The flags of a machine.
struct MachineOptions {
  std::string ram, available, vram;             // sizes; empty: this machine's
  std::string bandwidth, vram_bandwidth, disk;  // rates
  bool unified = false;
  bool mlx = false;
  std::size_t cores = 0;  // 0: this machine's
  std::string machine_file;

  void add_to(Flags& flags);
};

/// This machine, at the speed that `mica doctor --measure` found, or what --machine FILE says, or flags,
/// which win. Raises ErrorCode::usage for what cannot be, file for a file that is not there or no such JSON.
[[nodiscard]] fit::Machine machine_of(const MachineOptions& flags);

}  // namespace mica::program
