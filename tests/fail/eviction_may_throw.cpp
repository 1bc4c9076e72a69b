// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithEviction<...> needs a mica::Eviction (kv/eviction.hpp)

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine : mica::kv::Unwatching {
  static constexpr std::string_view name = "mine";
  static constexpr bool forgets = true;
  static std::size_t keep() noexcept { return 128; }
#ifdef MICA_FAIL
  static std::size_t choose(const mica::kv::Held&) { return 0; }  // may throw inside a step
#else
  static std::size_t choose(const mica::kv::Held&) noexcept { return 0; }
#endif
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithEviction<Mine>>) > 0);
