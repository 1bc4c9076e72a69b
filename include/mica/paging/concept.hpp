// SPDX-License-Identifier: Apache-2.0
//
// The concept of pagers: weights are used in units, and a unit's tensors have addresses while it is acquired.
// Unit 0 is the embedding, units 1..L are the layers, unit L + 1 is the output matrix; a step uses them in
// this order. Units from L + 2 on are single experts, acquired while their layer is and only when a token
// uses them.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/base/log.hpp"
#include "mica/gguf/document.hpp"
#include "mica/paging/load_progress.hpp"
#include "mica/tensor/packing.hpp"

#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

namespace mica {

namespace paging {

/// How a pager lays out the rows of matrices: all as in the file, or packed where that is possible
/// (tensor/packing.hpp).
enum class Layout : std::uint8_t { file, packed };

/// Where one tensor lies on disk, and the unit it is used with. One whose rows may be packed
/// (tensor/detail/rows16.hpp) says what it is: a matrix that only products read, in slices of whole panels.
struct Extent {
  std::uint32_t source = 0;  // which file of the document
  std::uint32_t unit = 0;    // with which it is acquired
  std::uint64_t offset = 0;  // bytes from the beginning of that file
  std::uint64_t bytes = 0;
  format::Id format = {};      // of its blocks
  std::uint64_t rows = 0;      // 0: to be left as it is
  std::uint64_t cols = 0;      // of a row
  bool packed = false;         // its rows lie packed already; packed() must then be true
  bool checked = false;        // whether there is a checksum of its bytes
  std::uint64_t checksum = 0;  // as io::Checksum gives it
};

/// Everything a pager must know. The document and the tensors outlive the pager.
struct Table {
  const gguf::Document& document;   // the files
  std::span<const Extent> tensors;  // by the numbers that data() takes
  std::size_t units = 0;            // all, with those of experts
  std::size_t output = 0;           // the unit of the output matrix; 0: the last one, there are no experts
  std::size_t experts = 0;          // of a layer at most
  /// For pagers that pack: of the model's formats; null: rows stay as they are.
  tensor::FindPacking packing = nullptr;
  LoadCounter* loading = nullptr;  // counts what the constructor of the pager reads; null: it need not

  /// How rows of a format are packed; empty where they stay as they are.
  [[nodiscard]] tensor::Packing packing_of(format::Id format) const noexcept {
    return packing == nullptr ? tensor::Packing{} : packing(format);
  }
  /// The unit of the output matrix.
  [[nodiscard]] std::size_t output_unit() const noexcept { return output == 0 ? units - 1 : output; }
};

/// The bytes of all tensors of a table.
[[nodiscard]] inline std::uint64_t bytes_of(const Table& table) noexcept {
  std::uint64_t bytes = 0;
  for (const Extent& tensor : table.tensors) bytes += tensor.bytes;
  return bytes;
}

/// The files that a pager with this allocator reads: none in a plan.
template <mica::Allocator A>
[[nodiscard]] std::span<const gguf::Source> readable(const gguf::Document& document) noexcept {
  return document.sources().first(alloc::touchable<A>(document.sources().size()));
}

/// The capacity of a pager in bytes: with less than the minimum it does not work, with more than the maximum
/// it holds no more. All 0: it cannot be resized.
struct WeightCapacity {
  std::uint64_t min = 0;        // of any request
  std::uint64_t resident = 0;   // now
  std::uint64_t requested = 0;  // the last time
  std::uint64_t max = 0;        // when everything is resident

  friend bool operator==(const WeightCapacity&, const WeightCapacity&) = default;
};

/// Whether there is memory for a streamed unit and the next one: units are read while others are computed.
[[nodiscard]] constexpr bool reads_ahead(const WeightCapacity& capacity) noexcept {
  return capacity.requested >= capacity.min;
}

/// The bytes that a pager read since it was made, and the time that steps waited for them: whether a run has
/// the speed of the disk or of the cores. Take the difference of two.
struct Reads {
  std::uint64_t bytes = 0;          // of layers, output matrix and experts, without resident ones
  double waited = 0;                // seconds in which nothing was computed because bytes were missing
  std::uint64_t expert_hits = 0;    // uses of experts that were in memory
  std::uint64_t expert_misses = 0;  // and of those that were not

  [[nodiscard]] friend Reads operator+(const Reads& a, const Reads& b) noexcept {
    return {a.bytes + b.bytes, a.waited + b.waited, a.expert_hits + b.expert_hits,
            a.expert_misses + b.expert_misses};
  }
  [[nodiscard]] friend Reads operator-(const Reads& a, const Reads& b) noexcept {
    return {a.bytes - b.bytes, a.waited - b.waited, a.expert_hits - b.expert_hits,
            a.expert_misses - b.expert_misses};
  }
};

/// Some rows of a matrix that passes in slices, and where they are.
struct Slice {
  std::size_t first_row = 0, rows = 0;
  const std::byte* data = nullptr;  // null: it could not be read
};

}  // namespace paging

/// Brings units of weights into memory. One step at a time; data() may be called from any thread while a unit
/// is acquired. Constructed from (table, allocator, log); raises mica::Error when the files cannot be read
/// or the budget refuses.
// clang-format off
template <class P>
concept Pager = requires(P pager, const P constant, const paging::Table& table, typename P::Allocator allocator,
                         LogSink log, std::size_t index) {
  { P::name } -> std::convertible_to<std::string_view>;       // as command lines spell it
  typename P::template Rebind<typename P::Allocator>;         // the same pager over another allocator
  { P::packs } -> std::convertible_to<bool>;                  // false: packed() never is true
  P(table, allocator, log);                                   // the sink's context outlives the pager
  { pager.acquire(index) } noexcept -> std::same_as<bool>;    // unit; false: it could not be read
  { pager.release(index) } noexcept -> std::same_as<void>;    // unit
  { pager.prefetch(index) } noexcept -> std::same_as<void>;   // the next unit, or an expert; a hint
  { constant.data(index) } noexcept -> std::same_as<const std::byte*>;  // tensor, of an acquired unit
  { constant.packed(index) } noexcept -> std::same_as<bool>;  // tensor: as packing_of() packs it
};

/// A pager that reads weights for each step. streamed_bytes(): their bytes, with the output matrix. reads():
/// what it read so far.
template <class P>
concept StreamingPager = Pager<P> && requires(const P constant) {
  { constant.streamed_bytes() } noexcept -> std::same_as<std::uint64_t>;  // without experts
  { constant.reads() } noexcept -> std::same_as<paging::Reads>;           // since it was made
};

/// A pager whose output matrix may be larger than memory: it passes in slices of rows, one after the other,
/// while its unit is acquired. slices(unit): how many; 1: data() has all rows.
template <class P>
concept SlicingPager = Pager<P> && requires(P pager, std::size_t unit, std::size_t slice) {
  { pager.slices(unit) } noexcept -> std::same_as<std::size_t>;                // of an acquired unit
  { pager.acquire_slice(unit, slice) } noexcept -> std::same_as<paging::Slice>;  // one at a time
  { pager.release_slice(unit, slice) } noexcept -> std::same_as<void>;
};

/// A pager whose weights leave memory and come back between two steps. resize(bytes): sets the capacity;
/// false: less is resident than the capacity allows, since memory was refused or a read failed. Cost: that of
/// the bytes that are read. yield(bytes): frees that many bytes at once, or fewer if a step uses the others;
/// returns how many. rest(): no step follows soon; frees the memory that weights pass through.
template <class P>
concept ResizablePager = Pager<P> && requires(P pager, const P constant, std::uint64_t bytes) {
  { pager.resize(bytes) } -> std::same_as<bool>;                             // not within a step
  { constant.capacity() } noexcept -> std::same_as<paging::WeightCapacity>;  // now; any thread
  { pager.rest() } noexcept -> std::same_as<void>;                           // not within a step
  { pager.yield(bytes) } noexcept -> std::same_as<std::uint64_t>;            // any thread, also within a step
};
// clang-format on

/// A pager that can be over the allocator A.
template <class P, class A>
concept PagerFor = Allocator<A> && Pager<typename P::template Rebind<A>>;

}  // namespace mica
