// SPDX-License-Identifier: Apache-2.0
//
// The machine that a command line describes.
#pragma once

#include "flags.hpp"
#include "mica_tools/fit/machine.hpp"

#include <optional>
#include <string>

namespace mica::program {

/// The flags of a machine.
struct MachineOptions {
  std::string ram, available, vram;             // sizes; empty: this machine's
  std::string bandwidth, vram_bandwidth, disk;  // rates
  std::optional<bool> unified;                  // empty: as the files of this machine tell
  bool mlx = false;
  std::size_t cores = 0;  // 0: this machine's
  std::string machine_file;

  void add_to(Flags& flags);
  /// Whether the memory of another machine, or another amount of it, is given.
  [[nodiscard]] bool describes_machine() const {
    return !ram.empty() || !available.empty() || !machine_file.empty();
  }
};

/// This machine, with the speed that `mica doctor --measure` measured, or the machine of --machine FILE;
/// flags take precedence. Raises ErrorCode::usage for impossible values, file for a missing file or other
/// JSON.
[[nodiscard]] fit::Machine machine_of(const MachineOptions& flags);

}  // namespace mica::program
