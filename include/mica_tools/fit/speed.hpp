// SPDX-License-Identifier: Apache-2.0
//
// The speed of a model, from the work of a token (fit/work.hpp) and the rates of a machine. A sum of
// times: weights format by format, keys and values, or the disk where that takes longer.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/plan/plan.hpp"
#include "mica_tools/fit/work.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>

namespace mica::plan {

/// The rates of a machine for weights of one format, per second.
struct FormatSpeed {
  double decode_bytes = 0;  // bytes that products of one token read
  double prefill_macs = 0;  // multiply-adds of products of 512 tokens
};

/// The same with keys and values of one element.
struct AttentionSpeed {
  double decode_bytes = 0;  // bytes that attention of one token reads
  double prefill_macs = 0;  // multiply-adds of attention of many tokens
};

/// The rates of a machine with a number of threads, per second. Zero: not known.
struct MachineSpeed {
  double read_bytes = 0;                           // of memory, by the kernels that read it fastest
  double dot_macs = 0;                             // multiply-adds, by the kernels that make most of them
  double disk_bytes = 0;                           // read in order, past the page cache
  std::map<format::Id, FormatSpeed> formats = {};  // of weights; others are estimated from the rates above
  std::map<std::string, AttentionSpeed> elements = {};  // by name
  double decode_factor = 1;       // measured speed / predicted speed of runs on this machine
  double prefill_factor = 1;      // the same of prompts
  std::string basis = "assumed";  // of the numbers: "assumed", "described", "measured", "calibrated"

  /// Whether predict() can be called.
  [[nodiscard]] bool known() const noexcept { return read_bytes > 0; }
};

/// The prediction.
struct Speed {
  double decode = 0;               // tokens a second
  double prefill = 0;              // tokens a second
  double first_token_seconds = 0;  // for a prompt of `prompt` tokens
};

/// The part of the memory's rate that products of one token reach, and of the rate of byte dots that those of
/// many tokens reach, where they were not measured: those of Q4_K_M on a machine with AVX-512 VNNI
/// (docs/benchmarks.md).
inline constexpr double assumed_decode_part = 0.7, assumed_prefill_part = 0.5;
/// Multiply-adds of bytes for each byte that is read, where only the memory is described: two cores of that
/// machine, and most desktops within a factor of two.
inline constexpr double assumed_macs_per_byte = 16;
/// A disk that was not measured: a slow NVMe drive, bytes per second.
inline constexpr double assumed_disk_bytes = 1e9;

/// Bytes that steps read from disk.
struct StepReads {
  double token = 0;  // when one token is written
  double chunk = 0;  // when a chunk of a prompt is read
};

/// The bytes that steps read where `resident_bytes` of a model of `weight_bytes` stay in memory and
/// `streamed_bytes` are read for any token. The part of the used experts that is in memory is that of all
/// experts. Routers prefer some experts, so real runs read less.
[[nodiscard]] inline StepReads reads_of(const Work& work, std::uint64_t weight_bytes,
                                        std::uint64_t resident_bytes, std::uint64_t streamed_bytes,
                                        std::size_t chunk) {
  const auto always = static_cast<double>(streamed_bytes);
  if (work.expert_bytes == 0) return {always, always};
  const double others = static_cast<double>(weight_bytes) - work.expert_bytes;
  const double held = std::clamp(static_cast<double>(resident_bytes) - others, 0.0, work.expert_bytes);
  const double used = work.used_expert_bytes / work.expert_bytes, missing = work.expert_bytes - held;
  const double by_chunk = 1 - std::pow(1 - used, static_cast<double>(chunk));  // that any of its tokens uses
  return {always + missing * used, always + missing * by_chunk};
}

/// The same for a planned run.
[[nodiscard]] inline StepReads reads_of(const Work& work, const Plan& plan, std::size_t chunk) {
  return reads_of(work, plan.weight_bytes, plan.accounts[budget::Account::weights], plan.streamed_bytes,
                  chunk);
}

/// Of a run that reads `reads` from disk while it computes; a prompt comes in steps of `chunk` tokens.
/// Requires machine.known().
[[nodiscard]] inline Speed predict(const Work& work, const MachineSpeed& machine, const StepReads& reads,
                                   std::size_t prompt, std::size_t chunk) {
  const auto either = [](double measured, double assumed) { return measured > 0 ? measured : assumed; };
  const auto of = [](const auto& map, const auto& key) {
    const auto found = map.find(key);
    return found == map.end() ? typename std::decay_t<decltype(map)>::mapped_type{} : found->second;
  };
  const double bytes = machine.read_bytes * assumed_decode_part;
  const double macs =
      either(machine.dot_macs, machine.read_bytes * assumed_macs_per_byte) * assumed_prefill_part;
  const AttentionSpeed attention = of(machine.elements, work.kv_element);
  double decode = work.kv_bytes / either(attention.decode_bytes, bytes);
  double prefill = work.attention_macs / either(attention.prefill_macs, macs / 2);
  for (const auto& [id, weights] : work.weights) {
    const FormatSpeed known = of(machine.formats, id);
    decode += weights.decode_bytes / either(known.decode_bytes, bytes);
    prefill += weights.prefill_macs / either(known.prefill_macs, macs);
  }
  const double disk = either(machine.disk_bytes, assumed_disk_bytes);
  const auto tokens = static_cast<double>(std::max<std::size_t>(prompt, 1));
  const auto steps =
      static_cast<double>(ceil_div(std::max<std::size_t>(prompt, 1), std::max<std::size_t>(chunk, 1)));
  const double reading = std::max(prefill / machine.prefill_factor * tokens, reads.chunk / disk * steps);
  return {1 / std::max(decode / machine.decode_factor, reads.token / disk), tokens / reading, reading};
}

}  // namespace mica::plan
