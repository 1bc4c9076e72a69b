// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithEviction<...> needs a mica::Eviction (kv/eviction.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine : mica::kv::Scoreless {
  static constexpr std::string_view name = "mine";
  static constexpr bool evicts = true;
  static std::size_t capacity() noexcept { return 128; }
#ifdef MICA_FAIL
  static std::size_t choose(const mica::kv::EvictionView&) { return 0; }  // may throw inside a step
#else
  static std::size_t choose(const mica::kv::EvictionView&) noexcept { return 0; }
#endif
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithEviction<Mine>>) > 0);
