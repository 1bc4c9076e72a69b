// SPDX-License-Identifier: Apache-2.0
//
// A family descriptor of the converter: its names in config.json, a table of tensors, and its own keys.
//
// Tensor names are written without the prefixes that containers add ("model.", "language_model."); # stands
// for a number, the first after "layers." being the layer, any other the place in a stack:
//
//   layers.#.mlp.experts.#.up_proj.weight  ->  blk.#.ffn_up_exps.weight, three dimensions
#pragma once

#include "mica_tools/convert/change.hpp"
#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/keys.hpp"
#include "mica_tools/convert/modules.hpp"
#include "mica_tools/convert/rope.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

/// The type of a matrix in the file; vectors are always F32.
enum class Keep : std::uint8_t {
  as_asked,     ///< the requested type
  unquantized,  ///< the checkpoint's own instead of a quantised one
  f32,          ///< also where a quantised type is requested
};

/// One tensor of a family, from its Hugging Face name to its GGUF name.
struct TensorRule {
  std::string_view from;        ///< in the checkpoint, with # for numbers
  std::string_view to;          ///< in the file, with the same numbers
  std::string_view shape = "";  ///< as stored, checked: d width, q query, k key, h head, e experts; * any
  Change change = {};           ///< none by default
  Keep keep = Keep::as_asked;   ///< its type
};

/// A tensor that is computed from the config.
struct ComputedTensor {
  std::string name;
  std::vector<float> values;  ///< F32, one dimension
};

/// The inputs of a family's functions.
struct FamilyInput {
  const Config& config;                     ///< all keys
  const Sizes& sizes;                       ///< those that all families have
  const Rope& rope;                         ///< of the layers without a window
  const Modules& modules;                   ///< of an embedder: pooling, dense layers
  std::vector<std::uint32_t> answers = {};  ///< tokens whose logits are a reranker's scores; empty: none
};

/// A family. An object of this type is all that a new one needs, and its place in the list of families.hpp.
struct Family {
  std::string_view arch;                                ///< general.architecture
  std::string_view model_types;                         ///< names with a space between each
  std::span<const std::span<const TensorRule>> tables;  ///< a tensor may have several rules
  Defaults defaults = {};                               ///< for keys that config.json may leave out
  void (*write_keys)(const FamilyInput&, Keys&);        ///< beyond the common ones; may refuse a model
  /// Tensors beyond those of the checkpoint; null: none.
  std::vector<ComputedTensor> (*compute)(const FamilyInput&) = nullptr;

  /// Whether a model of these types is of this family; null: each is.
  bool (*matches)(const Config&) = nullptr;
  std::span<const KeyName> names = {};  ///< of keys that config.json has under names of this family
  /// Whether a tensor, by its pattern, has no place in the file; null: none but those of every family.
  bool (*skips)(const FamilyInput&, std::string_view) = nullptr;

  bool reranks = false;              ///< rerankers are among its models, which answer "yes" or "no"
  bool mtp = false;                  ///< a head for multi-token prediction, mtp.*, is kept
  bool padded = false;               ///< the embedding gets rows of zeros up to config.json's vocab_size
  std::string_view vocabulary = "";  ///< tokenizer.ggml.model, if not the detected one
};

/// Writes the keys of all families.
inline void write_common_keys(const FamilyInput& in, Keys& keys) {
  const Sizes& s = in.sizes;
  keys.count("vocab_size", s.vocabulary);
  keys.count("context_length", s.context);
  keys.count("embedding_length", s.width);
  keys.count("block_count", s.all_layers());
  if (s.mtp_layers > 0) keys.count("nextn_predict_layers", s.mtp_layers);
  keys.count("attention.head_count", s.heads);
  keys.count("attention.head_count_kv", s.kv_heads);
  keys.count("attention.key_length", s.head_dim);
  keys.count("attention.value_length", s.head_dim);
  keys.real("attention.layer_norm_rms_epsilon", s.epsilon);
  if (in.config.has("intermediate_size"))
    keys.counts("feed_forward_length", in.config.counts("intermediate_size", s.layers));
  if (s.experts > 0) {
    keys.count("expert_count", s.experts);
    keys.count("expert_used_count", s.experts_used);
  }
}

/// Raises ErrorCode::unsupported for a text of the config that the family does not have.
inline void require_supported(const Config& config, std::string_view key, bool supported,
                              std::string_view found, std::string_view wanted) {
  MICA_CHECK(supported, unsupported, config.where(key), " is '", escaped(found),
             "'; this family is supported with '", wanted, "' alone");
}

/// Raises ErrorCode::unsupported where the config names another activation than GGUF's family has: silu,
/// which is also called swish, or gelu in any of its spellings.
inline void check_activation(const Config& config, std::string_view activation) {
  for (const char* const key : {"hidden_act", "hidden_activation"}) {
    const Json* const found = config.find(key);
    if (found == nullptr || !found->is_string()) continue;
    const auto name = found->get<std::string>();
    require_supported(config, key, name.starts_with(activation) || (activation == "silu" && name == "swish"),
                      name, activation);
  }
}

/// Writes those and the keys of the rope.
inline void write_usual_keys(const FamilyInput& in, const Rope& rope, Keys& keys,
                             std::string_view activation = "silu") {
  check_activation(in.config, activation);
  write_common_keys(in, keys);
  write_rope(in.config, rope, in.sizes, keys);
}

/// Window flags of the layers from `layer_types`, or from a period whose last layer sees everything; empty
/// when neither is given.
[[nodiscard]] inline std::vector<bool> windowed_layers(const FamilyInput& in, std::uint64_t period) {
  const auto n = static_cast<std::size_t>(in.sizes.layers);
  std::vector<bool> out;
  for (const std::string& type : in.config.texts("layer_types", n))
    out.push_back(type == "sliding_attention");
  for (std::size_t i = 0; out.size() < n && period > 0; ++i) out.push_back((i + 1) % period != 0);
  return out;
}

}  // namespace mica::convert
