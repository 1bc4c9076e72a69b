// SPDX-License-Identifier: Apache-2.0
//
// The measured speed of this machine, stored in the user's cache folder: $XDG_CACHE_HOME/mica/machine.json,
// else ~/.cache/mica/machine.json. It is valid for one processor, number of threads, instruction set and
// version of the program.
#pragma once

#include "mica/io/file.hpp"
#include "mica_tools/fit/speed.hpp"
#include "output_options.hpp"

#include <cstddef>
#include <optional>

namespace mica::program {

/// The stored measurement, if it was made here with this number of threads; with the speed of the disk only
/// if it is that of `file` (null: none). A damaged file counts as none.
[[nodiscard]] std::optional<plan::MachineSpeed> known_speed(std::size_t threads, const io::File* file);

/// Measures with that number of threads, and the disk of `file`, and stores the result; takes up to a minute,
/// with `only` some seconds, and says so. only: measures these parts alone and keeps all other stored figures;
/// null, or where nothing is stored: all. Raises as fit::MachineProbe and io::DiskProbe; if the file cannot be
/// written, a note says so.
plan::MachineSpeed measure_speed(const OutputOptions& options, std::size_t threads, const io::File* file,
                                 const plan::SpeedParts* only = nullptr);

/// Stores the ratios of the speed of a run to the predicted speed (0: not known). The median of the last nine
/// corrects later predictions. Does nothing if nothing was measured, and for ratios above 4 or below 1/4,
/// which have other causes.
void learn_speed(std::size_t threads, double decode_ratio, double prefill_ratio);

}  // namespace mica::program
