// SPDX-License-Identifier: Apache-2.0
//
// A hybrid of random numbers in memory, as Qwen 3.5 files have them: layers that keep a state, layers that
// attend through a gate, and feed-forward blocks that are dense or mixtures of experts. A recipe always gives
// the same bytes.

#pragma once

#include "mica/arch/any_of.hpp"
#include "mica/arch/qwen_delta_net.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/model/transformer.hpp"
#include "model/tiny_model.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace mica::test {

/// What a tiny hybrid is made of. Sizes are odd, and the residual stream is wider than what attention gives.
struct HybridRecipe {
  std::size_t layers = 4;
  std::size_t interval = 2;  // every so many-th layer attends
  std::size_t width = 45;
  std::size_t heads = 4, kv_heads = 2, head_dim = 10;
  std::size_t k_heads = 1, v_heads = 2, k_dim = 7, v_dim = 9, taps = 4;
  std::size_t ff_width = 31;
  std::size_t experts = 0;  // 0: dense
  std::size_t used = 2;
  std::size_t shared_ff_width = 0;
  bool mtp = false;            // with a head for multi-token prediction; the trunk's numbers are the same
  bool fused_experts = false;  // gate and up of an expert in one tensor; the same numbers
  std::size_t n_vocab = 67;
  std::size_t n_ctx = 700;
  format::Id format = format::F32::id;  // of every matrix
  std::function<void(gguf::Writer&)> edit = {};
};

/// The same with experts, one of them for every token.
inline HybridRecipe with_experts(HybridRecipe recipe = {}) {
  recipe.experts = 9;
  recipe.shared_ff_width = 33;
  return recipe;
}

/// Widths that blocks of 32 divide.
inline HybridRecipe of_q8_0(HybridRecipe recipe) {
  recipe.width = 96;
  recipe.head_dim = 32;
  recipe.v_dim = 32;
  recipe.ff_width = 64;
  if (recipe.shared_ff_width != 0) recipe.shared_ff_width = 32;
  recipe.format = format::Q8_0::id;
  return recipe;
}

/// A Transformer of such files, and the same with more policies changed.
using Hybrid = Transformer<arch::AnyOf<TypeList<arch::Qwen35, arch::Qwen35Moe>>,
                           WithWeights<TypeList<format::F32, format::Q8_0>>>;

/// The file, as bytes and as a Document over them.
class TinyHybrid {
 public:
  explicit TinyHybrid(const HybridRecipe& recipe)
      : r_(recipe), bytes_(write()), document_(gguf::parse(bytes_, "hybrid.gguf")) {}

  [[nodiscard]] const HybridRecipe& recipe() const { return r_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  [[nodiscard]] const gguf::Document& document() const { return document_; }
  [[nodiscard]] bool attends(std::size_t layer) const {
    return (layer + 1) % r_.interval == 0 || layer == r_.layers;  // or it is the head
  }
  /// Numbers of the recurrent state of all layers.
  [[nodiscard]] std::size_t state_floats() const {
    std::size_t floats = 0;
    for (std::size_t i = 0; i < r_.layers; ++i) {
      if (!attends(i)) floats += (r_.taps - 1) * channels() + r_.v_heads * r_.k_dim * r_.v_dim;
    }
    return floats;
  }

 private:
  [[nodiscard]] std::size_t channels() const { return 2 * r_.k_heads * r_.k_dim + r_.v_heads * r_.v_dim; }

  void write_keys(gguf::Writer& writer) const;
  void write_mixer(std::size_t layer);
  void write_mtp();
  void write_feed_forward(std::size_t layer);
  std::vector<std::byte> write();

  void matrix(const std::string& name, std::size_t rows, std::size_t cols, std::size_t copies = 1) {
    data_.push_back(random_matrix(r_.format, copies * rows, cols, rng_));
    std::vector<std::uint64_t> dims = {cols, rows};
    if (copies > 1) dims.push_back(copies);
    writer_.add(name, r_.format, dims, std::span<const std::byte>(data_.back()));
  }
  /// Of each expert the gate, then what it gates.
  void fused_gates(const std::string& name) {
    const auto gate = random_matrix(r_.format, r_.experts * r_.ff_width, r_.width, rng_);
    const auto up = random_matrix(r_.format, r_.experts * r_.ff_width, r_.width, rng_);
    const auto one = static_cast<std::ptrdiff_t>(gate.size() / r_.experts);
    std::vector<std::byte>& both = data_.emplace_back();
    for (std::ptrdiff_t at = 0; at < std::ssize(gate); at += one) {
      both.insert(both.end(), gate.begin() + at, gate.begin() + at + one);
      both.insert(both.end(), up.begin() + at, up.begin() + at + one);
    }
    writer_.add(name, r_.format, {r_.width, 2 * r_.ff_width, r_.experts}, std::span<const std::byte>(both));
  }
  /// Numbers around `middle`.
  void vector(const std::string& name, std::vector<std::uint64_t> dims, float middle) {
    std::size_t n = 1;
    for (const std::uint64_t d : dims) n *= d;
    std::vector<float> values(n);
    for (float& v : values) v = middle + 0.2f * detail::gaussian(rng_);
    const auto bytes = std::as_bytes(std::span(values));
    data_.emplace_back(bytes.begin(), bytes.end());
    writer_.add(name, format::F32::id, dims, std::span<const std::byte>(data_.back()));
  }

  HybridRecipe r_;
  CounterRng rng_{1};
  gguf::Writer writer_;
  std::deque<std::vector<std::byte>> data_;  // stays where it is until the file is written
  std::vector<std::byte> bytes_;
  gguf::Document document_;
};

inline void TinyHybrid::write_keys(gguf::Writer& writer) const {
  const std::string arch = r_.experts == 0 ? "qwen35" : "qwen35moe";
  const auto number = [&](std::string_view key, std::size_t value) {
    writer.set(arch + "." + std::string(key), static_cast<std::uint32_t>(value));
  };
  writer.set("general.architecture", arch);
  number("block_count", r_.layers + (r_.mtp ? 1 : 0));
  if (r_.mtp) number("nextn_predict_layers", 1);
  number("context_length", r_.n_ctx);
  number("embedding_length", r_.width);
  number("feed_forward_length", r_.ff_width);
  number("attention.head_count", r_.heads);
  number("attention.head_count_kv", r_.kv_heads);
  number("attention.key_length", r_.head_dim);
  number("attention.value_length", r_.head_dim);
  number("rope.dimension_count", 4);
  number("full_attention_interval", r_.interval);
  number("ssm.conv_kernel", r_.taps);
  number("ssm.state_size", r_.k_dim);
  number("ssm.group_count", r_.k_heads);
  number("ssm.time_step_rank", r_.v_heads);
  number("ssm.inner_size", r_.v_heads * r_.v_dim);
  writer.set(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  if (r_.experts == 0) return;
  number("expert_count", r_.experts);
  number("expert_used_count", r_.used);
  number("expert_feed_forward_length", r_.ff_width);
  number("expert_shared_feed_forward_length", r_.shared_ff_width);
}

inline void TinyHybrid::write_mixer(std::size_t i) {
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  vector(name("attn_norm"), {r_.width}, 1);
  if (attends(i)) {
    matrix(name("attn_q"), 2 * r_.heads * r_.head_dim, r_.width);
    matrix(name("attn_k"), r_.kv_heads * r_.head_dim, r_.width);
    matrix(name("attn_v"), r_.kv_heads * r_.head_dim, r_.width);
    matrix(name("attn_output"), r_.width, r_.heads * r_.head_dim);
    vector(name("attn_q_norm"), {r_.head_dim}, 1);
    vector(name("attn_k_norm"), {r_.head_dim}, 1);
    return;
  }
  const std::size_t v_width = r_.v_heads * r_.v_dim;
  matrix(name("attn_qkv"), channels(), r_.width);
  matrix(name("attn_gate"), v_width, r_.width);
  matrix(name("ssm_alpha"), r_.v_heads, r_.width);
  matrix(name("ssm_beta"), r_.v_heads, r_.width);
  vector(name("ssm_conv1d"), {r_.taps, channels()}, 0.3f);
  vector(arch::tensor_names::layer_plain(i, "ssm_a"), {r_.v_heads}, -0.7f);
  vector(arch::tensor_names::layer_bias(i, "ssm_dt"), {r_.v_heads}, -1);
  vector(name("ssm_norm"), {r_.v_dim}, 1);
  matrix(name("ssm_out"), r_.width, v_width);
}

inline void TinyHybrid::write_feed_forward(std::size_t i) {
  const auto name = [i](std::string_view part) { return arch::tensor_names::layer(i, part); };
  vector(name("post_attention_norm"), {r_.width}, 1);
  const auto block = [&](std::string_view suffix, std::size_t ff, std::size_t copies) {
    matrix(name(join("ffn_gate", suffix)), ff, r_.width, copies);
    matrix(name(join("ffn_up", suffix)), ff, r_.width, copies);
    matrix(name(join("ffn_down", suffix)), r_.width, ff, copies);
  };
  if (r_.experts == 0) {
    block("", r_.ff_width, 1);
    return;
  }
  matrix(name("ffn_gate_inp"), r_.experts, r_.width);
  if (r_.fused_experts) {
    fused_gates(name("ffn_gate_up_exps"));
    matrix(name("ffn_down_exps"), r_.width, r_.ff_width, r_.experts);
  } else {
    block("_exps", r_.ff_width, r_.experts);
  }
  if (r_.shared_ff_width == 0) return;
  block("_shexp", r_.shared_ff_width, 1);
  matrix(name("ffn_gate_inp_shexp"), 1, r_.width);
}

inline void TinyHybrid::write_mtp() {
  const auto name = [this](std::string_view part) { return arch::tensor_names::layer(r_.layers, part); };
  write_mixer(r_.layers);
  write_feed_forward(r_.layers);
  vector(name("nextn.enorm"), {r_.width}, 1);
  vector(name("nextn.hnorm"), {r_.width}, 1);
  matrix(name("nextn.eh_proj"), r_.width, 2 * r_.width);
  vector(name("nextn.shared_head_norm"), {r_.width}, 1);
}

inline std::vector<std::byte> TinyHybrid::write() {
  write_keys(writer_);
  matrix("token_embd.weight", r_.n_vocab, r_.width);
  for (std::size_t i = 0; i < r_.layers; ++i) {
    write_mixer(i);
    write_feed_forward(i);
  }
  vector("output_norm.weight", {r_.width}, 1);
  matrix("output.weight", r_.n_vocab, r_.width);
  if (r_.mtp) write_mtp();
  if (r_.edit) r_.edit(writer_);
  return writer_.bytes();
}

}  // namespace mica::test
