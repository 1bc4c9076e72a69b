// SPDX-License-Identifier: Apache-2.0
//
// The minimal RankLink, and the minimal Ranks: one rank that has everything.

#pragma once

#include "mica/ranks/several.hpp"

namespace mica::archetype {

struct RankLink {
  // Required by RankLink
  std::size_t rank() const noexcept { return 0; }
  std::size_t size() const noexcept { return 1; }
  bool exchange(std::span<std::byte> /*all*/, std::span<const std::size_t> /*ends*/) noexcept { return true; }
  bool send(std::size_t /*rank*/, std::span<const std::byte> /*bytes*/) noexcept { return true; }
  bool receive(std::size_t /*rank*/, std::span<std::byte> /*bytes*/) noexcept { return true; }
  void leave() noexcept {}
};
static_assert(mica::RankLink<RankLink>);

struct Ranks {
  // Required by Ranks
  static constexpr bool one = false;
  const mica::ranks::Division& division() const noexcept { return whole; }
  mica::ranks::Split split() const noexcept { return mica::ranks::Split::rows; }
  bool begin(std::span<std::byte> /*all*/, std::span<const std::size_t> /*ends*/) noexcept { return true; }
  bool exchange(std::span<std::byte> /*all*/, std::span<const std::size_t> /*ends*/) noexcept { return true; }
  bool send(std::size_t /*rank*/, std::span<const std::byte> /*bytes*/) noexcept { return true; }
  bool receive(std::size_t /*rank*/, std::span<std::byte> /*bytes*/) noexcept { return true; }
  void leave() noexcept {}

  mica::ranks::Division whole;
};
static_assert(mica::Ranks<Ranks>);

}  // namespace mica::archetype
