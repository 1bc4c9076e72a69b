// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithRanks<...> needs mica::Ranks (ranks/concept.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine {
  static constexpr bool one = false;
  const mica::ranks::Division& division() const noexcept { return whole; }
#ifdef MICA_FAIL
  bool exchange(std::span<std::byte>, std::span<const std::size_t>) { return true; }
#else
  bool exchange(std::span<std::byte>, std::span<const std::size_t>) noexcept { return true; }
#endif
  mica::ranks::Split split() const noexcept { return mica::ranks::Split::rows; }
  bool begin(std::span<std::byte>, std::span<const std::size_t>) noexcept { return true; }
  bool send(std::size_t, std::span<const std::byte>) noexcept { return true; }
  bool receive(std::size_t, std::span<std::byte>) noexcept { return true; }
  void leave() noexcept {}
  mica::ranks::Division whole;
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithRanks<Mine>>) > 0);
