// SPDX-License-Identifier: Apache-2.0
//
// A machine as far as models are concerned: memory of the processor and of graphics cards, cores, rates. This
// machine, or a described one. Nothing is measured: only the files of Linux are read (advice/cards.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/budget/limits.hpp"
#include "mica_tools/advice/cards.hpp"
#include "mica_tools/fit/speed.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fit {

/// Assumed bytes per second of each kind of memory: two channels of DDR5 or four of DDR4; a mid-range card.
inline constexpr double assumed_ram_rate = 50e9, assumed_vram_rate = 300e9;

/// The part of described memory that a model may use; the system has the rest.
inline constexpr std::uint64_t available_tenths = 9;

struct Machine {
  std::uint64_t ram_bytes = 0;                     // installed
  std::uint64_t available_bytes = 0;               // of it, bytes that a model can use
  std::uint64_t vram_bytes = 0;                    // of all graphics cards together; 0: none, or not known
  bool unified = false;                            // the graphics processor uses the same memory
  std::uint64_t reserved_bytes = 0;                // unified: memory for graphics alone, not in ram_bytes
  std::optional<std::uint64_t> shared_bytes = {};  // unified: of ram_bytes, what graphics may use; empty: all
  bool mlx = false;                                // quantisations of MLX instead of GGUF's
  std::size_t cores = 1;                           // threads that compute
  plan::MachineSpeed speed;                        // of the processor
  double vram_rate = 0;                            // bytes of the cards' memory that are read in a second
  std::string vram_basis = "assumed";              // of vram_rate, as plan::MachineSpeed::basis
  std::vector<std::string> notes;                  // facts that are not known

  /// Whether a graphics processor is known.
  [[nodiscard]] bool has_gpu() const noexcept { return unified || vram_bytes != 0; }
  /// Bytes that the graphics processor may use.
  [[nodiscard]] std::uint64_t gpu_bytes() const noexcept {
    if (vram_bytes != 0 || !unified) return vram_bytes;
    return reserved_bytes + std::min(available_bytes, shared_bytes.value_or(available_bytes));
  }
  /// Bytes that the graphics processor reads in a second.
  [[nodiscard]] double gpu_rate() const noexcept {
    return unified && vram_rate == 0 ? speed.read_bytes : vram_rate;
  }
};

/// A description of a machine. Missing fields are those of this machine, or unset if `ram` is given.
struct Description {
  std::optional<std::uint64_t> ram_bytes = {};        // installed
  std::optional<std::uint64_t> available_bytes = {};  // nine tenths of ram_bytes
  std::optional<std::uint64_t> vram_bytes = {};       // of all graphics cards together
  std::optional<bool> unified = {};                   // as Machine has it
  bool mlx = false;                                   // as Machine has it
  std::optional<std::size_t> cores = {};              // threads that compute
  std::optional<std::uint64_t> ram_rate = {};         // bytes a second
  std::optional<std::uint64_t> vram_rate = {};        // bytes a second
  std::optional<std::uint64_t> disk_rate = {};        // bytes a second
};

namespace detail {

/// Adds graphics processors to a machine. Cards with memory of their own count together. Graphics of the
/// processor count where there is no card beside them, since an engine uses one or the other. A card whose
/// memory no file tells becomes a note.
inline void add_cards(Machine& machine, const std::vector<advice::Card>& cards) {
  const advice::Card* shared = nullptr;
  bool has_silent = false;
  for (const advice::Card& card : cards) {
    if (!card.accepts) continue;
    if (card.unified) {
      shared = &card;
    } else if (card.own_bytes) {
      machine.vram_bytes += *card.own_bytes;
      if (!card.is_node) continue;  // a node is in the memory of the machine too, which then counts it twice
      machine.ram_bytes -= std::min(machine.ram_bytes, *card.own_bytes);
      machine.available_bytes = std::min(machine.available_bytes, machine.ram_bytes);
    } else {
      has_silent = true;
      machine.notes.push_back(
          join(card.name, " has memory of its own, whose size no file tells; give it with --vram"));
    }
  }
  if (shared == nullptr || machine.vram_bytes != 0 || has_silent) return;
  machine.unified = true;
  machine.reserved_bytes = shared->own_bytes.value_or(0);
  machine.shared_bytes = shared->shared_bytes;
  machine.notes.push_back(join(shared->name, ": --unified=false leaves it out"));
}

}  // namespace detail

/// The machine that the files below `root` describe; "" is this one. Speeds are assumed.
[[nodiscard]] inline Machine read_machine(const std::string& root) {
  Machine machine;
  const budget::MemoryLimits limits =
      root.empty() ? budget::memory_limits() : budget::read_memory_limits(root);
  const auto known = [](std::uint64_t bytes) { return bytes == budget::MemoryLimits::unlimited ? 0 : bytes; };
  machine.ram_bytes = known(std::min(limits.installed, limits.cgroup));
  machine.available_bytes = known(limits.usable());
  machine.cores = budget::cpu_limits().threads();
#if defined(__APPLE__) && defined(__aarch64__)
  machine.unified = true;
#endif
  detail::add_cards(machine, advice::read_cards(root));
  machine.speed.read_bytes = assumed_ram_rate;
  machine.vram_rate = machine.vram_bytes == 0 ? 0 : assumed_vram_rate;
  return machine;
}

/// The described machine, with missing fields from `here`. Raises a usage error for impossible machines: no
/// memory, no core, more available than present, MLX without unified memory.
[[nodiscard]] inline Machine described(const Machine& here, const Description& said) {
  Machine machine = here;
  if (said.ram_bytes) {  // another machine: nothing of this one but its cores
    machine = {};
    machine.cores = here.cores;
    machine.ram_bytes = *said.ram_bytes;
    machine.available_bytes = *said.ram_bytes / 10 * available_tenths;
    machine.speed.read_bytes = assumed_ram_rate;
  }
  if (said.available_bytes) machine.available_bytes = *said.available_bytes;
  if (said.vram_bytes) {
    machine.vram_bytes = *said.vram_bytes;
    if (machine.shared_bytes) machine.unified = false;  // a card beside the graphics of the processor
  }
  if (said.unified) machine.unified = *said.unified;
  if (said.cores) machine.cores = *said.cores;
  if (said.disk_rate) machine.speed.disk_bytes = static_cast<double>(*said.disk_rate);
  if (said.ram_rate) {
    const double disk = machine.speed.disk_bytes;
    machine.speed = {};  // the measured rate is that of another memory
    machine.speed.disk_bytes = disk;
    machine.speed.read_bytes = static_cast<double>(*said.ram_rate);
    machine.speed.basis = "described";
  }
  if (said.vram_rate) {
    machine.vram_rate = static_cast<double>(*said.vram_rate);
    machine.vram_basis = "described";
  } else if (machine.vram_bytes != 0 && machine.vram_rate == 0 && !machine.unified) {
    machine.vram_rate = assumed_vram_rate;
  }
  machine.mlx = said.mlx;
  if (said.vram_bytes || said.unified) machine.notes.clear();
  MICA_CHECK(machine.ram_bytes != 0, usage,
             "a machine with 0 bytes of memory; needed: 1 or more, such as --ram 16G");
  MICA_CHECK(machine.cores >= 1 && machine.cores <= 4096, usage, "a machine with ", machine.cores,
             " cores; allowed: 1 to 4096");
  MICA_CHECK(machine.available_bytes <= machine.ram_bytes, usage, "a machine with ", machine.available_bytes,
             " bytes available of ", machine.ram_bytes, "; at most all of them can be");
  MICA_CHECK(!machine.mlx || machine.unified, usage,
             "--mlx is for machines whose processors share their memory; say --unified too");
  return machine;
}

/// "60G", "60 GB/s", "400MiB/s": bytes a second. Plain K, M, G, T are powers of 1,000 as in data sheets.
/// Raises a usage error that names `what`.
[[nodiscard]] inline std::uint64_t parse_rate(std::string_view text, std::string_view what) {
  std::string_view size = text;
  if (size.ends_with("/s")) size.remove_suffix(2);
  const bool plain =
      !size.empty() && std::string_view("kKmMgGtT").find(size.back()) != std::string_view::npos;
  const std::uint64_t rate = budget::parse_size(plain ? join(size, "B") : std::string(size), 0, what);
  MICA_CHECK(rate != 0, usage, what, ": found \"", escaped(text),
             "\", which is 0 bytes a second; allowed: more, such as 60G");
  return rate;
}

}  // namespace mica::fit
