// SPDX-License-Identifier: Apache-2.0
//
// How much of the weights is read while a model is opened.
#pragma once

#include <algorithm>
#include <cstdint>

namespace mica {

/// A function that is called while weights are read into memory, from the thread that opens the model, after
/// each part of at most a tensor; `done` grows up to `total`. Weights that are mapped, or streamed in each
/// step, are read later and are no part of `total`.
struct LoadProgress {
  void (*report)(void* context, std::uint64_t done, std::uint64_t total) noexcept = nullptr;  // bytes
  void* context = nullptr;  // the first argument of all three
  /// Asked after each part: the bytes by which memory is short; 0: it is not. Streamed weights then stay in
  /// the file, and as many leave memory again; for others opening ends with ErrorCode::budget. Null: never
  /// short.
  std::uint64_t (*lacking)(void* context) noexcept = nullptr;
  /// Asked after each part: whether opening is to end with ErrorCode::failed. Null: never.
  bool (*stopped)(void* context) noexcept = nullptr;
};

namespace paging {

/// The bytes that a pager has read so far. Alive while the pager is constructed.
struct LoadCounter {
  LoadProgress progress;       // the function that gets both numbers
  std::uint64_t done = 0;      // bytes that were read
  std::uint64_t total = 0;     // bytes that will be read; 0 before begin()
  std::uint64_t short_by = 0;  // what lacking() returned last, unless that was 0

  /// The first call counts: a pager may be made of others.
  void begin(std::uint64_t bytes) noexcept { total = total == 0 ? bytes : total; }
  /// Counts bytes that were read, and reports.
  void add(std::uint64_t bytes) noexcept {
    done = std::min(done + bytes, total);  // a tensor may be read twice (Resident::read_packed12)
    if (progress.report != nullptr) progress.report(progress.context, done, total);
  }
  [[nodiscard]] bool stopped() const noexcept {
    return progress.stopped != nullptr && progress.stopped(progress.context);
  }
  /// Bytes by which memory is short now.
  [[nodiscard]] std::uint64_t lacking() noexcept {
    const std::uint64_t bytes = progress.lacking == nullptr ? 0 : progress.lacking(progress.context);
    if (bytes > 0) short_by = bytes;
    return bytes;
  }
};

}  // namespace paging
}  // namespace mica
