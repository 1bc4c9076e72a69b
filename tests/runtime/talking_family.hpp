// SPDX-License-Identifier: Apache-2.0
//
// Tiny models that generate: one that sees everything, one with windows, one with experts and a state. Their
// ids are those of byte_tokenizer().

#pragma once

#include "arch/family_file.hpp"
#include "mica/arch/gemma.hpp"
#include "mica/arch/llama.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/sample/standard.hpp"
#include "model/tiny_hybrid.hpp"
#include "runtime/scripted_model.hpp"

#include <string>
#include <vector>

namespace mica::test {

inline constexpr std::size_t talking_vocabulary = 258;

inline TinyModel talking_dense() {
  Recipe recipe;
  recipe.n_vocab = talking_vocabulary;
  return TinyModel(recipe);
}

/// Gemma 3: windows of 5 tokens in all layers but one.
inline FamilyFile talking_windows() {
  constexpr std::size_t width = 22, heads = 4, kv_heads = 2, head_dim = 6, ff_width = 30, layers = 7;
  FamilyFile file("gemma3");
  file.shape(layers, width, heads, kv_heads, head_dim, ff_width).set("attention.sliding_window", 5u);
  file.set("context_length", 700u);
  file.matrix("token_embd.weight", talking_vocabulary, width).vector("output_norm.weight", width);
  for (std::size_t i = 0; i < layers; ++i) {
    add_attention(file, i, width, heads * head_dim, kv_heads * head_dim);
    add_feed_forward(file, i, width, ff_width);
    file.layer_vector(i, "attn_q_norm", head_dim).layer_vector(i, "attn_k_norm", head_dim);
    file.layer_vector(i, "post_attention_norm", width).layer_vector(i, "post_ffw_norm", width);
  }
  return file;
}

inline TinyHybrid talking_hybrid() {
  HybridRecipe recipe = with_experts();
  recipe.n_vocab = talking_vocabulary;
  return TinyHybrid(recipe);
}

/// Calls f(model) for a model of each kind.
template <class F>
void for_each_talking_model(const ModelOptions& options, F&& f) {
  exec::Inline executor;
  const TinyModel dense = talking_dense();
  Transformer<arch::Llama> llama(dense.document(), executor, options);
  f(llama);
  FamilyFile windows = talking_windows();
  Transformer<arch::Gemma3> gemma(windows.document(), executor, options);
  f(gemma);
  const TinyHybrid hybrid = talking_hybrid();
  ModelOptions with_drafts = options;
  with_drafts.drafts = true;
  Hybrid qwen(hybrid.document(), executor, with_drafts);
  f(qwen);
}

/// Greedy, drawn, and drawn against what was said before.
inline std::vector<sample::SamplerOptions> samplers() {
  return {{.temperature = 0},
          {.temperature = 0, .repeat_penalty = 1.3f, .repeat_last_n = 16},
          {.temperature = 0.9f, .top_k = 20, .seed = 5},
          {.temperature = 2.0f, .top_k = 0, .top_p = 1, .min_p = 0, .presence_penalty = 0.5f, .seed = 6}};
}

/// What a generation gave.
struct Answer {
  std::vector<TokenId> tokens;
  std::string text;
  StopReason reason;
  friend bool operator==(const Answer&, const Answer&) = default;
};

}  // namespace mica::test
