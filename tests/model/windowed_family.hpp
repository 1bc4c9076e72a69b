// SPDX-License-Identifier: Apache-2.0
//
// A Llama some of whose layers look through a window, or read the keys and values of others: what a file of
// the tiny model's makes when the family says so.

#pragma once

#include "mica/arch/llama.hpp"
#include "mica/model/transformer.hpp"

#include <cstddef>

namespace mica::test {

/// Layer 0 looks through a window of so many tokens, layer 1 at everything, layer 2 through a wider window;
/// layer 3 reads the keys of layer 0, and sees more of them than layer 0 itself.
template <std::size_t Window>
struct Windowed {
  static constexpr std::string_view name = "llama";
  using Blocks = arch::Llama::Blocks;

  [[nodiscard]] static arch::Config config(const gguf::Document& document) {
    arch::Config config = arch::Llama::config(document);
    const auto look = [&](std::size_t layer, std::size_t tokens) {
      config.layers[layer].get<block::Attention>().look_through_window(tokens);
    };
    look(0, Window);
    look(2, Window + 37);
    look(3, Window + 5);
    config.layers[3].get<block::Attention>().kv_source = 0;
    return config;
  }
};
static_assert(Arch<Windowed<1>>);

/// The last layer sees its own part of the context alone, as every fourth of Llama 4 does not.
template <std::size_t Chunk>
struct Chunked {
  static constexpr std::string_view name = "llama";
  using Blocks = arch::Llama::Blocks;

  [[nodiscard]] static arch::Config config(const gguf::Document& document) {
    arch::Config config = arch::Llama::config(document);
    block::AttentionConfig& attention = config.layers.back().get<block::Attention>();
    attention.reach = block::Reach::chunk;
    attention.reach_tokens = Chunk;
    return config;
  }
};
static_assert(Arch<Chunked<1>>);

}  // namespace mica::test
