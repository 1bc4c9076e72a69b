// SPDX-License-Identifier: Apache-2.0
//
// Memory for units of streamed weights, two at a time: one that is used, and one that is read. They alternate
// between both ends, so that any two that fit together do.
//
//   | 7: used |     | 8: on its way |    then    | 9: on its way ... | | 8: used |
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/paging/unit_reader.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace mica::paging {

/// Holds at most two units. One thread; nothing throws after construction.
template <mica::Allocator A>
class ReadRing {
 public:
  /// Raises ErrorCode::budget when the allocator refuses. Sources are files and outlive the ring.
  ReadRing(A allocator, std::size_t bytes, std::span<const gguf::Source> sources, LogSink log)
      : memory_(allocator), reader_(sources, log) {
    resize(bytes);
  }
  ~ReadRing() { drop_all(); }
  ReadRing(ReadRing&&) = default;
  ReadRing& operator=(ReadRing&&) = default;

  /// Begins to read a unit; false where it does not fit now.
  [[nodiscard]] bool begin(std::size_t unit, std::span<const ByteRange> byte_ranges) noexcept {
    const std::size_t i = loads_[0].unit == none ? 0 : 1;
    if (loads_[i].unit != none) return false;
    std::size_t bytes = 0;
    for (const ByteRange& range : byte_ranges) bytes += range.bytes;
    const std::size_t at = place(bytes, loads_[1 - i]);
    if (at == none) return false;
    loads_[i] = {unit, at, bytes};
    reads_[i] = {byte_ranges, memory_.data() + at};
    reader_.begin(reads_, i);
    return true;
  }
  [[nodiscard]] bool has(std::size_t unit) const noexcept { return find(unit) != none; }
  /// The address of the unit, its ranges one after the other, when it was read; null where it could not be
  /// read, or was not begun.
  [[nodiscard]] const std::byte* wait(std::size_t unit) noexcept {
    const std::size_t i = find(unit);
    if (i == none) return nullptr;
    Load& load = loads_[i];
    if (!load.whole) {
      if (!reader_.finish(reads_, i)) {
        forget(unit);
        return nullptr;
      }
      load.whole = true;
    }
    return memory_.data() + load.at;
  }
  /// Drops a unit; waits for a pending one.
  void forget(std::size_t unit) noexcept {
    const std::size_t i = find(unit);
    if (i == none) return;
    reader_.settle(reads_, i);  // the system may still write there
    loads_[i] = {};
  }
  void drop_all() noexcept {
    for (const Load& load : loads_) forget(load.unit);
  }

  /// Drops all units and sets the size in bytes, 0 allowed; the old memory is freed first. Raises
  /// ErrorCode::budget, and has none then.
  void resize(std::size_t bytes) {
    drop_all();
    const A allocator = memory_.allocator();
    memory_ = alloc::Buffer<std::byte, A>(allocator);
    auto memory = alloc::Buffer<std::byte, A>::make(allocator, bytes, UnitReader::alignment);
    MICA_CHECK(memory, budget, "weights: ", bytes, " bytes to read them through ",
               alloc::refused(allocator, bytes), "; use a larger budget or a smaller quantisation");
    memory_ = std::move(*memory);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] const Reads& reads() const noexcept { return reader_.reads(); }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  struct Load {
    std::size_t unit = none;
    std::size_t at = 0;
    std::size_t bytes = 0;
    bool whole = false;
  };

  [[nodiscard]] std::size_t find(std::size_t unit) const noexcept {
    for (std::size_t i = 0; i < loads_.size(); ++i) {
      if (unit != none && loads_[i].unit == unit) return i;
    }
    return none;
  }
  /// Where `bytes` bytes fit: at the end without the other load.
  [[nodiscard]] std::size_t place(std::size_t bytes, const Load& other) const noexcept {
    if (bytes > memory_.size()) return none;
    if (other.unit == none) return 0;
    if (other.at != 0) return bytes <= other.at ? 0 : none;
    const std::size_t at = (memory_.size() - bytes) / UnitReader::alignment * UnitReader::alignment;
    return at >= other.bytes ? at : none;
  }

  alloc::Buffer<std::byte, A> memory_;
  UnitReader reader_;
  std::array<Load, 2> loads_;
  std::array<UnitRead, 2> reads_;  // of the loads
};

}  // namespace mica::paging
