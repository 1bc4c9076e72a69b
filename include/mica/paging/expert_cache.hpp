// SPDX-License-Identifier: Apache-2.0
//
// A cache of experts, in places of one size. A token uses a few of many experts, and the next token often
// some of the same; they are not known before the router has run. So experts are read when they are chosen,
// all of a batch at once, and replace the least recently used ones.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/assert.hpp"
#include "mica/paging/unit_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mica::paging {

/// Experts are numbered from 0. One thread; nothing throws after construction.
template <mica::Allocator A>
class ExpertCache {
 public:
  /// Places of `place_bytes`, a multiple of 4,096, for some of `experts`. Raises ErrorCode::budget when the
  /// allocator refuses.
  ExpertCache(A allocator, std::size_t experts, std::size_t place_bytes, std::size_t places,
              std::span<const gguf::Source> sources, LogSink log)
      : memory_(allocator), place_bytes_(place_bytes), reader_(sources, log), place_of_(experts, none) {
    resize(places);
  }
  /// Waits for reads that have begun.
  ~ExpertCache() {
    for (std::size_t i = 0; i < reads_.size(); ++i) reader_.settle(unit_reads(), i);
  }
  ExpertCache(ExpertCache&&) = default;
  ExpertCache& operator=(ExpertCache&&) = default;

  /// Begins to read a missing expert, if there is a place without a user.
  void begin(std::size_t expert, std::span<const ByteRange> byte_ranges) noexcept {
    if (place_of_[expert] != none) {
      places_[place_of_[expert]].wanted = true;  // or another expert of the batch may take its place
      return;
    }
    const std::uint32_t at = free_place();
    if (at == none) return;
    if (places_[at].expert != none) forget(at);
    places_[at] = {static_cast<std::uint32_t>(expert), 0, ++now_, true, true};
    place_of_[expert] = at;
    reads_[at] = {byte_ranges, memory_.data() + at * place_bytes_};
    reader_.begin(unit_reads(), at);
  }
  /// Where it lies, range after range, and keeps its place until release(); null where it could not be
  /// read, or all places are used.
  [[nodiscard]] const std::byte* acquire(std::size_t expert,
                                         std::span<const ByteRange> byte_ranges) noexcept {
    begin(expert, byte_ranges);
    const std::uint32_t at = place_of_[expert];
    if (at == none) return nullptr;
    if (!reader_.finish(unit_reads(), at)) {
      forget(at);
      return nullptr;
    }
    Place& place = places_[at];
    ++(std::exchange(place.fresh, false) ? misses_ : hits_);
    place.wanted = false;
    place.used = ++now_;
    ++place.users;
    return memory_.data() + at * place_bytes_;
  }
  /// Ends one use of an acquired expert: without users its place may be taken.
  void release(std::size_t expert) noexcept { --places_[place_of_[expert]].users; }

  /// Drops all experts, none of which is used, and sets the number of places; the old memory is freed first.
  /// Raises ErrorCode::budget, and has none then.
  void resize(std::size_t places) {
    for (std::size_t i = 0; i < reads_.size(); ++i) reader_.settle(unit_reads(), i);
    std::fill(place_of_.begin(), place_of_.end(), none);
    places_.clear();
    reads_.clear();
    const A allocator = memory_.allocator();
    memory_ = alloc::Buffer<std::byte, A>(allocator);
    auto memory = alloc::Buffer<std::byte, A>::make(allocator, places * place_bytes_, UnitReader::alignment);
    MICA_CHECK(memory, budget, "weights: places for ", places, " experts of ", place_bytes_, " bytes ",
               alloc::refused(allocator, places * place_bytes_),
               "; use a larger budget or a smaller quantisation");
    memory_ = std::move(*memory);
    places_.resize(places);
    reads_.resize(places);
  }
  /// The maximum of experts in memory.
  [[nodiscard]] std::size_t places() const noexcept { return places_.size(); }
  /// Bytes, time and uses since it was made; resize() does not reset them.
  [[nodiscard]] Reads reads() const noexcept { return reader_.reads() + Reads{0, 0, hits_, misses_}; }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  struct Place {
    std::uint32_t expert = none;
    std::uint32_t users = 0;
    std::uint64_t used = 0;  // when
    bool wanted = false;     // and not acquired yet
    bool fresh = false;      // read on request
  };

  [[nodiscard]] std::span<UnitRead> unit_reads() noexcept { return {reads_.data(), reads_.size()}; }
  /// A batch that was given up does not read its requested experts.
  [[nodiscard]] std::uint32_t free_place() noexcept {
    const std::uint32_t place = least_recently_used();
    if (place != none) return place;
    for (Place& each : places_) each.wanted = false;
    return least_recently_used();
  }
  /// The least recently used place that is neither used nor requested.
  [[nodiscard]] std::uint32_t least_recently_used() const noexcept {
    std::uint32_t best = none;
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      if (place.users > 0 || place.wanted) continue;
      if (place.expert == none) return i;
      if (best == none || place.used < places_[best].used) best = i;
    }
    return best;
  }
  void forget(std::uint32_t place) noexcept {
    reader_.settle(unit_reads(), place);
    place_of_[places_[place].expert] = none;
    places_[place] = {};
  }

  alloc::Buffer<std::byte, A> memory_;
  std::size_t place_bytes_;
  UnitReader reader_;
  std::vector<std::uint32_t> place_of_;  // by expert
  std::vector<Place> places_;
  std::vector<UnitRead> reads_;  // by place
  std::uint64_t now_ = 0;
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
};

}  // namespace mica::paging
