// SPDX-License-Identifier: Apache-2.0
//
// Lesson 15: texts as embeddings, and the two that are most similar.
//
//   15_embed [MODEL.gguf [TEXT ...]]
//
// An embedding is a row of numbers, of length 1; the product of two is the cosine of the angle between them. All
// texts share steps, without padding, and each has the bits that it has alone. Without a model the lesson makes one
// in memory: a BERT of one layer with random weights. It knows nothing, but texts with common words are similar.

#include "mica/base/rng.hpp"
#include "mica_tools/embed/text_embedder.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <exception>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// The bytes of a model file.
std::vector<std::byte> tiny_encoder() {
  constexpr unsigned width = 32;
  std::vector<std::string> tokens = {"[UNK]", "[CLS]", "[SEP]"};
  for (const char* const word :
       {"a", "the", "cat", "dog", "eats", "chases", "fish", "rain", "falls", "on", "roof"})
    tokens.push_back(std::string("\xE2\x96\x81") + word);  // U+2581: begins a word
  mica::gguf::Writer file;
  const std::string_view arch = "bert";
  file.set("general.architecture", arch);
  for (const auto& [key, value] : {std::pair{"context_length", 64u},
                                   {"block_count", 1u},
                                   {"embedding_length", width},
                                   {"feed_forward_length", width},
                                   {"attention.head_count", 2u},
                                   {"pooling_type", 1u}})
    file.set(std::string("bert.") + key, value);
  file.set("bert.attention.layer_norm_epsilon", 1e-5f);
  file.set("tokenizer.ggml.model", arch);
  file.set_array("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.unknown_token_id", 0u);
  file.set("tokenizer.ggml.cls_token_id", 1u);
  file.set("tokenizer.ggml.seperator_token_id", 2u);

  mica::CounterRng rng(15);
  std::deque<std::vector<float>> numbers;  // the file refers to them until it is written
  const auto add = [&](const char* name, std::size_t rows, float size, float middle = 0) {
    std::vector<float>& values = numbers.emplace_back(rows * width);
    for (float& x : values) x = middle + size * static_cast<float>(2 * rng.uniform() - 1);
    std::vector<std::uint64_t> dims = {width, rows};
    if (rows == 1) dims.pop_back();
    file.add(name, mica::format::F32::id, dims, std::as_bytes(std::span(values)));
  };
  add("token_embd.weight", tokens.size(), 1);
  add("position_embd.weight", 64, 0.01f);
  for (const char* const name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"})
    add(("blk.0." + std::string(name) + ".weight").c_str(), width, 0.05f);
  for (const char* const name : {"token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"}) {
    add((std::string(name) + ".weight").c_str(), 1, 0, 1);
    add((std::string(name) + ".bias").c_str(), 1, 0);
  }
  return file.bytes();
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::byte> bytes = argc > 1 ? std::vector<std::byte>() : tiny_encoder();
  mica::Model model = argc > 1 ? mica::open_embedder(argv[1]) : mica::open(bytes, "tiny encoder");
  std::vector<std::string> texts(argv + std::min(argc, 2), argv + argc);
  if (texts.empty())
    texts = {"the cat eats a fish", "rain falls on the roof", "a dog chases the cat", "the dog eats fish"};

  mica::TextEmbedder embedder(model);
  const mica::Rows rows = embedder.embed(texts);  // (texts, width)

  float best = -2;
  std::size_t first = 0, second = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::size_t k = i + 1; k < texts.size(); ++k) {
      const float cosine = std::inner_product(rows[i].begin(), rows[i].end(), rows[k].begin(), 0.0f);
      if (cosine <= best) continue;
      best = cosine;
      first = i;
      second = k;
    }
  }
  std::printf("%zu texts, %zu tokens, %zu numbers each\n", texts.size(), rows.all_tokens(), rows.width);
  if (texts.size() > 1)
    std::printf("%.3f  %s | %s\n", static_cast<double>(best), texts[first].c_str(), texts[second].c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "15_embed: %s\n", error.what());
  return 1;
}
