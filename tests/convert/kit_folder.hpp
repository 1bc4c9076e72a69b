// SPDX-License-Identifier: Apache-2.0
//
// The way back: a GGUF file of the conformance kit as the Hugging Face folder that it could have come from. Names and
// formulas are written down here a second time, from the side of the GGUF file, and share nothing with the converter.

#pragma once

#include "convert/hf_folder.hpp"
#include "mica/base/visit.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/reader.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mica::test {

/// All numbers of a tensor.
inline std::vector<float> decoded(const gguf::Document& document, const gguf::TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  document.read(tensor, bytes);
  std::vector<float> values(tensor.elements());
  const bool known = visit_id<format::All>(tensor.format.id, [&](auto type) {
    using F = typename decltype(type)::type;
    for (std::size_t i = 0; i < values.size() / F::block_size; ++i) {
      typename F::Block block;
      std::memcpy(&block, bytes.data() + i * sizeof(block), sizeof(block));
      F::decode(block, values.data() + i * F::block_size);
    }
  });
  REQUIRE(known);
  return values;
}

/// A matrix, or a stack of them, as numbers.
struct Numbers {
  std::vector<std::uint64_t> shape;  // as in a checkpoint: the last varies fastest
  std::vector<float> values;
};

/// Rows of a matrix picked by a function from the row of the checkpoint to that of the GGUF file.
template <class Pick>
Numbers picked_rows(const Numbers& from, Pick pick) {
  const std::uint64_t width = from.values.size() / from.shape[0];
  Numbers out = from;
  for (std::uint64_t r = 0; r < from.shape[0]; ++r) {
    std::copy_n(from.values.begin() + static_cast<std::ptrdiff_t>(pick(r) * width), width,
                out.values.begin() + static_cast<std::ptrdiff_t>(r * width));
  }
  return out;
}

/// Each matrix of a stack turned over.
inline Numbers turned(const Numbers& from) {
  const std::size_t n = from.shape.size();
  const std::uint64_t rows = from.shape[n - 2], columns = from.shape[n - 1];
  Numbers out = from;
  std::swap(out.shape[n - 2], out.shape[n - 1]);
  for (std::uint64_t at = 0; at < from.values.size(); ++at) {
    const std::uint64_t matrix = at / (rows * columns), row = at / columns % rows, column = at % columns;
    out.values[matrix * rows * columns + column * rows + row] = from.values[at];
  }
  return out;
}

/// Two stacks of matrices as one whose rows alternate, or follow each other.
inline Numbers fused(const Numbers& gate, const Numbers& up, bool alternate) {
  const std::uint64_t stack = gate.shape.size() == 3 ? gate.shape[0] : 1;
  const std::uint64_t rows = gate.shape[gate.shape.size() - 2], width = gate.shape.back();
  Numbers out{gate.shape, {}};
  out.shape[out.shape.size() - 2] *= 2;
  for (std::uint64_t e = 0; e < stack; ++e) {
    for (std::uint64_t r = 0; r < 2 * rows; ++r) {
      const Numbers& from = (alternate ? r % 2 : r / rows) == 0 ? gate : up;
      const std::uint64_t row = e * rows + (alternate ? r / 2 : r % rows);
      const auto first = from.values.begin() + static_cast<std::ptrdiff_t>(row * width);
      out.values.insert(out.values.end(), first, first + static_cast<std::ptrdiff_t>(width));
    }
  }
  return out;
}

/// GGUF names of a block beside those of checkpoints. Norms are in the families' own lists.
inline const std::vector<std::pair<std::string, std::string>>& block_names() {
  static const std::vector<std::pair<std::string, std::string>> names = {
      {"attn_norm.weight", "input_layernorm.weight"},
      {"attn_q.weight", "self_attn.q_proj.weight"},
      {"attn_k.weight", "self_attn.k_proj.weight"},
      {"attn_v.weight", "self_attn.v_proj.weight"},
      {"attn_output.weight", "self_attn.o_proj.weight"},
      {"attn_q.bias", "self_attn.q_proj.bias"},
      {"attn_k.bias", "self_attn.k_proj.bias"},
      {"attn_v.bias", "self_attn.v_proj.bias"},
      {"attn_output.bias", "self_attn.o_proj.bias"},
      {"attn_q_norm.weight", "self_attn.q_norm.weight"},
      {"attn_k_norm.weight", "self_attn.k_norm.weight"},
      {"ffn_gate.weight", "mlp.gate_proj.weight"},
      {"ffn_up.weight", "mlp.up_proj.weight"},
      {"ffn_down.weight", "mlp.down_proj.weight"},
      {"ffn_gate_inp.weight", "mlp.gate.weight"},
      {"ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight"},
      {"ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight"},
      {"ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight"},
      {"inp_gate.weight", "per_layer_input_gate.weight"},
      {"proj.weight", "per_layer_projection.weight"},
      {"post_norm.weight", "post_per_layer_input_norm.weight"},
      {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
      {"layer_output_scale.weight", "layer_scalar"},
      {"attn_sinks.weight", "self_attn.sinks"},
      {"ssm_a", "linear_attn.A_log"},
      {"ssm_dt.bias", "linear_attn.dt_bias"},
      {"ssm_norm.weight", "linear_attn.norm.weight"},
      {"ssm_out.weight", "linear_attn.out_proj.weight"},
      {"ssm_ba.weight", "linear_attn.in_proj_ba.weight"},
      {"ssm_alpha.weight", "linear_attn.in_proj_a.weight"},
      {"ssm_beta.weight", "linear_attn.in_proj_b.weight"},
      {"ssm_conv1d.weight", "linear_attn.conv1d.weight"},
  };
  return names;
}

/// One kit model on its way back.
class KitFolder {
 public:
  KitFolder(const std::string& path, HfFolder& out) : document_(gguf::open(path)), out_(out) {
    arch_ = document_.metadata().require<std::string>("general.architecture");
  }

  [[nodiscard]] const gguf::Document& document() const { return document_; }
  [[nodiscard]] std::uint64_t count(const std::string& key) const {
    return document_.metadata().require<std::uint64_t>(arch_ + "." + key);
  }

  /// Adds every tensor. With `one_tensor` the experts of a layer lie in one, where the family has both forms.
  void add_tensors(bool one_tensor) {
    one_tensor_ = one_tensor;
    for (const gguf::TensorInfo& tensor : document_.tensors()) {
      if (tensor.name.starts_with("rope_f")) continue;  // computed from the config
      if (tensor.name.starts_with("blk.")) {
        const std::size_t dot = tensor.name.find('.', 4);
        add_of_block(tensor, tensor.name.substr(4, dot - 4), tensor.name.substr(dot + 1));
      } else {
        add_global(tensor);
      }
    }
  }

 private:
  [[nodiscard]] Numbers numbers(const gguf::TensorInfo& tensor) const {
    Numbers out{{}, decoded(document_, tensor)};
    for (std::size_t d = tensor.n_dims; d-- > 0;) out.shape.push_back(tensor.dims[d]);
    return out;
  }
  [[nodiscard]] Numbers numbers(const std::string& layer, const std::string& name) const {
    return numbers(document_.tensor("blk." + layer + "." + name));
  }
  [[nodiscard]] bool is(std::string_view arch) const { return arch_ == arch; }
  [[nodiscard]] bool is_delta() const { return is("qwen35") || is("qwen3next"); }
  [[nodiscard]] bool norms_less_one() const {
    return is("gemma") || is("gemma2") || is("gemma3") || is_delta();
  }

  /// In the type that keeps every bit: that of the tensor if it is a float, else F32.
  void store(const std::string& name, const Numbers& numbers, format::Id id) {
    std::vector<std::uint16_t> narrow;
    for (const float v : numbers.values) {
      if (id == format::F16::id) narrow.push_back(to_half(v).bits);
      if (id == format::BF16::id) narrow.push_back(to_bfloat(v).bits);
    }
    out_.tensors[name] = narrow.empty()
                             ? stored("F32", numbers.shape, numbers.values)
                             : stored(id == format::F16::id ? "F16" : "BF16", numbers.shape, narrow);
  }

  void add_global(const gguf::TensorInfo& tensor) {
    static const std::map<std::string, std::string> names = {
        {"token_embd.weight", "model.embed_tokens.weight"},
        {"output.weight", "lm_head.weight"},
        {"output_norm.weight", "model.norm.weight"},
        {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
        {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
        {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"}};
    Numbers n = numbers(tensor);
    if (norms_less_one() && tensor.name == "output_norm.weight") less_one(n);
    store(names.at(tensor.name), n, tensor.format.id);
  }

  static void less_one(Numbers& n) {
    for (float& v : n.values) v -= 1.0F;
  }

  void add_of_block(const gguf::TensorInfo& tensor, const std::string& layer, const std::string& name) {
    const std::string prefix = "model.layers." + layer + ".";
    if (name.find("_exps.") != name.npos) return add_experts(prefix, layer, name);
    if (is("qwen3next") && (name == "attn_qkv.weight" || name == "attn_gate.weight"))
      return add_grouped(prefix, layer, tensor.format.id);
    Numbers n = numbers(tensor);
    undo(name, n);
    store(prefix + name_of(name), n, tensor.format.id);
  }

  [[nodiscard]] std::string name_of(const std::string& name) const {
    const bool sandwich = is("gemma2") || is("gemma3") || is("gemma4");
    if (name == "ffn_norm.weight")
      return sandwich ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight";
    if (name == "post_attention_norm.weight") return "post_attention_layernorm.weight";
    if (is("phi3") && name == "ffn_up.weight") return "mlp.gate_up_proj.weight";
    if (is("phi3") && name == "attn_qkv.weight") return "self_attn.qkv_proj.weight";
    if (is("qwen35") && name == "attn_qkv.weight") return "linear_attn.in_proj_qkv.weight";
    if (is("qwen35") && name == "attn_gate.weight") return "linear_attn.in_proj_z.weight";
    if (is("llama") && name == "ffn_gate_inp.weight") return "block_sparse_moe.gate.weight";
    if (is("gpt-oss") && name.starts_with("ffn_gate_inp.")) return "mlp.router." + name.substr(13);
    if (name == "ffn_gate_inp_shexp.weight") return "mlp.shared_expert_gate.weight";
    for (const auto& [ours, theirs] : block_names()) {
      if (ours != name) continue;
      std::string out = theirs;
      if (!is("llama4")) return out;
      if (out == "mlp.gate.weight") return "feed_forward.router.weight";
      return out.starts_with("mlp.") ? "feed_forward." + out.substr(4) : out;
    }
    FAIL("no name for ", name);
    return {};
  }

  /// The value head of the GGUF file that is head h of the checkpoint: there key heads go round, here they stay.
  [[nodiscard]] std::uint64_t tiled_head(std::uint64_t h) const {
    const std::uint64_t keys = count("ssm.group_count"), per_key = count("ssm.time_step_rank") / keys;
    return h % per_key * keys + h / per_key;
  }

  void undo(const std::string& name, Numbers& n) const {
    const bool norm = name.ends_with("norm.weight") && name != "ssm_norm.weight";
    if (norms_less_one() && norm) less_one(n);
    if (is("llama") && (name.starts_with("attn_q.") || name.starts_with("attn_k."))) {
      const std::uint64_t dim = count("rope.dimension_count");
      n = picked_rows(n, [dim](std::uint64_t r) {  // pairs side by side here, half a head apart there
        return r / dim * dim + r % (dim / 2) * 2 + (r % dim >= dim / 2 ? 1 : 0);
      });
    }
    if (name == "ssm_a") {
      for (float& v : n.values) v = std::log(-v);
    }
    if (is("qwen35")) undo_tiles(name, n);
    if (name == "ssm_conv1d.weight") n.shape = {n.shape[0], 1, n.shape[1]};
    if (name == "ffn_gate_inp_shexp.weight") n.shape = {1, n.shape[0]};
  }

  void undo_tiles(const std::string& name, Numbers& n) const {
    const std::uint64_t heads = count("ssm.time_step_rank"), dim = count("ssm.inner_size") / heads;
    const auto of_heads = [this](std::uint64_t first, std::uint64_t width) {
      return [this, first, width](std::uint64_t r) {
        return r < first ? r : first + tiled_head((r - first) / width) * width + (r - first) % width;
      };
    };
    const std::uint64_t keys = 2 * count("ssm.group_count") * count("ssm.state_size");
    if (name == "ssm_a" || name == "ssm_dt.bias" || name == "ssm_alpha.weight" || name == "ssm_beta.weight")
      n = picked_rows(n, of_heads(0, 1));
    if (name == "attn_gate.weight") n = picked_rows(n, of_heads(0, dim));
    if (name == "attn_qkv.weight" || name == "ssm_conv1d.weight") n = picked_rows(n, of_heads(keys, dim));
    if (name == "ssm_out.weight") n = turned(picked_rows(turned(n), of_heads(0, dim)));
  }

  /// q, k, v, z of each key head together.
  void add_grouped(const std::string& prefix, const std::string& layer, format::Id id) {
    const Numbers qkv = numbers(layer, "attn_qkv.weight"), z = numbers(layer, "attn_gate.weight");
    const std::uint64_t keys = count("ssm.group_count"), key_dim = count("ssm.state_size");
    const std::uint64_t values = count("ssm.inner_size") / keys, width = qkv.shape[1];
    Numbers out{{qkv.shape[0] + z.shape[0], width}, {}};
    const auto append = [&](const Numbers& from, std::uint64_t row, std::uint64_t rows) {
      const auto first = from.values.begin() + static_cast<std::ptrdiff_t>(row * width);
      out.values.insert(out.values.end(), first, first + static_cast<std::ptrdiff_t>(rows * width));
    };
    for (std::uint64_t k = 0; k < keys; ++k) {
      append(qkv, k * key_dim, key_dim);
      append(qkv, (keys + k) * key_dim, key_dim);
      append(qkv, 2 * keys * key_dim + k * values, values);
      append(z, k * values, values);
    }
    store(prefix + "linear_attn.in_proj_qkvz.weight", out, id);
  }

  void add_experts(const std::string& prefix, const std::string& layer, const std::string& name) {
    if (is("gpt-oss")) return add_oss_experts(prefix, layer);
    if (is("llama4")) {
      const Numbers gate = numbers(layer, "ffn_gate_exps.weight"), up = numbers(layer, "ffn_up_exps.weight");
      store(prefix + "feed_forward.experts.gate_up_proj", turned(fused(gate, up, false)), format::F32::id);
      store(prefix + "feed_forward.experts.down_proj", turned(numbers(layer, "ffn_down_exps.weight")),
            format::F32::id);
      return;
    }
    if (one_tensor_) {
      const Numbers gate = numbers(layer, "ffn_gate_exps.weight"), up = numbers(layer, "ffn_up_exps.weight");
      store(prefix + "mlp.experts.gate_up_proj", fused(gate, up, false), format::F32::id);
      store(prefix + "mlp.experts.down_proj", numbers(layer, "ffn_down_exps.weight"), format::F32::id);
      return;
    }
    const bool mixtral = is("llama");
    const std::string which = name.substr(4, name.find('_', 4) - 4);
    const std::string matrix = !mixtral          ? which + "_proj"
                               : which == "gate" ? "w1"
                               : which == "down" ? "w2"
                                                 : "w3";
    const Numbers all = numbers(layer, name);
    for (std::uint64_t e = 0; e < all.shape[0]; ++e) {
      const std::uint64_t size = all.shape[1] * all.shape[2];
      const auto first = all.values.begin() + static_cast<std::ptrdiff_t>(e * size);
      const Numbers one{{all.shape[1], all.shape[2]}, {first, first + static_cast<std::ptrdiff_t>(size)}};
      const std::string expert = std::to_string(e) + "." + matrix + ".weight";
      store(prefix + (mixtral ? "block_sparse_moe.experts." : "mlp.experts.") + expert, one, format::F32::id);
    }
  }

  void add_oss_experts(const std::string& prefix, const std::string& layer) {
    const std::string experts = prefix + "mlp.experts.";
    const Numbers gate = numbers(layer, "ffn_gate_exps.bias"), up = numbers(layer, "ffn_up_exps.bias");
    const auto columns = [](const Numbers& n) { return Numbers{{n.shape[0], n.shape[1], 1}, n.values}; };
    Numbers bias = fused(columns(gate), columns(up), true);
    bias.shape.pop_back();
    store(experts + "gate_up_proj_bias", bias, format::F32::id);
    store(experts + "down_proj_bias", numbers(layer, "ffn_down_exps.bias"), format::F32::id);
    if (one_tensor_) {
      const Numbers g = numbers(layer, "ffn_gate_exps.weight"), u = numbers(layer, "ffn_up_exps.weight");
      store(experts + "gate_up_proj", turned(fused(g, u, true)), format::F32::id);
      store(experts + "down_proj", turned(numbers(layer, "ffn_down_exps.weight")), format::F32::id);
      return;
    }
    add_blocks(experts + "down_proj", {&document_.tensor("blk." + layer + ".ffn_down_exps.weight")});
    add_blocks(experts + "gate_up_proj", {&document_.tensor("blk." + layer + ".ffn_gate_exps.weight"),
                                          &document_.tensor("blk." + layer + ".ffn_up_exps.weight")});
  }

  /// Blocks of MXFP4 as they are published: scales apart, neighbours in one byte, rows of the tensors alternating.
  void add_blocks(const std::string& name, const std::vector<const gguf::TensorInfo*>& tensors) {
    const gguf::TensorInfo& first = *tensors.front();
    const std::uint64_t blocks = first.dims[0] / 32, rows = first.dims[1] * tensors.size();
    std::vector<std::vector<std::byte>> bytes;
    for (const gguf::TensorInfo* const tensor : tensors) {
      bytes.emplace_back(tensor->bytes);
      document_.read(*tensor, bytes.back());
    }
    std::vector<std::byte> codes, scales;
    for (std::uint64_t at = 0; at < first.dims[2] * rows * blocks; ++at) {
      const std::uint64_t row = at / blocks;
      const std::byte* const block =
          bytes[row % tensors.size()].data() + (row / tensors.size() * blocks + at % blocks) * 17;
      scales.push_back(block[0]);
      for (std::size_t i = 0; i < 32; i += 2) {
        const auto code = [block](std::size_t k) {
          const std::byte pair = block[1 + k % 16];
          return k < 16 ? pair & std::byte{15} : pair >> 4;
        };
        codes.push_back(code(i) | code(i + 1) << 4);
      }
    }
    out_.tensors[name + "_blocks"] = stored("U8", {first.dims[2], rows, blocks, 16}, codes);
    out_.tensors[name + "_scales"] = stored("U8", {first.dims[2], rows, blocks}, scales);
  }

  gguf::Document document_;
  HfFolder& out_;
  std::string arch_;
  bool one_tensor_ = false;
};

}  // namespace mica::test
