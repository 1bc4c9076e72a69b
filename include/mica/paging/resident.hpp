// SPDX-License-Identifier: Apache-2.0
//
// All weights in memory of our own: read once by direct I/O in large blocks into huge pages, past the page
// cache, so that they are in memory once and the system cannot reclaim them. Matrices are packed on the way,
// some panels at a time, so that there is never a second copy; those of a packed directory come as they are,
// and are checked. Floats of 16 bits are packed in twelve (tensor/packed12.hpp) where their numbers allow it;
// the memory that this leaves is never touched.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/direct.hpp"
#include "mica/paging/checked.hpp"
#include "mica/paging/concept.hpp"
#include "mica/tensor/packing.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

namespace mica::paging {

/// Layout::packed packs what can be packed, Layout::file leaves every row as it is. Threads: as
/// paging/concept.hpp says.
template <mica::Allocator A = alloc::Huge, Layout layout = Layout::packed>
class Resident {
 public:
  /// The most that is read through memory of ours, and the panels that are read before they are packed,
  /// unless one panel has more. Small models take less of both.
  static constexpr std::size_t bounce_bytes = std::size_t{2} << 20;
  static constexpr std::size_t panels_bytes = std::size_t{1} << 20;

  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Resident<B, layout>;
  static constexpr std::string_view name = "resident";
  static constexpr bool packs = layout == Layout::packed;

  Resident(const Table& table, A allocator, LogSink log)
      : weights_(allocator.book_as(budget::Account::weights)) {
    const std::uint64_t bytes = lay_out(table);
    auto weights = alloc::Buffer<std::byte, A>::make(weights_.allocator(), bytes);
    MICA_CHECK(weights, budget, "weights: ", bytes, " bytes ", alloc::refused(allocator, bytes),
               "; use a larger budget, a smaller quantisation, or streamed weights");
    weights_ = std::move(*weights);
    for (const Extent& tensor : table.tensors)
      packed_.push_back(packs && (tensor.packed || can_pack(table, tensor)));
    data_.resize(table.tensors.size());
    read(table, allocator, log);
  }
  [[nodiscard]] bool acquire(std::size_t /*unit*/) noexcept { return true; }
  void release(std::size_t /*unit*/) noexcept {}
  void prefetch(std::size_t /*unit*/) noexcept {}
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return data_[tensor]; }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept { return packed_[tensor]; }

 private:
  /// Reads the bytes of a source from an offset on.
  using Source = std::function<void(std::uint64_t offset, std::span<std::byte> to)>;

  /// Every tensor starts on a boundary of this many bytes.
  static constexpr std::uint64_t tensor_alignment = 64;

  /// Gives each tensor its place; returns the bytes of all.
  [[nodiscard]] std::uint64_t lay_out(const Table& table) {
    std::uint64_t end = 0;
    for (const Extent& tensor : table.tensors) {
      offsets_.push_back(end);
      end += round_up(tensor.bytes, tensor_alignment);
    }
    return end;
  }
  void read(const Table& table, A allocator, LogSink log) {
    std::size_t largest = 0, panels_at_once = 0;  // largest: of one read
    for (std::size_t i = 0; i < table.tensors.size(); ++i) {
      const Extent& tensor = table.tensors[i];
      const auto bytes = static_cast<std::size_t>(tensor.bytes);
      const bool packs_now = packed_[i] && !tensor.packed;
      const std::size_t panels_of_it = std::max(std::min(panels_bytes, bytes), panel_bytes(tensor));
      if (packs_now || may_pack12(table, tensor)) panels_at_once = std::max(panels_at_once, panels_of_it);
      largest = std::max(largest, packs_now ? panels_of_it : bytes);
    }
    const std::size_t through = std::min(
        bounce_bytes, round_up(largest, io::DirectReader::alignment) + io::DirectReader::min_bounce_bytes);
    const A io = allocator.book_as(budget::Account::io_buffers);
    auto bounce = alloc::Buffer<std::byte, A>::make(io, through, io::DirectReader::alignment);
    auto panels = alloc::Buffer<std::byte, A>::make(io, panels_at_once);
    MICA_CHECK(bounce && panels, budget, "reading weights: ", through + panels_at_once, " bytes of buffers ",
               alloc::refused(allocator, bounce ? panels_at_once : through));
    const std::span<const gguf::Source> sources = readable<A>(table.document);
    if (table.loading != nullptr) table.loading->begin(bytes_of(table));
    for (std::size_t s = 0; s < sources.size(); ++s) {
      const gguf::Source& source = sources[s];
      source.require_weights();
      std::optional<io::DirectReader> reader;
      if (source.file() != nullptr) reader.emplace(*source.file(), log);
      const Source read_at = [&](std::uint64_t offset, std::span<std::byte> to) {
        reader ? reader->read(offset, to, bounce->span()) : source.read_at(offset, to);
        if (table.loading == nullptr) return;
        table.loading->add(to.size());
        MICA_CHECK(table.loading->lacking() == 0, budget,
                   "weights: others took the memory while they were read; use --weights streamed, a smaller "
                   "quantisation, or try again later");
        MICA_CHECK(!table.loading->stopped(), failed, "opening was stopped while weights were read");
      };
      for (std::size_t i = 0; i < table.tensors.size(); ++i) {
        const Extent& tensor = table.tensors[i];
        if (tensor.source != s) continue;
        const std::span<std::byte> to = weights_.span().subspan(offsets_[i], tensor.bytes);
        data_[i] = to.data();
        if (packed_[i] && !tensor.packed) {
          read_packed(table, tensor, read_at, to, panels->span());
        } else if (may_pack12(table, tensor) && read_packed12(table, tensor, read_at, to, panels->span())) {
          packed_[i] = true;
        } else {
          read_checked(table, tensor, read_at, to);
        }
      }
    }
  }
  static void read_packed(const Table& table, const Extent& tensor, const Source& source,
                          std::span<std::byte> to, std::span<std::byte> panels) {
    const auto pack = table.packing_of(tensor.format).pack;
    const std::size_t panel = panel_bytes(tensor), step = panels.size() / panel * panel;
    for (std::size_t done = 0; done < to.size(); done += step) {
      const std::span<std::byte> part = panels.first(std::min(step, to.size() - done));
      source(tensor.offset + done, part);
      pack(part, static_cast<std::size_t>(tensor.cols), to.data() + done);
    }
  }
  /// False where the numbers of the tensor do not allow it, which then has not been read.
  [[nodiscard]] static bool read_packed12(const Table& table, const Extent& tensor, const Source& source,
                                          std::span<std::byte> to, std::span<std::byte> panels) {
    const auto pack12 = table.packing_of(tensor.format).pack12;
    const auto cols = static_cast<std::size_t>(tensor.cols);
    const std::size_t panel = panel_bytes(tensor), step = panels.size() / panel * panel;
    std::optional<io::Checksum> sum;
    if (tensor.checked) sum.emplace();
    std::byte* at = to.data();
    for (std::size_t done = 0; done < to.size(); done += step) {
      const std::span<std::byte> part = panels.first(std::min(step, to.size() - done));
      source(tensor.offset + done, part);
      if (sum) sum->add(part);
      if (!pack12(part, cols, at)) return false;
      at += tensor::packed12_bytes(part.size() / panel * tensor::Rows16::rows, cols);
    }
    MICA_CHECK(!sum || sum->value() == tensor.checksum, file, damage_text(table.document, tensor));
    return true;
  }
  /// As it lies in the file; the sum is taken while the bytes are in the processor's cache.
  static void read_checked(const Table& table, const Extent& tensor, const Source& source,
                           std::span<std::byte> to) {
    if (!tensor.checked) return source(tensor.offset, to);
    constexpr std::size_t step = io::DirectReader::block_bytes;
    io::Checksum sum;
    for (std::size_t done = 0; done < to.size(); done += step) {
      const std::span<std::byte> part = to.subspan(done, std::min(step, to.size() - done));
      source(tensor.offset + done, part);
      sum.add(part);
    }
    MICA_CHECK(sum.value() == tensor.checksum, file, damage_text(table.document, tensor));
  }

  [[nodiscard]] static bool can_pack(const Table& table, const Extent& tensor) noexcept {
    return packs && table.packing_of(tensor.format).can_pack(tensor.rows);
  }
  [[nodiscard]] static bool may_pack12(const Table& table, const Extent& tensor) noexcept {
    return packs && table.packing_of(tensor.format).can_pack12(tensor.rows, tensor.cols);
  }
  [[nodiscard]] static std::size_t panel_bytes(const Extent& tensor) noexcept {
    return tensor.rows == 0 ? 0 : static_cast<std::size_t>(tensor.bytes / tensor.rows * tensor::Rows16::rows);
  }

  alloc::Buffer<std::byte, A> weights_;
  std::vector<std::uint64_t> offsets_;  // by tensor
  std::vector<const std::byte*> data_;  // by tensor
  std::vector<bool> packed_;            // by tensor
};

static_assert(Pager<Resident<>>);

}  // namespace mica::paging
