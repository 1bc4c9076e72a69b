// SPDX-License-Identifier: Apache-2.0
//
// A storage chosen at run time, at the cost of one branch for each call of a member, such as run(). It is for
// programs; a user of the library names the type of the storage instead.
#pragma once

#include "mica/base/detail/one_of.hpp"
#include "mica/kv/choice.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/reserved.hpp"
#include "mica/kv/segmented.hpp"
#include "mica/kv/spilled.hpp"
#include "mica/kv/spilled_paged.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace mica::kv {

/// The storages that can be chosen, in the order of Choice.
template <mica::Allocator A>
using Storages = TypeList<Segmented<A>, Contiguous<A>, Reserved<A>, Paged<A>, Spilled<A>, Spilled<Paged<A>>>;

/// Names by Choice.
inline constexpr auto choice_names = names_of(Storages<alloc::Huge>{});
[[nodiscard]] constexpr std::string_view name(Choice choice) noexcept {
  return choice_names[static_cast<std::size_t>(choice)];
}

/// Threads: as kv/concept.hpp says.
template <mica::Allocator A = alloc::Huge>
class AnyStorage {
 public:
  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = AnyStorage<B>;
  static constexpr std::string_view name = "any";

  AnyStorage(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
      : AnyStorage(allocator, layers, max_tokens, Choice::segmented) {}
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept {
    return storage_.visit([&](auto& s) { return s.reserve(tokens); });
  }
  void shrink(std::size_t tokens) noexcept {
    storage_.visit([&](auto& s) { s.shrink(tokens); });
  }
  [[nodiscard]] std::size_t capacity() const noexcept {
    return storage_.visit([](const auto& s) { return s.capacity(); });
  }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return storage_.visit([&](const auto& s) { return s.first_tile(layer); });
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    return storage_.visit([&](const auto& s) { return s.run(layer, head, tile); });
  }

  // Required by SharingStorage
  /// None where the storage does not share.
  [[nodiscard]] std::size_t adopt(const AnyStorage& other, std::size_t tokens) noexcept {
    return storage_.visit_or(std::size_t{0}, [&]<SharingStorage S>(S& s) {
      const S* const same = other.storage_.template get<S>();
      return same == nullptr ? 0 : s.adopt(*same, tokens);
    });
  }

  // Required by SpillingStorage
  [[nodiscard]] bool fetch(std::size_t layer) noexcept {
    return storage_.visit_or(true, [&](SpillingStorage auto& s) { return s.fetch(layer); });
  }
  void prefetch(std::size_t layer) noexcept {
    storage_.visit([&]<class S>(S& s) {
      if constexpr (SpillingStorage<S>) s.prefetch(layer);
    });
  }
  [[nodiscard]] const SpillFailure* spill_failure() const noexcept {
    const SpillFailure* const none = nullptr;
    return storage_.visit_or(none, [](SpillingStorage auto& s) { return s.spill_failure(); });
  }

  // Required by ParkingStorage
  /// False where the storage does not park.
  [[nodiscard]] bool park() noexcept {
    return storage_.visit_or(false, [](ParkingStorage auto& s) { return s.park(); });
  }

  // Specific to AnyStorage
  /// Of the type that `choice` names; raises as its constructor.
  AnyStorage(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens, Choice choice)
      : storage_(static_cast<std::size_t>(choice),
                 [&]<class S>(Type<S>) { return std::make_unique<S>(allocator, layers, max_tokens); }) {}

 private:
  mica::detail::OneOf<Storages<A>> storage_;
};

static_assert(SharingStorage<AnyStorage<>> && SpillingStorage<AnyStorage<>> && ParkingStorage<AnyStorage<>>);

}  // namespace mica::kv
