// SPDX-License-Identifier: Apache-2.0
//
// What this machine was measured to do, kept in the user's cache folder: $XDG_CACHE_HOME/mica/machine.json,
// else ~/.cache/mica/machine.json. It counts for one processor, number of threads, instruction set and
// version of the program, and is measured anew for others.
#pragma once

#include "mica/io/file.hpp"
#include "mica/plan/speed.hpp"
#include "output_options.hpp"

#include <cstddef>
#include <optional>

namespace mica::program {

/// The kept measurement, if it was made here with this number of threads; the rate of the disk only where it
/// is that of `file` (null: none). A damaged file counts as none.
[[nodiscard]] std::optional<plan::MachineSpeed> known_speed(std::size_t threads, const io::File* file);

/// --measure.
void add_measure(Flags& flags, bool& measure);

/// Measures with that many threads, with `file` its disk too, and keeps it; takes some seconds and says so.
/// Raises as fit::MachineProbe and io::DiskProbe; what cannot be written is a note.
plan::MachineSpeed measure_speed(const OutputOptions& options, std::size_t threads, const io::File* file);

/// Keeps the ratios of the speed of a run to the predicted speed (0: not known). The median of the last nine
/// corrects later predictions. Does nothing where nothing was measured, and for ratios beyond 4 and 1/4, which
/// have other causes.
void learn_speed(std::size_t threads, double decode_ratio, double prefill_ratio);

}  // namespace mica::program
