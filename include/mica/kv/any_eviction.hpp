// SPDX-License-Identifier: Apache-2.0
//
// An eviction policy chosen at run time. It is for programs; a user of the library names the type of the
// policy instead.
#pragma once

#include "mica/kv/heavy_hitters.hpp"
#include "mica/kv/sinks_and_window.hpp"

#include <concepts>
#include <cstddef>
#include <string_view>
#include <utility>
#include <variant>

namespace mica::kv {

class AnyEviction {
  // f(the policy); std::visit costs the compiler many times as much.
  template <class F>
  auto visit(F&& f) const noexcept {
    if (const auto* const window = std::get_if<SinksAndWindow>(&policy_)) return f(*window);
    if (const auto* const hitters = std::get_if<HeavyHitters>(&policy_)) return f(*hitters);
    return f(KeepAll());
  }

 public:
  // Required by Eviction
  static constexpr std::string_view name = "any";
  static constexpr bool evicts = true;
  [[nodiscard]] std::size_t capacity() const noexcept {
    return visit([](const auto& p) { return p.capacity(); });
  }
  [[nodiscard]] bool needs_scores() const noexcept {
    return visit([](const auto& p) { return p.needs_scores(); });
  }
  [[nodiscard]] float decay() const noexcept {
    return visit([](const auto& p) { return p.decay(); });
  }
  [[nodiscard]] std::size_t choose(const EvictionView& resident) const noexcept {
    return visit([&](const auto& p) { return p.choose(resident); });
  }

  // Specific to AnyEviction
  /// One of these policies; KeepAll where none is given.
  template <class E = KeepAll>
  AnyEviction(E policy = {}) requires(std::same_as<E, KeepAll> || std::same_as<E, SinksAndWindow> ||
                                      std::same_as<E, HeavyHitters>)
      : policy_(std::move(policy)) {}

 private:
  std::variant<KeepAll, SinksAndWindow, HeavyHitters> policy_;
};

static_assert(Eviction<AnyEviction>);

}  // namespace mica::kv
