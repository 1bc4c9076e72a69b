// SPDX-License-Identifier: Apache-2.0
//
// Several processes, or threads, that run one model together: ranks. Each has some rows of the weights, and
// the same step runs on all of them. Rows of a product do not depend on each other, so what a rank computes
// has the bits that one rank alone would give it; what the others need of it is exchanged. No sum is ever
// divided. Or each has some layers, and passes the tokens of a step on to the next.
#pragma once

#include "mica/ranks/division.hpp"

#include <concepts>
#include <cstddef>
#include <span>

namespace mica {

/// The ranks of a model, as one of them sees them. division(): the same shares on all, of what split() says.
/// exchange(all, ends): `all` has a part for each rank, of which part r ends before ends[r]; that of this
/// rank is filled in, and afterwards all are. Every rank calls it with the same ends, in the same order.
/// False: a rank is gone or did not answer in time, and so will all later calls be.
/// begin(all, ends): the same, but the parts of the others are there when the next exchange() returns; `all`
/// stays until then.
/// send(rank, bytes), receive(rank, bytes): from one rank to one other. send() may wait until the other
/// receives.
/// leave(): this rank cannot go on; exchanges of the others end.
// clang-format off
template <class R>
concept Ranks = std::copy_constructible<R> && requires(R& ranks, const R& constant, std::span<std::byte> all,
                                                       std::span<const std::size_t> ends, std::size_t rank,
                                                       std::span<const std::byte> bytes) {
  { R::one } -> std::convertible_to<bool>;  // there is one, and exchange() is never called
  { constant.division() } noexcept -> std::same_as<const ranks::Division&>;
  { constant.split() } noexcept -> std::same_as<ranks::Split>;
  { ranks.begin(all, ends) } noexcept -> std::same_as<bool>;
  { ranks.exchange(all, ends) } noexcept -> std::same_as<bool>;
  { ranks.send(rank, bytes) } noexcept -> std::same_as<bool>;
  { ranks.receive(rank, all) } noexcept -> std::same_as<bool>;
  { ranks.leave() } noexcept -> std::same_as<void>;
};
// clang-format on

namespace ranks {

/// A model that runs alone.
class One {
 public:
  // Required by Ranks
  static constexpr bool one = true;
  [[nodiscard]] const Division& division() const noexcept { return division_; }
  [[nodiscard]] Split split() const noexcept { return Split::rows; }
  [[nodiscard]] bool begin(std::span<std::byte> /*all*/, std::span<const std::size_t> /*ends*/) noexcept {
    return true;
  }
  [[nodiscard]] bool exchange(std::span<std::byte> /*all*/, std::span<const std::size_t> /*ends*/) noexcept {
    return true;
  }
  [[nodiscard]] bool send(std::size_t /*rank*/, std::span<const std::byte> /*bytes*/) noexcept {
    return true;
  }
  [[nodiscard]] bool receive(std::size_t /*rank*/, std::span<std::byte> /*bytes*/) noexcept { return true; }
  void leave() noexcept {}

 private:
  Division division_;
};
static_assert(Ranks<One>);

}  // namespace ranks
}  // namespace mica
