// SPDX-License-Identifier: Apache-2.0
//
// Shapes of models of two layers, from which files of random weights are made.

#pragma once

#include "mica_tools/synth/shape.hpp"

#include <string_view>

namespace mica::test {

/// Two layers of a family.
inline arch::Shape small_shape(std::string_view arch) {
  arch::Shape shape{
      .name = "small", .model = "Small", .arch = arch, .layers = 2, .width = 256, .heads = 4, .kv_heads = 2};
  shape.head_dim = 64;
  shape.ff_width = 320;
  shape.n_vocab = 300;
  shape.n_ctx_train = 64;
  shape.window = arch.starts_with("gemma") || arch == "gpt-oss" ? 16 : 0;
  if (arch == "gemma4") {  // layer 1 has no window
    shape.window_interval = 2;
    shape.full_head_dim = 128;
    shape.full_kv_heads = 1;
    shape.full_v_from_k = true;
    shape.per_layer_width = 32;
  }
  if (!arch.starts_with("qwen35")) return shape;
  shape.interval = 2;  // layer 0 keeps a state
  shape.k_heads = 2;
  shape.v_heads = 4;
  shape.state_dim = 64;
  shape.taps = 4;
  return shape;
}

/// The same of a family that embeds texts.
inline arch::Shape small_encoder(std::string_view arch) {
  arch::Shape shape = small_shape(arch);
  shape.tied = true;
  shape.pooling = arch::PoolingKey::mean;
  if (arch == "modern-bert") shape.window = 16;
  if (arch.starts_with("gemma")) {
    shape.dense_width = 96;
    return shape;
  }
  shape.kv_heads = shape.heads;
  shape.types = arch == "modern-bert" ? 0 : 2;
  return shape;
}

inline arch::Shape small_mixture(std::string_view arch) {
  arch::Shape shape = small_shape(arch);
  shape.experts = 8;
  shape.experts_used = 2;
  shape.expert_ff_width = 128;
  shape.shared_ff_width = arch == "qwen35moe" ? 128 : 0;
  return shape;
}

}  // namespace mica::test
