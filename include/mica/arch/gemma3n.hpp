// SPDX-License-Identifier: Apache-2.0
//
// Gemma 3n (`gemma3n`): several residual streams of which blocks read one, a learnt residual beside
// attention, an embedding for every layer, gates of which the first layers keep the large ones, four layers
// with a window to one without, and last layers that read the keys and values of earlier ones.
#pragma once

#include "mica/arch/concept.hpp"
#include "mica/arch/gemma.hpp"
#include "mica/block/altup.hpp"
#include "mica/block/laurel.hpp"
#include "mica/block/per_layer.hpp"

namespace mica::arch {

struct Gemma3n {
  // Required by Arch
  static constexpr std::string_view name = "gemma3n";
  using Blocks = TypeList<block::Attention, block::DenseFeedForward, block::LayerInputs,
                          block::PerLayerEmbedding, block::AltUp, block::Laurel>;

  [[nodiscard]] static Config config(const gguf::Document& document) {
    const KeyReader keys(document, name);
    Config config = read_gemma(keys, name);
    const std::size_t n = config.layers.size();
    config.logit_softcap = static_cast<float>(keys.positive_or("final_logit_softcapping", 30.0));
    const block::LayerInputs::Config inputs{
        .width = keys.count("embedding_length_per_layer_input", 1, max_width), .layers = n};
    const std::size_t streams = read_streams(keys);
    const std::size_t window = keys.count("attention.sliding_window", 1, max_context);
    const std::vector<bool> windows = read_windows(keys, n, 5);
    add_window_rope(keys, config, config.ropes.front().dims);
    for (std::size_t i = 0; i < n; ++i) {
      add_post_norms(config.layers[i]);
      block::AttentionConfig& attention = config.layers[i].get<block::Attention>();
      attention.head_norm = block::HeadNorm::weighted;
      attention.v_norm = true;
      attention.attention_scale = 1;
      if (!windows[i]) continue;
      attention.look_through_window(window);
      attention.rope = 1;
    }
    share_keys_and_values(keys, config, windows);
    read_sparsity(keys, config);
    config.begin.add<block::LayerInputs>(inputs);
    config.begin.add<block::AltUp>({block::AltUp::Part::split, streams});
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t rank = document.tensor(tensor_names::layer(i, "laurel_l")).rows();
      config.layers[i] = with_streams(config.layers[i], {inputs, i, kernel::Gate::gelu, streams}, rank);
    }
    config.end.add<block::AltUp>({block::AltUp::Part::merge, streams});
    return config;
  }

 private:
  /// The blocks around attention and the feed-forward block of a layer.
  [[nodiscard]] static Layer with_streams(const Layer& inner,
                                          const block::PerLayerEmbedding::Config& embedding,
                                          std::size_t laurel_rank) {
    Layer layer;
    layer.add<block::AltUp>({block::AltUp::Part::predict, embedding.streams});
    layer.add<block::Attention>(inner.get<block::Attention>());
    layer.add<block::Laurel>({laurel_rank});
    layer.add<block::DenseFeedForward>(inner.get<block::DenseFeedForward>());
    layer.add<block::AltUp>({block::AltUp::Part::correct, embedding.streams});
    layer.add<block::PerLayerEmbedding>(embedding);
    return layer;
  }

  [[nodiscard]] static std::size_t read_streams(const KeyReader& keys) {
    const std::size_t active = keys.count_or("altup.active_idx", 0, block::max_streams - 1, 0);
    MICA_CHECK(active == 0, unsupported, keys.file(), ": key '", keys.key("altup.active_idx"), "' is ",
               active, "; supported: 0");
    return keys.count("altup.num_inputs", 2, block::max_streams);
  }

  /// Deviations above the mean at which a layer's gate begins; 0 and -infinity: it keeps all.
  static void read_sparsity(const KeyReader& keys, Config& config) {
    const std::string key = keys.key("activation_sparsity_scale");
    const auto found = keys.document().metadata().get_each<float>(key, config.layers.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const float deviations = found[i];
      const bool keeps_all = std::isinf(deviations) && deviations < 0;
      MICA_CHECK(keeps_all || std::isfinite(deviations), file, keys.file(), ": key '", key, "' has ",
                 deviations, "; allowed: finite numbers, and -infinity");
      config.layers[i].get<block::DenseFeedForward>().sparsity = keeps_all ? 0 : deviations;
    }
  }
};

static_assert(Arch<Gemma3n>);

}  // namespace mica::arch
