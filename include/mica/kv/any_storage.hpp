// SPDX-License-Identifier: Apache-2.0
//
// A storage chosen at run time: one virtual call per run. For programs; a library user names the type.
#pragma once

#include "mica/base/detail/enumerators.hpp"
#include "mica/base/visit.hpp"
#include "mica/kv/choice.hpp"
#include "mica/kv/contiguous.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/reserved.hpp"
#include "mica/kv/segmented.hpp"
#include "mica/kv/spilled.hpp"
#include "mica/kv/spilled_paged.hpp"

#include <memory>
#include <string_view>

namespace mica::kv {

/// The storages that can be chosen, in the order of Choice.
template <mica::Allocator A>
using Storages = TypeList<Segmented<A>, Contiguous<A>, Reserved<A>, Paged<A>, Spilled<A>, Spilled<Paged<A>>>;

namespace detail {

inline constexpr auto storage_names = names_of(Storages<alloc::Huge>{});
static_assert(mica::detail::enumerators_are<Choice>(storage_names));

}  // namespace detail

/// Names by Choice.
[[nodiscard]] constexpr std::span<const std::string_view> choice_names() noexcept {
  return detail::storage_names;
}
[[nodiscard]] constexpr std::string_view name(Choice choice) noexcept {
  return choice_names()[static_cast<std::size_t>(choice)];
}

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
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept { return storage_->reserve(tokens); }
  void shrink(std::size_t tokens) noexcept { storage_->shrink(tokens); }
  [[nodiscard]] std::size_t capacity() const noexcept { return storage_->capacity(); }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return storage_->first_tile(layer);
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    return storage_->run(layer, head, tile);
  }

  // Required by SharingStorage
  /// None where the storage does not share.
  [[nodiscard]] std::size_t adopt(const AnyStorage& other, std::size_t tokens) noexcept {
    return storage_->adopt(*other.storage_, tokens);
  }

  // Required by SpillingStorage
  [[nodiscard]] bool fetch(std::size_t layer) noexcept { return storage_->fetch(layer); }
  void prefetch(std::size_t layer) noexcept { storage_->prefetch(layer); }
  [[nodiscard]] const SpillFailure* spill_failure() const noexcept { return storage_->spill_failure(); }

  // Required by ParkingStorage
  /// False where the storage does not park.
  [[nodiscard]] bool park() noexcept { return storage_->park(); }

  // Specific to AnyStorage
  AnyStorage(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens, Choice choice);

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual bool reserve(std::size_t tokens) noexcept = 0;
    virtual void shrink(std::size_t tokens) noexcept = 0;
    virtual std::size_t capacity() const noexcept = 0;
    virtual std::size_t first_tile(std::size_t layer) const noexcept = 0;
    virtual Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept = 0;
    virtual std::string_view name() const noexcept = 0;
    virtual bool fetch(std::size_t layer) noexcept = 0;
    virtual void prefetch(std::size_t layer) noexcept = 0;
    virtual const SpillFailure* spill_failure() const noexcept = 0;
    virtual bool park() noexcept = 0;
    virtual std::size_t adopt(const Interface& other, std::size_t tokens) noexcept = 0;
  };

  template <KvStorage S>
  struct Holder final : Interface {
    Holder(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
        : storage(allocator, layers, max_tokens) {}
    bool reserve(std::size_t tokens) noexcept override { return storage.reserve(tokens); }
    void shrink(std::size_t tokens) noexcept override { storage.shrink(tokens); }
    std::size_t capacity() const noexcept override { return storage.capacity(); }
    std::size_t first_tile(std::size_t layer) const noexcept override { return storage.first_tile(layer); }
    Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept override {
      return storage.run(layer, head, tile);
    }
    std::string_view name() const noexcept override { return S::name; }
    bool fetch([[maybe_unused]] std::size_t layer) noexcept override {
      if constexpr (SpillingStorage<S>) return storage.fetch(layer);
      return true;
    }
    void prefetch([[maybe_unused]] std::size_t layer) noexcept override {
      if constexpr (SpillingStorage<S>) storage.prefetch(layer);
    }
    const SpillFailure* spill_failure() const noexcept override {
      if constexpr (SpillingStorage<S>) return storage.spill_failure();
      return nullptr;
    }
    bool park() noexcept override {
      if constexpr (ParkingStorage<S>) return storage.park();
      return false;
    }
    std::size_t adopt([[maybe_unused]] const Interface& other,
                      [[maybe_unused]] std::size_t tokens) noexcept override {
      if constexpr (SharingStorage<S>) {
        if (other.name() == S::name) {
          return storage.adopt(static_cast<const Holder&>(other).storage, tokens);
        }
      }
      return 0;
    }
    S storage;
  };

  std::unique_ptr<Interface> storage_;
};

template <mica::Allocator A>
AnyStorage<A>::AnyStorage(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens,
                          Choice choice) {
  visit_at(Storages<A>{}, static_cast<std::size_t>(choice), [&](auto type) {
    storage_ = std::make_unique<Holder<typename decltype(type)::type>>(allocator, layers, max_tokens);
  });
}

static_assert(SharingStorage<AnyStorage<>> && SpillingStorage<AnyStorage<>> && ParkingStorage<AnyStorage<>>);

}  // namespace mica::kv
