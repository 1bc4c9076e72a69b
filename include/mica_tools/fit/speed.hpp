// SPDX-License-Identifier: Apache-2.0
//
// The speed of a model, from the work of a token (fit/work.hpp) and the rates of a machine. A sum of
// times: weights format by format, keys and values, or the disk where that takes longer.
#pragma once

#include "mica/block/detail/attention_context.hpp"
#include "mica/kv/eviction.hpp"
#include "mica/paging/choice.hpp"
#include "mica/plan/plan.hpp"
#include "mica_tools/fit/work.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace mica::plan {

/// The rates of a machine for weights of one format, per second.
struct FormatSpeed {
  double decode_bytes = 0;  // bytes that products of one token read
  double prefill_macs = 0;  // multiply-adds of products of 512 tokens
  /// Multiply-adds of products of other numbers of tokens, by that number.
  std::map<std::size_t, double> macs = {};
};

/// The same with keys and values of one element, for heads of 128 numbers and 2,048 tokens of context.
struct AttentionSpeed {
  double decode_bytes = 0;  // bytes that attention of 4 rows of queries reads
  double prefill_macs = 0;  // multiply-adds of attention of 64 rows
  /// Multiply-adds of attention of other numbers of rows, by that number.
  std::map<std::size_t, double> macs = {};
  double stored_numbers = 0;  // numbers of keys and values that are encoded
};

/// The rates of operations on rows, numbers per second.
struct RowSpeed {
  PerOperation one;   // of one token
  PerOperation many;  // of 512 tokens
};

/// The rates of a machine with a number of threads, per second. Zero: not known.
struct MachineSpeed {
  double read_bytes = 0;                           // of memory, by the kernels that read it fastest
  double dot_macs = 0;                             // multiply-adds, by the kernels that make most of them
  double disk_bytes = 0;                           // read in order, past the page cache
  std::map<format::Id, FormatSpeed> formats = {};  // of weights; others are estimated from the rates above
  std::map<format::Id, FormatSpeed> files = {};    // of rows that lie as in a file, where packed ones do not
  std::map<std::string, AttentionSpeed> elements = {};  // by name
  RowSpeed rows = {};
  double run_seconds = 0;         // of a parallel run in which nothing is done
  double decode_factor = 1;       // measured speed / predicted speed of runs on this machine
  double prefill_factor = 1;      // the same of prompts
  std::string basis = "assumed";  // of the numbers: "assumed", "described", "measured", "calibrated"

  /// Whether predict() can be called.
  [[nodiscard]] bool known() const noexcept { return read_bytes > 0; }
};

/// The parts of a measurement (fit/machine_probe.hpp) that one run needs.
struct SpeedParts {
  std::set<format::Id> formats;                 // of weights
  std::set<std::string, std::less<>> elements;  // of keys and values, by name
  bool as_in_file = false;                      // also rows that lie as in a file
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
  double always = 0;         // of any step: layers and the output matrix
  double token_experts = 0;  // of experts, when each sequence writes one token
  double chunk_experts = 0;  // of experts, when a chunk of a prompt is read
  bool ahead = true;         // what any step reads is read while other layers are computed; experts never are

  /// Seconds of a step that computes for `computing` seconds and reads `experts` bytes of experts.
  [[nodiscard]] double step(double computing, double experts, double disk_bytes) const noexcept {
    const double reading = always / disk_bytes;
    return (ahead ? std::max(computing, reading) : computing + reading) + experts / disk_bytes;
  }
};

/// The bytes that steps read where `resident_bytes` of a model of `weight_bytes` stay in memory and
/// `streamed_bytes` are read for any token. The part of the used experts that is in memory is that of all
/// experts; it is 0 if a step uses more experts than fit, because the least recently used ones leave first.
/// Routers prefer some experts, so real runs read less.
[[nodiscard]] inline StepReads reads_of(const Work& work, std::uint64_t weight_bytes,
                                        std::uint64_t resident_bytes, std::uint64_t streamed_bytes,
                                        std::size_t chunk, std::size_t sequences = 1) {
  const auto always = static_cast<double>(streamed_bytes);
  if (work.expert_bytes == 0) return {always};
  const double others = static_cast<double>(weight_bytes) - work.expert_bytes;
  const double held = std::clamp(static_cast<double>(resident_bytes) - others, 0.0, work.expert_bytes);
  const double part = held / work.expert_bytes, used = work.used_expert_bytes / work.expert_bytes;
  const auto read = [&](std::size_t tokens) {
    const double wanted = 1 - std::pow(1 - used, static_cast<double>(tokens));
    return work.expert_bytes * wanted * (part < wanted ? 1 : 1 - part);
  };
  return {always, read(sequences), read(chunk)};
}

/// The same for a planned run.
[[nodiscard]] inline StepReads reads_of(const Work& work, const Plan& plan, std::size_t chunk,
                                        std::size_t sequences = 1) {
  StepReads reads = reads_of(work, plan.weight_bytes, plan.accounts[budget::Account::weights],
                             plan.streamed_bytes, chunk, sequences);
  reads.ahead = plan.reads_ahead;
  return reads;
}

/// The part of weights whose rows lie as in a file: of mapped weights all, of streamed ones those that are
/// not resident. In a packed directory all are packed.
[[nodiscard]] inline double part_as_in_file(const gguf::Document& document, paging::Choice choice,
                                            std::uint64_t weight_bytes, std::uint64_t resident_bytes) {
  if (document.packed() || choice == paging::Choice::resident || weight_bytes == 0) return 0;
  if (choice != paging::Choice::streamed) return 1;
  const double part = static_cast<double>(resident_bytes) / static_cast<double>(weight_bytes);
  return std::max(0.0, 1 - part);
}

/// What is predicted: a prompt that ends at the position of the work, and tokens after it.
struct Steps {
  std::size_t prompt = 512;   // tokens
  std::size_t chunk = 512;    // tokens of its steps
  std::size_t sequences = 1;  // that decode at the same time, each at that position
  double as_in_file = 0;      // of the weights, the part whose rows lie as in a file
};

namespace detail {

/// Seconds of something that several tokens share, by their number: straight lines between the measured
/// numbers, and proportional beyond the last one.
class SharedSeconds {
 public:
  void add(double tokens, double seconds) { points_.emplace(tokens, seconds); }
  [[nodiscard]] double at(double tokens) const {
    const auto above = points_.lower_bound(tokens);
    if (above == points_.end()) return points_.rbegin()->second * tokens / points_.rbegin()->first;
    if (above == points_.begin() || above->first == tokens) return above->second;
    const auto below = std::prev(above);
    const double part = (tokens - below->first) / (above->first - below->first);
    return below->second + part * (above->second - below->second);
  }

 private:
  std::map<double, double> points_;
};

/// The time of steps of one model on one machine.
class StepTime {
 public:
  StepTime(const Work& work, const MachineSpeed& machine, double as_in_file)
      : work_(work),
        machine_(machine),
        as_in_file_(as_in_file),
        bytes_(machine.read_bytes * assumed_decode_part),
        macs_(either(machine.dot_macs, machine.read_bytes * assumed_macs_per_byte) * assumed_prefill_part) {
    for (const KvWork* const part : {&work.keys, &work.values}) {
      const auto found = machine.elements.find(part->element);
      attention_.push_back(
          {found == machine.elements.end() ? AttentionSpeed{} : found->second, part->number_bytes});
    }
  }

  /// A step of `tokens` tokens of each sequence, the first of them at `position`; without its logits.
  [[nodiscard]] double step(std::size_t position, std::size_t tokens, std::size_t sequences) const {
    const auto n = static_cast<double>(tokens), all = n * static_cast<double>(sequences);
    double seconds = work_.rows.runs * machine_.run_seconds;
    for (const auto& [id, weights] : work_.weights) seconds += products(id, weights, all);
    seconds += rows(n, static_cast<double>(sequences));
    for (const block::AttentionConfig& layer : work_.attention)
      seconds += static_cast<double>(sequences) * attention(layer, position, tokens);
    return seconds;
  }
  /// Logits of some rows.
  [[nodiscard]] double logits(std::size_t rows) const {
    double seconds = 0;
    for (const auto& [id, weights] : work_.weights)
      seconds += (weights.decode_macs - weights.prefill_macs) * per_weight(id, static_cast<double>(rows));
    return seconds;
  }

 private:
  static double either(double measured, double assumed) { return measured > 0 ? measured : assumed; }
  static FormatSpeed speed_in(const std::map<format::Id, FormatSpeed>& speeds, format::Id id) {
    const auto found = speeds.find(id);
    return found == speeds.end() ? FormatSpeed{} : found->second;
  }
  static double bytes_per_weight(format::Id id) {
    const format::Info info = format::info(id);
    return static_cast<double>(info.block_bytes) / static_cast<double>(info.block_size);
  }

  /// Seconds for a weight that some tokens are multiplied with.
  [[nodiscard]] double per_weight(format::Id id, double tokens) const {
    const double packed = shared_seconds(id, speed_in(machine_.formats, id)).at(tokens);
    const auto file = machine_.files.find(id);
    if (as_in_file_ == 0 || file == machine_.files.end()) return packed;
    return as_in_file_ * shared_seconds(id, file->second).at(tokens) + (1 - as_in_file_) * packed;
  }
  [[nodiscard]] SharedSeconds shared_seconds(format::Id id, const FormatSpeed& speed) const {
    SharedSeconds seconds;
    seconds.add(1, bytes_per_weight(id) / either(speed.decode_bytes, bytes_));
    for (const auto& [tokens, macs] : speed.macs)
      seconds.add(static_cast<double>(tokens), static_cast<double>(tokens) / macs);
    seconds.add(512, 512 / either(speed.prefill_macs, macs_));
    return seconds;
  }
  /// Products of `tokens` tokens with the weights of one format, but for the output matrix; and the vectors
  /// and rows of tables of that format.
  [[nodiscard]] double products(format::Id id, const FormatWork& weights, double tokens) const {
    const double others = weights.decode_bytes - weights.decode_macs * bytes_per_weight(id);
    return (weights.prefill_macs - weights.expert_macs) * per_weight(id, tokens) +
           experts(id, weights.expert_macs, tokens) +
           std::max(0.0, others) / bytes_per_weight(id) * per_weight(id, 1);
  }
  /// Tokens choose experts independently, each expert with the same probability: those that any of them uses
  /// are read, and share the tokens.
  [[nodiscard]] double experts(format::Id id, double macs, double tokens) const {
    if (macs == 0) return 0;
    const double part = work_.experts_used / work_.experts;  // that a token uses
    const double used = 1 - std::pow(1 - part, tokens);      // that any token uses
    return macs / part * used * per_weight(id, tokens * part / used);
  }
  [[nodiscard]] double rows(double tokens, double sequences) const {
    double seconds = 0;
    work_.rows.numbers.for_each([&](RowOperation operation, double numbers) {
      // A sequence has a state of its own, which comes from memory for each step.
      const bool alone = operation == RowOperation::delta_rule ? tokens == 1 : tokens * sequences == 1;
      const double rate = (alone ? machine_.rows.one : machine_.rows.many)[operation];
      if (rate > 0) seconds += numbers * tokens * sequences / rate;
    });
    for (const auto& [speed, bytes] : attention_) {
      if (speed.stored_numbers > 0)
        seconds += work_.rows.stored_numbers / 2 * tokens * sequences / speed.stored_numbers;
    }
    return seconds;
  }

  /// The tokens that each token of a step sees, on average.
  [[nodiscard]] double seen(const block::AttentionConfig& layer, std::size_t position,
                            std::size_t tokens) const {
    constexpr std::size_t samples = 8;
    double sum = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t at = position + (2 * i + 1) * tokens / (2 * samples);
      sum += static_cast<double>(detail::seen(layer, at, work_.kv_capacity));
    }
    return sum / samples;
  }
  /// Seconds for a key's number and a value's, by the rows of queries that read them.
  [[nodiscard]] double per_pair(double rows) const {
    double sum = 0;
    for (const auto& [speed, bytes] : attention_) {
      SharedSeconds seconds;
      seconds.add(probed_group, bytes / either(speed.decode_bytes, bytes_));
      for (const auto& [n, macs] : speed.macs)
        seconds.add(static_cast<double>(n), static_cast<double>(n) / macs);
      seconds.add(probed_rows, probed_rows / either(speed.prefill_macs, macs_ / 2));
      sum += seconds.at(rows);
    }
    return sum;
  }
  /// One layer for the tokens of one sequence: blocks of them read keys and values together.
  [[nodiscard]] double attention(const block::AttentionConfig& layer, std::size_t position,
                                 std::size_t tokens) const {
    const std::size_t block =
        std::min(tokens, std::max<std::size_t>(1, block::attention_rows / layer.group()));
    const double blocks = static_cast<double>(tokens) / static_cast<double>(block);
    const double rows = static_cast<double>(block * layer.group());
    double sees = seen(layer, position, tokens);
    if (tokens > 1) sees += static_cast<double>(block + format::tile_tokens) / 2;  // of whole tiles
    const double pairs = sees * static_cast<double>(layer.kv_width()) * blocks;
    const double scores = sees * static_cast<double>(layer.kv_heads) * rows * blocks;
    const double rate = (rows < 16 ? machine_.rows.one : machine_.rows.many)[RowOperation::softmax];
    // The measured rates have the softmax of heads of another size.
    const double softmax =
        rate > 0 ? scores / rate * (1 - static_cast<double>(layer.head_dim) / probed_head_dim) : 0;
    return std::max(0.0, pairs * per_pair(rows) + softmax);
  }

  static constexpr double probed_group = 4, probed_rows = 64, probed_head_dim = 128;

  const Work& work_;
  const MachineSpeed& machine_;
  double as_in_file_;
  double bytes_, macs_;  // where a format was not measured
  /// Of keys, then of values.
  struct Side {
    AttentionSpeed speed;
    double number_bytes;
  };
  std::vector<Side> attention_;
};

/// Calls f(position, tokens) for each pass of a prompt over the weights. A full cache evicts some tokens at a
/// time, and steps end there.
template <class F>
void for_each_pass(std::size_t first, std::size_t last, std::size_t chunk, std::size_t capacity, F&& f) {
  for (std::size_t at = first; at < last;) {
    std::size_t tokens = std::min(chunk, last - at);
    if (capacity != 0)
      tokens = std::min(tokens, at < capacity ? capacity - at : kv::eviction_step - at % kv::eviction_step);
    f(at, tokens);
    at += tokens;
  }
}

}  // namespace detail

/// Of a run that reads `reads` from disk while it computes. Requires machine.known().
[[nodiscard]] inline Speed predict(const Work& work, const MachineSpeed& machine, const StepReads& reads,
                                   const Steps& steps) {
  const detail::StepTime time(work, machine, steps.as_in_file);
  const double disk = machine.disk_bytes > 0 ? machine.disk_bytes : assumed_disk_bytes;
  const std::size_t prompt = std::max<std::size_t>(steps.prompt, 1);
  const std::size_t sequences = std::max<std::size_t>(steps.sequences, 1);
  const std::size_t first = work.tokens - std::min(work.tokens, prompt);
  double reading = time.logits(1) / machine.prefill_factor;
  detail::for_each_pass(first, first + prompt, std::max<std::size_t>(steps.chunk, 1), work.kv_capacity,
                        [&](std::size_t at, std::size_t tokens) {
                          const double computing = time.step(at, tokens, 1) / machine.prefill_factor;
                          reading += reads.step(computing, reads.chunk_experts, disk);
                        });
  const double decode =
      (time.step(work.tokens, 1, sequences) + time.logits(sequences)) / machine.decode_factor;
  return {static_cast<double>(sequences) / reads.step(decode, reads.token_experts, disk),
          static_cast<double>(prompt) / reading, reading};
}

}  // namespace mica::plan
