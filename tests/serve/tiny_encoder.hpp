// SPDX-License-Identifier: Apache-2.0
//
// A file of a tiny BERT with random weights and a vocabulary of letters and a few words. It ranks if it is
// to.

#pragma once

#include "mica/arch/tensor_names.hpp"
#include "mica/base/rng.hpp"
#include "mica/format/lists.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// Its texts are lower case letters and blanks, with [CLS] (2) in front and [SEP] (3) behind.
class TinyEncoder {
 public:
  static constexpr std::size_t width = 24, positions = 128;

  explicit TinyEncoder(bool ranks = false) {
    set_keys(ranks);
    add("token_embd.weight", vocabulary().size(), width, 0, 2);
    add("token_types.weight", 2, width, 0, 1);
    add("position_embd.weight", positions, width, 0, 1);
    add_norm("token_embd_norm");
    for (std::size_t i = 0; i < layers; ++i) {
      const auto name = [i](std::string_view part) { return arch::tensor_names::layer_plain(i, part); };
      for (const char* const matrix : {"attn_q", "attn_k", "attn_v", "attn_output"})
        add(name(matrix) + ".weight", width, width, 0, 0.2);
      add(name("ffn_up.weight"), ff_width, width, 0, 0.2);
      add(name("ffn_down.weight"), width, ff_width, 0, 0.2);
      add_norm(name("attn_output_norm"));
      add_norm(name("layer_output_norm"));
    }
    if (!ranks) return;
    add("cls.weight", width, width, 0, 0.2);
    add("cls.bias", 1, width, 0, 0.2);
    add("cls.output.weight", 1, width, 0, 0.2);
    add("cls.output.bias", 1, 1, 0, 0.2);
  }

  [[nodiscard]] std::vector<std::byte> bytes() { return writer_.bytes(); }

 private:
  static constexpr std::size_t layers = 2, ff_width = 30;

  static std::vector<std::string> vocabulary() {
    std::vector<std::string> out = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    const std::string begin = "\xE2\x96\x81";  // of a word
    for (char c = 'a'; c <= 'z'; ++c) out.push_back(begin + c);
    for (char c = 'a'; c <= 'z'; ++c) out.emplace_back(1, c);
    for (const char* const word : {"the", "king", "fox", "sea", "bread", "eats"}) out.push_back(begin + word);
    return out;
  }
  void set_keys(bool ranks) {
    writer_.set("general.architecture", std::string_view("bert"));
    writer_.set("general.name", std::string_view("tiny encoder"));
    const auto set = [&](const std::string& key, auto value) { writer_.set("bert." + key, value); };
    set("block_count", std::uint32_t{layers});
    set("context_length", std::uint32_t{positions});
    set("embedding_length", std::uint32_t{width});
    set("feed_forward_length", std::uint32_t{ff_width});
    set("attention.head_count", std::uint32_t{4});
    set("attention.layer_norm_epsilon", 1e-5f);
    set("pooling_type", std::uint32_t{ranks ? 4U : 1U});
    writer_.set("tokenizer.ggml.model", std::string_view("bert"));
    writer_.set_array("tokenizer.ggml.tokens", vocabulary());
    std::vector<std::int32_t> types(vocabulary().size(), 1);
    for (std::size_t i = 0; i < 5; ++i) types[i] = 3;
    writer_.set_array("tokenizer.ggml.token_type", types);
    const auto id = [&](const char* name, std::uint32_t value) {
      writer_.set(std::string("tokenizer.ggml.") + name + "_token_id", value);
    };
    id("padding", 0), id("unknown", 1), id("cls", 2), id("seperator", 3), id("mask", 4);
  }
  void add_norm(const std::string& name) {
    add(name + ".weight", 1, width, 1, 0.2);
    add(name + ".bias", 1, width, 0, 0.2);
  }
  /// Numbers around `middle`.
  void add(const std::string& name, std::size_t rows, std::size_t cols, double middle, double deviation) {
    std::vector<float>& numbers = tensors_.emplace_back(rows * cols);
    for (float& x : numbers) x = static_cast<float>(middle + deviation * (2 * rng_.uniform() - 1));
    std::vector<std::uint64_t> dims = {cols};
    if (rows != 1 || name.ends_with("output.weight")) dims.push_back(rows);
    writer_.add(name, format::F32::id, dims, std::as_bytes(std::span(numbers)));
  }

  gguf::Writer writer_;
  CounterRng rng_{7};
  std::deque<std::vector<float>> tensors_;
};

}  // namespace mica::test
