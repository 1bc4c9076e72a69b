// SPDX-License-Identifier: Apache-2.0
//
// The minimal Block: it adds nothing. And the family of the minimal Arch with it at the end of every layer.

#pragma once

#include "archetype/arch.hpp"
#include "mica/block/concept.hpp"

namespace mica::archetype {

struct Block : mica::block::Stateless, mica::block::Unbuffered {
  // Required by Block
  static constexpr std::string_view name = "minimal";
  struct Config {};
  struct Tensors {};
  static Tensors bind(mica::block::TensorBinder&, const Config&) { return {}; }
  template <class Step>
  static bool run(Step&, const Config&, const Tensors&, const Buffers&) noexcept {
    return true;
  }
};
static_assert(mica::Block<Block>);

struct ArchWithBlock {
  // Required by Arch
  static constexpr std::string_view name = "plain";
  using Blocks = mica::TypeList<Block, mica::block::DenseFeedForward, mica::block::Attention>;

  static mica::arch::Config config(const mica::gguf::Document& document) {
    mica::arch::Config config = Arch::config(document);
    for (mica::arch::Layer& layer : config.layers) layer.add<Block>();
    return config;
  }
};
static_assert(mica::Arch<ArchWithBlock>);

}  // namespace mica::archetype
