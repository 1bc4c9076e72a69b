// SPDX-License-Identifier: Apache-2.0
//
// Weights in mapped files: their pages are read at the first access. Opens at once, shares memory between
// processes, and the system chooses the resident pages. All bytes are booked, since a run reads them all.
// Rows are as in the file, packed in a packed directory; checksums are not compared.
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/map.hpp"
#include "mica/paging/concept.hpp"

#include <string_view>
#include <vector>

namespace mica::paging {

namespace detail {

[[nodiscard]] constexpr std::string_view mapped_name(io::MapAdvice advice) noexcept {
  return advice == io::MapAdvice::sequential ? "mapped-sequential"
         : advice == io::MapAdvice::populate ? "mapped-populated"
         : advice == io::MapAdvice::locked   ? "mapped-locked"
                                             : "mapped";
}

}  // namespace detail

/// Layout::file knows no packed rows and costs no code for them; Layout::packed serves packed directories
/// too. Threads: as paging/concept.hpp says.
template <mica::Allocator A = alloc::Huge, io::MapAdvice Advice = io::MapAdvice::lazy,
          Layout layout = Layout::file>
class Mapped {
 public:
  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Mapped<B, Advice, layout>;
  static constexpr std::string_view name = detail::mapped_name(Advice);
  static constexpr bool packs = layout == Layout::packed;

  Mapped(const Table& table, A allocator, LogSink log) {
    const std::uint64_t bytes = bytes_of(table);
    auto booking = alloc::Booking::make(allocator, budget::Account::weights, bytes);
    MICA_CHECK(booking, budget, "weights: ", bytes, " bytes ", alloc::refused(allocator, bytes),
               "; use a larger budget, a smaller quantisation, or streamed weights");
    booking_ = std::move(*booking);
    std::vector<const std::byte*> sources;
    for (const gguf::Source& source : readable<A>(table.document)) {
      if (source.file() != nullptr) mappings_.emplace_back(*source.file(), Advice, log);
      sources.push_back(source.file() != nullptr ? mappings_.back().bytes().data() : source.memory().data());
    }
    for (const Extent& tensor : table.tensors) packed_.push_back(tensor.packed);
    data_.reserve(table.tensors.size());
    for (const Extent& tensor : table.tensors) {
      data_.push_back(sources.empty() ? nullptr : sources[tensor.source] + tensor.offset);
    }
  }
  [[nodiscard]] bool acquire(std::size_t /*unit*/) noexcept { return true; }
  void release(std::size_t /*unit*/) noexcept {}
  void prefetch(std::size_t /*unit*/) noexcept {}
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return data_[tensor]; }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept { return packs && packed_[tensor]; }

 private:
  std::vector<io::Mapping> mappings_;
  std::vector<const std::byte*> data_;  // by tensor
  std::vector<bool> packed_;            // by tensor
  alloc::Booking booking_;
};

static_assert(Pager<Mapped<>>);

}  // namespace mica::paging
