// SPDX-License-Identifier: Apache-2.0
//
// An eviction policy chosen at run time, by words: none, sinks:4096, heavy:4096. For programs; a library user
// names the type.
#pragma once

#include "mica/base/error.hpp"
#include "mica/kv/heavy_hitters.hpp"
#include "mica/kv/sinks_and_window.hpp"

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace mica::kv {

class AnyEviction {
 public:
  // Required by Eviction
  static constexpr std::string_view name = "any";
  static constexpr bool evicts = true;
  [[nodiscard]] std::size_t capacity() const noexcept {
    return std::visit([](const auto& p) { return p.capacity(); }, policy_);
  }
  [[nodiscard]] bool needs_scores() const noexcept {
    return std::visit([](const auto& p) { return p.needs_scores(); }, policy_);
  }
  [[nodiscard]] float decay() const noexcept {
    return std::visit([](const auto& p) { return p.decay(); }, policy_);
  }
  [[nodiscard]] std::size_t choose(const EvictionView& resident) const noexcept {
    return std::visit([&](const auto& p) { return p.choose(resident); }, policy_);
  }

  // Specific to AnyEviction
  /// none, sinks:KEEP, sinks:KEEP,SINKS, heavy:KEEP or heavy:KEEP,RECENT, in tokens. Raises ErrorCode::usage
  /// for other words, and what the policies raise.
  explicit AnyEviction(std::string_view words = KeepAll::name);
  /// A policy that is one of those.
  template <class E>
  AnyEviction(E policy) requires(std::same_as<E, KeepAll> || std::same_as<E, SinksAndWindow> ||
                                 std::same_as<E, HeavyHitters>)
      : policy_(std::move(policy)) {}

 private:
  std::variant<KeepAll, SinksAndWindow, HeavyHitters> policy_;
};

inline AnyEviction::AnyEviction(std::string_view words) {
  const std::size_t colon = words.find(':');
  const std::string_view kind = words.substr(0, colon);
  std::string_view rest = colon == words.npos ? std::string_view() : words.substr(colon);
  std::array<std::size_t, 2> numbers{};
  std::size_t count = 0;
  for (; count < numbers.size() && rest.starts_with(count == 0 ? ':' : ','); ++count) {
    const char* const end = rest.data() + rest.size();
    const auto [next, error] = std::from_chars(rest.data() + 1, end, numbers[count]);
    if (error != std::errc()) break;
    rest = {next, end};
  }
  const bool known = kind == KeepAll::name
                         ? count == 0
                         : count > 0 && (kind == SinksAndWindow::name || kind == HeavyHitters::name);
  MICA_CHECK(
      known && rest.empty(), usage, "eviction '", escaped(words),
      "': not known; choose none, sinks:KEEP, sinks:KEEP,SINKS, heavy:KEEP or heavy:KEEP,RECENT, in tokens");
  if (kind == SinksAndWindow::name)
    policy_ = count == 1 ? SinksAndWindow(numbers[0]) : SinksAndWindow(numbers[0], numbers[1]);
  if (kind == HeavyHitters::name) policy_ = HeavyHitters(numbers[0], {.recent = numbers[1]});
}

static_assert(Eviction<AnyEviction>);

}  // namespace mica::kv
