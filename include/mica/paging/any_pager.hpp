// SPDX-License-Identifier: Apache-2.0
//
// A pager chosen at run time: one jump per unit and tensor. For programs; a user of the library names
// the type.
#pragma once

#include "mica/base/detail/one_of.hpp"
#include "mica/paging/choice.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/paging/resident.hpp"
#include "mica/paging/streamed.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

namespace mica::paging {

/// The pagers that can be chosen, in the order of Choice.
template <mica::Allocator A>
using Pagers = TypeList<Mapped<A, io::MapAdvice::lazy, Layout::packed>,
                        Mapped<A, io::MapAdvice::sequential, Layout::packed>,
                        Mapped<A, io::MapAdvice::populate, Layout::packed>,
                        Mapped<A, io::MapAdvice::locked, Layout::packed>, Resident<A>, Streamed<A>>;

/// Names by Choice.
inline constexpr auto choice_names = names_of(Pagers<alloc::Huge>{});
[[nodiscard]] constexpr std::string_view name(Choice choice) noexcept {
  return choice_names[static_cast<std::size_t>(choice)];
}

/// Threads: as paging/concept.hpp says.
template <mica::Allocator A = alloc::Huge>
class AnyPager {
 public:
  // Required by Pager
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = AnyPager<B>;
  static constexpr std::string_view name = "any";
  static constexpr bool packs = true;

  AnyPager(const Table& table, A allocator, LogSink log) : AnyPager(table, allocator, log, Choice::mapped) {}
  [[nodiscard]] bool acquire(std::size_t unit) noexcept {
    return pager_.visit([&](auto& p) { return p.acquire(unit); });
  }
  void release(std::size_t unit) noexcept {
    pager_.visit([&](auto& p) { p.release(unit); });
  }
  void prefetch(std::size_t unit) noexcept {
    pager_.visit([&](auto& p) { p.prefetch(unit); });
  }
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept {
    return pager_.visit([&](const auto& p) { return p.data(tensor); });
  }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept {
    return pager_.visit([&](const auto& p) { return p.packed(tensor); });
  }

  // Required by SlicingPager
  /// 1 where the pager has no slices.
  [[nodiscard]] std::size_t slices(std::size_t unit) noexcept {
    return pager_.visit_or(std::size_t{1}, [&](SlicingPager auto& p) { return p.slices(unit); });
  }
  [[nodiscard]] Slice acquire_slice(std::size_t unit, std::size_t slice) noexcept {
    return pager_.visit_or(Slice(), [&](SlicingPager auto& p) { return p.acquire_slice(unit, slice); });
  }
  void release_slice(std::size_t unit, std::size_t slice) noexcept {
    pager_.visit([&](auto& p) {
      if constexpr (SlicingPager<std::remove_reference_t<decltype(p)>>) p.release_slice(unit, slice);
    });
  }

  // Required by StreamingPager
  /// 0 where the pager reads nothing.
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept {
    return pager_.visit_or(std::uint64_t{0}, [](StreamingPager auto& p) { return p.streamed_bytes(); });
  }
  [[nodiscard]] Reads reads() const noexcept {
    return pager_.visit_or(Reads(), [](StreamingPager auto& p) { return p.reads(); });
  }

  // Required by ResizablePager
  /// False where the pager cannot be resized; capacity() is then all 0.
  bool resize(std::uint64_t bytes) {
    return pager_.visit_or(false, [&](ResizablePager auto& p) { return p.resize(bytes); });
  }
  [[nodiscard]] WeightCapacity capacity() const noexcept {
    return pager_.visit_or(WeightCapacity(), [](ResizablePager auto& p) { return p.capacity(); });
  }
  void rest() noexcept {
    pager_.visit([](auto& p) {
      if constexpr (ResizablePager<std::remove_reference_t<decltype(p)>>) p.rest();
    });
  }
  std::uint64_t yield(std::uint64_t bytes) noexcept {
    return pager_.visit_or(std::uint64_t{0}, [&](ResizablePager auto& p) { return p.yield(bytes); });
  }

  // Specific to AnyPager
  /// bytes: for a pager that takes them (Streamed).
  AnyPager(const Table& table, A allocator, LogSink log, Choice choice, std::uint64_t bytes = 0)
      : pager_(static_cast<std::size_t>(choice), [&]<class P>(Type<P>) {
          if constexpr (std::is_constructible_v<P, const Table&, A, LogSink, std::uint64_t>) {
            return std::make_unique<P>(table, allocator, log, bytes);
          } else {
            return std::make_unique<P>(table, allocator, log);
          }
        }) {}

 private:
  mica::detail::OneOf<Pagers<A>> pager_;
};

static_assert(StreamingPager<AnyPager<>> && ResizablePager<AnyPager<>> && SlicingPager<AnyPager<>>);

}  // namespace mica::paging
