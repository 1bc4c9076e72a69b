// SPDX-License-Identifier: Apache-2.0
//
// Files of tiny BERTs: their vocabulary is a list of words, and rows of words are random and large beside what
// layers add, so that texts with common words are similar. One of them ranks: its score is a row of the classifier.

#pragma once

#include "mica/base/rng.hpp"
#include "mica/format/float.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

struct WordEncoder {
  bool ranks = false;
  std::uint64_t seed = 1;
  std::string document_prefix = {};

  static constexpr std::size_t width = 48, ff_width = 64, positions = 64;
  static inline const std::vector<std::string> words = {
      "cat",   "cats", "dog", "fish", "eat", "eats",  "sleep", "sleeps", "sun", "rain", "snow", "cloud",
      "bread", "milk", "tea", "cook", "car", "train", "road",  "ticket", "the", "a",    "and",  "in",
      "on",    "of",   "is",  "one",  "two", "three", "four",  ".",      ",",   "#",    "?"};

  /// Writes the file and answers its path.
  std::string write(const std::string& path) const {
    gguf::Writer out;
    write_keys(out);
    write_vocabulary(out);
    CounterRng rng(seed);
    std::deque<std::vector<float>> kept;
    const auto add = [&](const std::string& name, std::size_t rows, std::size_t cols, double size,
                         float middle = 0) {
      std::vector<float>& numbers = kept.emplace_back(rows * cols);
      for (float& x : numbers) x = middle + static_cast<float>(size * (2 * rng.uniform() - 1));
      std::vector<std::uint64_t> dims = {cols};
      if (rows != 1) dims.push_back(rows);
      out.add(name, format::F32::id, dims, std::as_bytes(std::span(numbers)));
    };
    const auto add_norm = [&](const std::string& name) {
      add(name + ".weight", 1, width, 0, 1);
      add(name + ".bias", 1, width, 0);
    };
    add("token_embd.weight", specials.size() + words.size(), width, 1);
    add("token_types.weight", 2, width, 0.01);
    add("position_embd.weight", positions, width, 0.01);
    add_norm("token_embd_norm");
    for (const char* const name : {"attn_q", "attn_k", "attn_v", "attn_output"})
      add(std::string("blk.0.") + name + ".weight", width, width, 0.05);
    add("blk.0.ffn_up.weight", ff_width, width, 0.05);
    add("blk.0.ffn_down.weight", width, ff_width, 0.05);
    add_norm("blk.0.attn_output_norm");
    add_norm("blk.0.layer_output_norm");
    if (ranks) {
      add("cls.weight", width, width, 0.2);
      add("cls.output.weight", 1, width, 1);
    }
    out.write(path);
    return path;
  }

 private:
  static inline const std::vector<std::string> specials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

  void write_keys(gguf::Writer& out) const {
    out.set("general.architecture", std::string_view("bert"));
    out.set("general.name", std::string_view("words"));
    const auto set = [&](const char* key, unsigned value) { out.set(std::string("bert.") + key, value); };
    set("context_length", positions);
    set("block_count", 1);
    set("embedding_length", width);
    set("feed_forward_length", ff_width);
    set("attention.head_count", 2);
    set("pooling_type", ranks ? 4 : 1);
    out.set("bert.attention.layer_norm_epsilon", 1e-5f);
    if (!document_prefix.empty()) out.set("mica.prefix.document", std::string_view(document_prefix));
  }
  static void write_vocabulary(gguf::Writer& out) {
    std::vector<std::string> tokens = specials;
    std::vector<std::int32_t> types(specials.size(), 3);  // control tokens
    for (const std::string& word : words) tokens.push_back("\xE2\x96\x81" + word);
    types.resize(tokens.size(), 1);
    out.set("tokenizer.ggml.model", std::string_view("bert"));
    out.set_array("tokenizer.ggml.tokens", tokens);
    out.set_array("tokenizer.ggml.token_type", types);
    out.set("tokenizer.ggml.unknown_token_id", 1u);
    out.set("tokenizer.ggml.cls_token_id", 2u);
    out.set("tokenizer.ggml.seperator_token_id", 3u);
  }
};

}  // namespace mica::test
