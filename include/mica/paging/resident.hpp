// SPDX-License-Identifier: Apache-2.0
//
// All weights in memory of our own: read once by direct I/O in large blocks into huge pages, past the page cache, so
// that they are in memory once and nobody reclaims them behind our back.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/io/direct.hpp"
#include "mica/paging/concept.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace mica::paging {

template <mica::Allocator A = alloc::Huge>
class Resident {
 public:
  static constexpr std::size_t bounce_bytes = std::size_t{2} << 20;

  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Resident<B>;
  static constexpr std::string_view name = "resident";

  Resident(const Table& table, A allocator, LogSink log);
  [[nodiscard]] bool acquire(std::size_t /*group*/) noexcept { return true; }
  void release(std::size_t /*group*/) noexcept {}
  void prefetch(std::size_t /*group*/) noexcept {}
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return data_[tensor]; }

 private:
  /// Every tensor starts on a boundary of this many bytes.
  static constexpr std::uint64_t tensor_alignment = 64;

  /// Gives each tensor its place; returns the bytes of all.
  [[nodiscard]] std::uint64_t lay_out(const Table& table);
  void read(const Table& table, A allocator, LogSink log);

  alloc::Buffer<std::byte, A> weights_;
  std::vector<std::uint64_t> offsets_;  // by tensor
  std::vector<const std::byte*> data_;  // by tensor
};

template <mica::Allocator A>
Resident<A>::Resident(const Table& table, A allocator, LogSink log)
    : weights_(alloc::for_account(allocator, budget::Account::weights)) {
  const std::uint64_t bytes = lay_out(table);
  auto weights = alloc::Buffer<std::byte, A>::make(weights_.allocator(), bytes);
  MICA_CHECK(weights, budget, "weights: ", bytes,
             " bytes do not fit the memory budget; use a smaller quantisation");
  weights_ = std::move(*weights);
  for (const std::uint64_t offset : offsets_) data_.push_back(A::dry ? nullptr : weights_.data() + offset);
  read(table, allocator, log);
}

template <mica::Allocator A>
std::uint64_t Resident<A>::lay_out(const Table& table) {
  std::uint64_t end = 0;
  for (const Extent& tensor : table.tensors) {
    offsets_.push_back(end);
    end += round_up(tensor.bytes, tensor_alignment);
  }
  return end;
}

template <mica::Allocator A>
void Resident<A>::read(const Table& table, A allocator, LogSink log) {
  auto bounce = alloc::Buffer<std::byte, A>::make(alloc::for_account(allocator, budget::Account::io_buffers),
                                                  bounce_bytes, io::DirectReader::alignment);
  MICA_CHECK(bounce, budget, "reading weights needs a buffer of ", bounce_bytes,
             " bytes beyond the memory budget");
  if constexpr (!A::dry) {
    for (std::size_t s = 0; s < table.document.sources().size(); ++s) {
      const gguf::Source& source = table.document.sources()[s];
      std::optional<io::DirectReader> reader;
      if (source.file() != nullptr) reader.emplace(*source.file(), log);
      for (std::size_t i = 0; i < table.tensors.size(); ++i) {
        const Extent& tensor = table.tensors[i];
        if (tensor.source != s) continue;
        const std::span<std::byte> to = weights_.span().subspan(offsets_[i], tensor.bytes);
        reader ? reader->read(tensor.offset, to, bounce->span()) : source.read_at(tensor.offset, to);
      }
    }
  }
}

static_assert(Pager<Resident<>>);

}  // namespace mica::paging
