// SPDX-License-Identifier: Apache-2.0
//
// The cost of steps: time, bytes of weights that were read, time of waiting for them, experts that were in
// memory, page faults.
#pragma once

#include "mica/gguf/reader.hpp"
#include "mica/ranks/several.hpp"
#include "mica/runtime/any_model.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/measure/disk_probe.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace mica::program {

/// The cost of some time. The time that was not spent waiting was spent computing.
struct Costs {
  double seconds = 0;
  paging::Reads reads;
  std::uint64_t faults = 0;  // major ones: the system read a page
  ranks::LinkCosts link;     // of several ranks

  Costs& operator+=(const Costs& other) noexcept;
};

/// One lap after another. The model outlives it, and so does the link to other ranks, if there is one.
class Meter {
 public:
  explicit Meter(const AnyModel& model, const ranks::AnyLink* link = nullptr);
  /// The cost since it was made, or since the last lap.
  [[nodiscard]] Costs lap();

 private:
  const AnyModel& model_;
  const ranks::AnyLink* link_;
  Stopwatch watch_;
  Costs before_;
};

/// {"ms":...,"wait_ms":...,"read_bytes":...,"expert_hits":...,"expert_misses":...,"major_faults":...}, and of
/// several ranks "sent_bytes":...,"sent_messages":...,"exchange_ms":...
[[nodiscard]] std::string json_of(const Costs& costs);
/// "1.8 GiB read for each of 12 further tokens, waited for it 62 % of the time; experts there 812 of 1024
/// times; 0 major faults" tokens = 0: the sum of bytes.
[[nodiscard]] std::string text_of(const Costs& costs, std::size_t tokens = 0);

/// The largest file of a model, with which its disk is measured; null for one in memory.
[[nodiscard]] const io::File* largest_file(const gguf::Document& document);

/// How fast the disk of a file is; takes a second. Raises as io::DiskProbe.
[[nodiscard]] io::DiskSpeed disk_speed(const io::File& file);

/// Major faults of this process so far.
[[nodiscard]] std::uint64_t major_faults();

}  // namespace mica::program
