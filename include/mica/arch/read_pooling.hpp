// SPDX-License-Identifier: Apache-2.0
//
// How the states of a text become one row: the keys of text encoders, and of decoders that embed texts.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/arch/key_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mica::arch {

/// The values of the key `pooling_type` in files.
enum class PoolingKey : std::uint8_t { none, mean, first, last, rank };

/// A dense layer of the file behind pooling, if it is there.
inline void add_dense(const gguf::Document& document, Config& config, std::string name, Activation activation,
                      std::string_view norm = {}) {
  const gguf::TensorInfo* const weight = document.find(join(name, ".weight"));
  if (weight == nullptr) return;
  const bool normed = !norm.empty() && document.find(join(norm, ".weight")) != nullptr;
  config.dense.push_back({.name = std::move(name),
                          .width = static_cast<std::size_t>(weight->rows()),
                          .activation = activation,
                          .norm = std::string(normed ? norm : "")});
}

/// How the file pools. Ranking pools as `ranked` says, and goes through the classifier: its dense layer `cls`
/// with this activation, and `cls.output`. A file with the latter ranks if it does not say how it pools:
/// those of llama.cpp's converter leave the key out.
inline void read_pooling(const KeyReader& keys, Config& config, Pooling ranked,
                         Activation activation = Activation::tanh) {
  const bool classifies = keys.document().find("cls.output.weight") != nullptr;
  switch (static_cast<PoolingKey>(keys.count_or("pooling_type", 0, 4, classifies ? 4 : 0))) {
    case PoolingKey::none:
      return;
    case PoolingKey::mean:
      config.pooling = Pooling::mean;
      return;
    case PoolingKey::first:
      config.pooling = Pooling::first;
      return;
    case PoolingKey::last:
      config.pooling = Pooling::last;
      return;
    case PoolingKey::rank:
      config.pooling = ranked;
      config.ranks = true;
  }
  add_dense(keys.document(), config, "cls", activation, "cls.norm");
  add_dense(keys.document(), config, "cls.output", Activation::none);
  MICA_CHECK(!config.dense.empty(), file, keys.file(), ": key '", keys.key("pooling_type"),
             "' is 4, ranking, and the file has neither tensor 'cls.weight' nor 'cls.output.weight'");
}

}  // namespace mica::arch
