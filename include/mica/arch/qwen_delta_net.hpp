// SPDX-License-Identifier: Apache-2.0
//
// Qwen3-Next, Qwen 3.5 and its successors: three layers in four have a gated delta net, a recurrent state
// instead of a cache, the fourth attends through a gate. The norm before the feed-forward block has the name
// that Gemma gives to the norm after attention.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/read_experts.hpp"
#include "mica/block/delta_net.hpp"
#include "mica/block/mtp_input.hpp"
#include "mica/kernel/recurrent.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace mica::arch {

/// The sizes of a delta net, in the names of state-space models.
[[nodiscard]] inline block::DeltaNetConfig read_delta_net(const KeyReader& keys) {
  block::DeltaNetConfig d;
  d.taps = keys.count("ssm.conv_kernel", 1, kernel::max_taps);
  d.k_dim = keys.count("ssm.state_size", 1, max_width);
  d.k_heads = keys.count("ssm.group_count", 1, max_heads);
  d.v_heads = keys.count("ssm.time_step_rank", 1, max_heads);
  const std::size_t inner = keys.count("ssm.inner_size", 1, max_width);
  MICA_CHECK(inner % d.v_heads == 0, file, keys.file(), ": key '", keys.key("ssm.inner_size"), "' is ", inner,
             "; it must be a multiple of ssm.time_step_rank, which is ", d.v_heads);
  MICA_CHECK(d.v_heads % d.k_heads == 0, file, keys.file(), ": key '", keys.key("ssm.time_step_rank"),
             "' is ", d.v_heads, "; it must be a multiple of ssm.group_count, which is ", d.k_heads);
  d.v_dim = inner / d.v_heads;
  return d;
}

/// The layers with a recurrent state: by an array of the file, or all but every full_attention_interval-th.
[[nodiscard]] inline std::vector<bool> read_recurrent_layers(const KeyReader& keys, std::size_t layers) {
  const std::size_t all = keys.count("block_count", 1, max_layers);
  std::vector<bool> recurrent = keys.pattern("attention.recurrent_layers", all);
  if (!recurrent.empty()) return recurrent;
  const std::size_t interval = keys.count_or("full_attention_interval", 1, max_layers, 4);
  recurrent.assign(layers, false);
  for (std::size_t i = 0; i < layers; ++i) recurrent[i] = (i + 1) % interval != 0;
  return recurrent;
}

/// A model of such layers, without its experts.
[[nodiscard]] inline Config read_delta_net_model(const KeyReader& keys, std::string_view arch) {
  Config config = read_common(keys, arch, kernel::RopePairs::halves);
  const block::DeltaNetConfig delta_net = read_delta_net(keys);
  const std::vector<bool> recurrent = read_recurrent_layers(keys, config.layers.size());
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    Layer& layer = config.layers[i];
    layer.get<block::DenseFeedForward>().norm = "post_attention_norm";
    if (recurrent[i]) {
      layer.replace<block::Attention, block::DeltaNet>(delta_net);
    } else {
      layer.get<block::Attention>().head_norm = block::HeadNorm::weighted;
      layer.get<block::Attention>().q_gate = true;
    }
  }
  return config;
}

/// Gives every layer experts, and one more for every token through a gate.
inline void add_gated_experts(const KeyReader& keys, Config& config) {
  for (Layer& layer : config.layers) {
    auto& experts = replace_by_experts(keys, layer, 0);
    experts.shared_ff_width = keys.count_or("expert_shared_feed_forward_length", 0, max_width, 0);
    experts.shared_gate = experts.shared_ff_width != 0;
    experts.norm = "post_attention_norm";
  }
}

/// Value heads of one key head lie together, and the two gates of a delta net come in one tensor.
struct Qwen3Next {
  // Required by Arch
  static constexpr std::string_view name = "qwen3next";
  using Blocks =
      TypeList<block::Attention, block::DeltaNet, block::DenseFeedForward, block::Experts, block::MtpInput>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_delta_net_model(keys, name);
    for (Layer& layer : config.layers) {
      if (!layer.has<block::DeltaNet>()) continue;
      layer.get<block::DeltaNet>().heads_interleaved = true;
      layer.get<block::DeltaNet>().fused_gates = true;
    }
    if (keys.count_or("expert_count", 0, max_experts, 0) != 0) add_gated_experts(keys, config);
    return config;
  }
};

/// Rotation has sections for image positions, which are all alike for text.
struct Qwen35 {
  // Required by Arch
  static constexpr std::string_view name = "qwen35";
  using Blocks = TypeList<block::Attention, block::DeltaNet, block::DenseFeedForward, block::MtpInput>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    return read_delta_net_model(KeyReader(document, name), name);
  }
};

/// Qwen 3.5 with experts.
struct Qwen35Moe {
  // Required by Arch
  static constexpr std::string_view name = "qwen35moe";
  using Blocks = TypeList<block::Attention, block::DeltaNet, block::Experts, block::MtpInput>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_delta_net_model(keys, name);
    add_gated_experts(keys, config);
    return config;
  }
};

static_assert(Arch<Qwen3Next> && Arch<Qwen35> && Arch<Qwen35Moe>);

}  // namespace mica::arch
