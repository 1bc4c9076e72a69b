// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithWeights<...> needs formats

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

#include <algorithm>

struct Mine {
  static constexpr mica::format::Id id = mica::format::Q4_1::id;
  static constexpr std::string_view name = "Q4_1";
  static constexpr std::size_t block_size = 32;
  static constexpr bool vector_codec = false;
#ifdef MICA_FAIL
  static constexpr auto arithmetic = mica::format::Arithmetic::integer;
#else
  static constexpr auto arithmetic = mica::format::Arithmetic::real;
#endif
  struct Block {
    std::byte bytes[20];
  };
  static void decode(const Block&, float* values) noexcept { std::fill_n(values, block_size, 0.0f); }
};

static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithWeights<Mine>>) > 0);
