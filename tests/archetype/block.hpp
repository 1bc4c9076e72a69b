// SPDX-License-Identifier: Apache-2.0
//
// The minimal Block: it adds nothing. And the family of the minimal Arch with it at the end of every layer.

#pragma once

#include "archetype/arch.hpp"
#include "mica/block/concept.hpp"

namespace mica::archetype {

struct Block : block::Stateless, block::Unbuffered {
  // Required by Block
  static constexpr std::string_view name = "minimal";
  struct Config {};
  struct Tensors {};
  static Tensors bind(block::TensorBinder&, const Config&) { return {}; }
  template <class Step>
  static bool run(Step&, const Config&, const Tensors&, const Buffers&) noexcept {
    return true;
  }
};
static_assert(mica::Block<Block>);

struct ArchWithBlock {
  // Required by Arch
  static constexpr std::string_view name = "plain";
  using Blocks = TypeList<Block, block::DenseFeedForward, block::Attention>;

  static arch::Config config(const gguf::Document& document) {
    arch::Config config = Arch::config(document);
    for (arch::Layer& layer : config.layers) layer.add<Block>();
    return config;
  }
};
static_assert(mica::Arch<ArchWithBlock>);

}  // namespace mica::archetype
