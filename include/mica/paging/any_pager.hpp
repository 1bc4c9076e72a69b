// SPDX-License-Identifier: Apache-2.0
//
// A pager chosen at run time: one virtual call per unit and tensor. For programs; a user of the library names
// the type.
#pragma once

#include "mica/base/detail/enumerators.hpp"
#include "mica/base/visit.hpp"
#include "mica/paging/choice.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/paging/resident.hpp"
#include "mica/paging/streamed.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace mica::paging {

/// The pagers that can be chosen, in the order of Choice.
template <mica::Allocator A>
using Pagers = TypeList<Mapped<A, io::MapAdvice::lazy, Layout::packed>,
                        Mapped<A, io::MapAdvice::sequential, Layout::packed>,
                        Mapped<A, io::MapAdvice::populate, Layout::packed>,
                        Mapped<A, io::MapAdvice::locked, Layout::packed>, Resident<A>, Streamed<A>>;

namespace detail {

inline constexpr auto pager_names = names_of(Pagers<alloc::Huge>{});
static_assert(mica::detail::enumerators_are<Choice>(pager_names));

}  // namespace detail

/// Names by Choice.
[[nodiscard]] constexpr std::span<const std::string_view> choice_names() noexcept {
  return detail::pager_names;
}
[[nodiscard]] constexpr std::string_view name(Choice choice) noexcept {
  return choice_names()[static_cast<std::size_t>(choice)];
}

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
  [[nodiscard]] bool acquire(std::size_t unit) noexcept { return pager_->acquire(unit); }
  void release(std::size_t unit) noexcept { pager_->release(unit); }
  void prefetch(std::size_t unit) noexcept { pager_->prefetch(unit); }
  [[nodiscard]] const std::byte* data(std::size_t tensor) const noexcept { return pager_->data(tensor); }
  [[nodiscard]] bool packed(std::size_t tensor) const noexcept { return pager_->packed(tensor); }

  // Required by StreamingPager
  /// 0 where the pager reads nothing.
  [[nodiscard]] std::uint64_t streamed_bytes() const noexcept { return pager_->streamed_bytes(); }
  [[nodiscard]] Reads reads() const noexcept { return pager_->reads(); }

  // Required by ResizablePager
  /// False where the pager cannot be resized; room() is then all 0.
  bool resize(std::uint64_t bytes) { return pager_->resize(bytes); }
  [[nodiscard]] WeightCapacity capacity() const noexcept { return pager_->capacity(); }

  // Specific to AnyPager
  /// bytes: for a pager that takes them (Streamed).
  AnyPager(const Table& table, A allocator, LogSink log, Choice choice, std::uint64_t bytes = 0);

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual bool acquire(std::size_t unit) noexcept = 0;
    virtual void release(std::size_t unit) noexcept = 0;
    virtual void prefetch(std::size_t unit) noexcept = 0;
    virtual const std::byte* data(std::size_t tensor) const noexcept = 0;
    virtual bool packed(std::size_t tensor) const noexcept = 0;
    virtual std::uint64_t streamed_bytes() const noexcept = 0;
    virtual Reads reads() const noexcept = 0;
    virtual bool resize(std::uint64_t bytes) = 0;
    virtual WeightCapacity capacity() const noexcept = 0;
  };

  template <Pager P>
  struct Holder final : Interface {
    template <class... Bytes>
    Holder(const Table& table, A allocator, LogSink log, Bytes... bytes)
        : pager(table, allocator, log, bytes...) {}
    bool acquire(std::size_t unit) noexcept override { return pager.acquire(unit); }
    void release(std::size_t unit) noexcept override { pager.release(unit); }
    void prefetch(std::size_t unit) noexcept override { pager.prefetch(unit); }
    const std::byte* data(std::size_t tensor) const noexcept override { return pager.data(tensor); }
    bool packed(std::size_t tensor) const noexcept override { return pager.packed(tensor); }
    std::uint64_t streamed_bytes() const noexcept override {
      if constexpr (StreamingPager<P>) return pager.streamed_bytes();
      return 0;
    }
    Reads reads() const noexcept override {
      if constexpr (StreamingPager<P>) return pager.reads();
      return {};
    }
    bool resize([[maybe_unused]] std::uint64_t bytes) override {
      if constexpr (ResizablePager<P>) return pager.resize(bytes);
      return false;
    }
    WeightCapacity capacity() const noexcept override {
      if constexpr (ResizablePager<P>) return pager.capacity();
      return {};
    }
    P pager;
  };

  std::unique_ptr<Interface> pager_;
};

template <mica::Allocator A>
AnyPager<A>::AnyPager(const Table& table, A allocator, LogSink log, Choice choice, std::uint64_t bytes) {
  visit_at(Pagers<A>{}, static_cast<std::size_t>(choice), [&](auto type) {
    using P = typename decltype(type)::type;
    if constexpr (std::is_constructible_v<P, const Table&, A, LogSink, std::uint64_t>) {
      pager_ = std::make_unique<Holder<P>>(table, allocator, log, bytes);
    } else {
      pager_ = std::make_unique<Holder<P>>(table, allocator, log);
    }
  });
}

static_assert(StreamingPager<AnyPager<>> && ResizablePager<AnyPager<>>);

}  // namespace mica::paging
