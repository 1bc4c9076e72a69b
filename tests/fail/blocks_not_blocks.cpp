// SPDX-License-Identifier: Apache-2.0
//
// expect: mica::Transformer: WithBlocks<...> needs a mica::TypeList of mica::Block (block/concept.hpp)
// expect: name

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

struct Mine : mica::block::Stateless, mica::block::Unbuffered {
#ifdef MICA_FAIL
  static constexpr std::string_view nome = "mine";
#else
  static constexpr std::string_view name = "mine";
#endif
  struct Config {};
  struct Tensors {};
  static Tensors bind(mica::block::TensorBinder&, const Config&) { return {}; }
};

using Blocks = mica::TypeList<mica::block::Attention, mica::block::DenseFeedForward, Mine>;
static_assert(sizeof(mica::Transformer<mica::arch::Llama, mica::WithBlocks<Blocks>>) > 0);
