// SPDX-License-Identifier: Apache-2.0
//
// Changes the resident units of a streamed model: units that will not be resident are freed first, then the
// ring, then new units are read, then a ring is made that fits. So memory never exceeds the larger of both
// capacities.
#pragma once

#include "mica/base/error.hpp"
#include "mica/paging/streamed.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace mica::paging {

template <mica::Allocator A, Layout L>
WeightCapacity Streamed<A, L>::capacity() const noexcept {
  if (sizes_.empty()) return {};
  std::uint64_t all = 0;
  for (const std::uint64_t size : sizes_) all += size;
  const std::uint64_t rows = residency_.rows_stay ? rows_bytes_ : 0;
  const std::uint64_t experts = units_.size() - output_ - 1, places = experts_ ? experts_->places() : 0;
  return {whole_ring_ + expert_places(0) * place_bytes_, residency_.bytes() + rows + places * place_bytes_,
          requested_, all + rows_bytes_ + experts * place_bytes_ + reading_bytes};
}

template <mica::Allocator A, Layout L>
void Streamed<A, L>::drop(std::size_t set) noexcept {
  if (!blocks_[set]) return;
  blocks_[set].reset();
  for (const std::size_t tensor : sets_[set]) {
    data_[tensor] = mapped_[tensor];
    packed_[tensor] = packs && table_.tensors[tensor].packed;
    resident_[tensor] = false;
  }
}

/// Reads the missing resident units; false at the first one that could not be read.
template <mica::Allocator A, Layout L>
bool Streamed<A, L>::keep_chosen(const Residency& chosen) {
  try {
    for (std::size_t place = 0; place < order_.size(); ++place) {
      if (chosen.stays[place] && !blocks_[place]) keep(place);
    }
    if (chosen.rows_stay && !blocks_[rows_set()]) keep(rows_set());
    return true;
  } catch (const Error& error) {
    log_(LogLevel::info, join("weights stay in the file: ", error.message()));
    return false;
  }
}

/// A ring for what does not stay; where it has no room beside what does, less stays.
template <mica::Allocator A, Layout L>
void Streamed<A, L>::settle(Residency chosen, std::uint64_t bytes) {
  for (std::size_t place = 0;; ++place) {
    const bool none = chosen.staying_bytes == 0;
    if (none && chosen.bytes() > bytes) chosen.ring_bytes = *std::max_element(sizes_.begin(), sizes_.end());
    residency_ = chosen;
    try {
      if (none || chosen.bytes() <= bytes) {
        if (ring_ || chosen.ring_bytes > 0) make_ring(chosen.ring_bytes);
        return;
      }
    } catch (const Error& error) {
      log_(LogLevel::warning, error.message());
      if (none) return;
    }
    drop(rows_set());
    drop(place);
    std::vector<bool> stays = chosen.stays;
    stays[place] = false;
    chosen = detail::residency_of(sizes_, std::move(stays));
  }
}

/// Experts are dropped, and read again when they are chosen. False if there are fewer places than that.
template <mica::Allocator A, Layout L>
bool Streamed<A, L>::set_places(std::size_t places) {
  for (const std::size_t n : {places, expert_places(0)}) {
    try {
      experts_->resize(n);
      return n == places;
    } catch (const Error& error) {
      log_(LogLevel::warning, error.message());
    }
  }
  return false;
}

template <mica::Allocator A, Layout L>
bool Streamed<A, L>::resize(std::uint64_t bytes) {
  if (sizes_.empty()) return false;
  requested_ = bytes;
  const std::size_t places = expert_places(bytes);
  const std::uint64_t left = bytes - std::min<std::uint64_t>(bytes, places * place_bytes_);
  Residency chosen = choose(left);
  if (chosen.ring_bytes < reading_bytes) {  // reading takes more than the ring that waits
    chosen = choose(left - std::min<std::uint64_t>(left, reading_bytes));
  }
  const bool same_places = !experts_ || places == experts_->places();
  if (same_places && chosen.stays == residency_.stays && chosen.rows_stay == residency_.rows_stay &&
      chosen.ring_bytes == residency_.ring_bytes)
    return true;
  bool all = !experts_ || places >= experts_->places() || set_places(places);
  if (ring_) ring_->resize(0);
  if (!chosen.rows_stay) drop(rows_set());
  for (std::size_t place = 0; place < order_.size(); ++place) {
    if (!chosen.stays[place]) drop(place);
  }
  if (!keep_chosen(chosen)) {
    all = false;
    for (std::size_t place = 0; place < order_.size(); ++place)
      chosen.stays[place] = blocks_[place].has_value();
    chosen = detail::residency_of(sizes_, chosen.stays);
  }
  settle(std::move(chosen), left);
  if (experts_ && places > experts_->places()) all = set_places(places) && all;
  next_ = 0;
  return all;
}

}  // namespace mica::paging
