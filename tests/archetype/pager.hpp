// SPDX-License-Identifier: Apache-2.0
//
// The minimal Pager: every tensor is read once, into a buffer of its own.

#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/paging/concept.hpp"

#include <vector>

namespace mica::archetype {

template <mica::Allocator A>
class Pager {
 public:
  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Pager<B>;
  static constexpr std::string_view name = "plain";
  static constexpr bool packs = false;

  Pager(const mica::paging::Table& table, A allocator, mica::LogSink /*log*/) {
    for (const mica::paging::Extent& tensor : table.tensors) {
      auto buffer = mica::alloc::Buffer<std::byte, A>::make(allocator, tensor.bytes);
      MICA_CHECK(buffer, budget, "weights: a tensor of ", tensor.bytes, " bytes does not fit");
      table.document.sources()[tensor.source].read_at(tensor.offset, buffer->span());
      tensors_.push_back(std::move(*buffer));
    }
  }
  bool acquire(std::size_t /*unit*/) noexcept { return true; }
  void release(std::size_t /*unit*/) noexcept {}
  void prefetch(std::size_t /*unit*/) noexcept {}
  const std::byte* data(std::size_t tensor) const noexcept { return tensors_[tensor].data(); }
  bool packed(std::size_t /*tensor*/) const noexcept { return false; }

 private:
  std::vector<mica::alloc::Buffer<std::byte, A>> tensors_;
};

}  // namespace mica::archetype
