// SPDX-License-Identifier: Apache-2.0
//
// A model in numbers: what a family descriptor makes of a file's metadata, and all that the blocks need to know. What
// differs from layer to layer is data per layer.
#pragma once

#include "mica/block/config.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace mica::arch {

using block::LayerConfig;
using block::RopeConfig;

/// A whole model.
struct Config {
  std::string arch;             // general.architecture
  std::string name;             // general.name, for people
  std::size_t n_ctx_train = 0;  // tokens
  std::size_t width = 0;        // embedding_length
  std::size_t n_vocab = 0;      // rows of the head
  float norm_epsilon = 0;
  RopeConfig rope;
  std::vector<LayerConfig> layers;

  [[nodiscard]] std::size_t max_q_width() const noexcept { return widest(&LayerConfig::q_width); }
  [[nodiscard]] std::size_t max_kv_width() const noexcept { return widest(&LayerConfig::kv_width); }
  [[nodiscard]] std::size_t max_group() const noexcept { return widest(&LayerConfig::group); }
  [[nodiscard]] std::size_t max_head_dim() const noexcept {
    std::size_t most = 0;
    for (const LayerConfig& layer : layers) most = layer.head_dim > most ? layer.head_dim : most;
    return most;
  }
  [[nodiscard]] std::size_t max_ff_width() const noexcept {
    std::size_t most = 0;
    for (const LayerConfig& layer : layers) most = layer.ff_width > most ? layer.ff_width : most;
    return most;
  }

 private:
  [[nodiscard]] std::size_t widest(std::size_t (LayerConfig::*width_of)() const noexcept) const noexcept {
    std::size_t most = 0;
    for (const LayerConfig& layer : layers) most = (layer.*width_of)() > most ? (layer.*width_of)() : most;
    return most;
  }
};

}  // namespace mica::arch
