// SPDX-License-Identifier: Apache-2.0
//
// Ranks over a link: what connects them, such as MPI or the memory of a process.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/ranks/concept.hpp"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace mica {

/// What connects ranks. exchange(), send(), receive() and leave() as Ranks has them, and begin() where a
/// message can be on its way while the rank computes. One thread of each rank at a time.
// clang-format off
template <class L>
concept RankLink = requires(L& link, const L& constant, std::span<std::byte> all,
                            std::span<const std::size_t> ends, std::size_t rank,
                            std::span<const std::byte> bytes) {
  { constant.rank() } noexcept -> std::same_as<std::size_t>;
  { constant.size() } noexcept -> std::same_as<std::size_t>;
  { link.exchange(all, ends) } noexcept -> std::same_as<bool>;
  { link.send(rank, bytes) } noexcept -> std::same_as<bool>;
  { link.receive(rank, all) } noexcept -> std::same_as<bool>;
  { link.leave() } noexcept -> std::same_as<void>;
};
// clang-format on

namespace ranks {

/// What a link has cost so far.
struct LinkCosts {
  std::uint64_t sent_bytes = 0;        // by this rank, to all others
  std::uint64_t sent_messages = 0;     // a part to one rank is one
  std::chrono::nanoseconds waited{0};  // in exchange()

  [[nodiscard]] friend constexpr LinkCosts operator+(const LinkCosts& a, const LinkCosts& b) noexcept {
    return {a.sent_bytes + b.sent_bytes, a.sent_messages + b.sent_messages, a.waited + b.waited};
  }
  [[nodiscard]] friend constexpr LinkCosts operator-(const LinkCosts& a, const LinkCosts& b) noexcept {
    return {a.sent_bytes - b.sent_bytes, a.sent_messages - b.sent_messages, a.waited - b.waited};
  }
};

/// A link whose type a program chooses at run time.
class AnyLink {
 public:
  virtual ~AnyLink() = default;
  // Required by RankLink
  [[nodiscard]] virtual std::size_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
  [[nodiscard]] virtual bool exchange(std::span<std::byte> all,
                                      std::span<const std::size_t> ends) noexcept = 0;
  [[nodiscard]] virtual bool send(std::size_t rank, std::span<const std::byte> bytes) noexcept = 0;
  [[nodiscard]] virtual bool receive(std::size_t rank, std::span<std::byte> bytes) noexcept = 0;
  virtual void leave() noexcept = 0;
  [[nodiscard]] virtual bool begin(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept {
    return exchange(all, ends);
  }

  // Specific to AnyLink
  /// Whether it is known that a rank is gone: all exchanges end. From any thread.
  [[nodiscard]] virtual bool lost() const noexcept = 0;
  /// By the thread that exchanges. Zeros: the link does not count.
  [[nodiscard]] virtual LinkCosts costs() const noexcept { return {}; }
};
static_assert(RankLink<AnyLink>);

/// The ranks of a link, among which the rows of each product are divided, or the layers.
template <RankLink L>
class Several {
 public:
  /// One rank.
  Several() = default;
  /// Equal shares, or those that are given, one for each rank. The link outlives this. Raises
  /// ErrorCode::usage.
  explicit Several(L& link, std::vector<double> shares = {}, Split split = Split::rows)
      : link_(&link), division_(checked(link, std::move(shares)), link.rank()), split_(split) {}
  /// Of a plan, which exchanges nothing.
  explicit Several(Division division, Split split = Split::rows)
      : division_(std::move(division)), split_(split) {}

  // Required by Ranks
  static constexpr bool one = false;
  [[nodiscard]] const Division& division() const noexcept { return division_; }
  [[nodiscard]] Split split() const noexcept { return split_; }
  [[nodiscard]] bool begin(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept {
    if constexpr (requires { link_->begin(all, ends); }) {
      return link_ == nullptr || link_->begin(all, ends);
    } else {
      return exchange(all, ends);
    }
  }
  [[nodiscard]] bool exchange(std::span<std::byte> all, std::span<const std::size_t> ends) noexcept {
    return link_ == nullptr || link_->exchange(all, ends);
  }
  [[nodiscard]] bool send(std::size_t rank, std::span<const std::byte> bytes) noexcept {
    return link_ == nullptr || link_->send(rank, bytes);
  }
  [[nodiscard]] bool receive(std::size_t rank, std::span<std::byte> bytes) noexcept {
    return link_ == nullptr || link_->receive(rank, bytes);
  }
  void leave() noexcept {
    if (link_ != nullptr) link_->leave();
  }

 private:
  [[nodiscard]] static std::vector<double> checked(const L& link, std::vector<double> shares) {
    if (shares.empty()) shares.assign(link.size(), 1.0);
    MICA_CHECK(shares.size() == link.size(), usage, "shares of ranks: found ", shares.size(), " for ",
               link.size(), " ranks");
    return shares;
  }

  L* link_ = nullptr;
  Division division_;
  Split split_ = Split::rows;
};

}  // namespace ranks
}  // namespace mica
