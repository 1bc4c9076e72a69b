// SPDX-License-Identifier: Apache-2.0
//
// A folder's config.json, read with ranges, and the sizes in it that all families have. Multimodal models
// have the numbers of their language part in `text_config`; those are looked up first, the outer ones second.
#pragma once

#include "mica_tools/convert/json.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// A key that all families have, and its name in the config.json of one family.
struct KeyName {
  std::string_view usual;  ///< as the getters are called
  std::string_view own;    ///< read where the usual one is missing
};

/// The numbers of a model. Getters raise ErrorCode::file for a value of another kind or out of range, naming
/// the key.
class Config {
 public:
  static constexpr std::uint64_t max_count = std::uint64_t{1} << 31;  ///< of any whole number

  /// Raises ErrorCode::file for JSON that is no object. path: for error texts.
  Config(Json json, std::string path) : json_(std::move(json)), path_(std::move(path)) {
    MICA_CHECK((*json_).is_object(), file, path_, ": is not a JSON object");
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// The names by which the family may be known: that of the language part, then that of the whole.
  [[nodiscard]] std::vector<std::string> model_types() const {
    std::vector<std::string> out;
    const Json* const text = find_member(*json_, "text_config");
    for (const Json* const each : {text, &*json_}) {
      const Json* const type = find_member(each, "model_type");
      if (type != nullptr && type->is_string()) out.push_back(type->get<std::string>());
    }
    MICA_CHECK(!out.empty(), file, where("model_type"), " is missing");
    return out;
  }

  /// The names of keys in this family. They outlive the config.
  void set_names(std::span<const KeyName> names) noexcept { names_ = names; }

  /// The value of a key; null when it is missing or null. And whether there is one.
  [[nodiscard]] const Json* find(std::string_view key) const { return find_spelled(spelled(key)); }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  /// A whole number from 0 to max_count; required, or `otherwise` when the key is missing.
  [[nodiscard]] std::uint64_t count(std::string_view key) const { return as_count(required(key), key); }
  [[nodiscard]] std::uint64_t count_or(std::string_view key, std::uint64_t otherwise) const {
    const Json* const found = find(key);
    return found == nullptr ? otherwise : as_count(*found, key);
  }
  /// One for each of n layers, given as one number or a list; required.
  [[nodiscard]] std::vector<std::uint64_t> counts(std::string_view key, std::size_t n) const {
    if (required(key).is_number()) return std::vector<std::uint64_t>(n, count(key));
    std::vector<std::uint64_t> out;
    for (const Json& each : *list(key, n)) out.push_back(as_count(each, key));
    return out;
  }

  /// A finite number; required, or `otherwise` when the key is missing.
  [[nodiscard]] double real(std::string_view key) const { return as_real(required(key), key); }
  [[nodiscard]] double real_or(std::string_view key, double otherwise) const {
    const Json* const found = find(key);
    return found == nullptr ? otherwise : as_real(*found, key);
  }

  /// A bool, a text; `otherwise` when the key is missing.
  [[nodiscard]] bool flag_or(std::string_view key, bool otherwise) const {
    const Json* const found = find(key);
    if (found == nullptr) return otherwise;
    MICA_CHECK(found->is_boolean(), file, where(key), " is no bool");
    return found->get<bool>();
  }
  [[nodiscard]] std::string text_or(std::string_view key, std::string_view otherwise) const {
    const Json* const found = find(key);
    if (found == nullptr) return std::string(otherwise);
    MICA_CHECK(found->is_string(), file, where(key), " is no text");
    return found->get<std::string>();
  }
  /// A list of n texts; empty when the key is missing.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t n) const {
    std::vector<std::string> out;
    const Json* const found = list(key, n);
    if (found == nullptr) return out;
    for (const Json& each : *found) {
      MICA_CHECK(each.is_string(), file, where(key), " is no list of texts");
      out.push_back(each.get<std::string>());
    }
    return out;
  }
  /// A list of n finite numbers; empty when the key is missing.
  [[nodiscard]] std::vector<double> reals(std::string_view key, std::size_t n) const {
    std::vector<double> out;
    const Json* const found = list(key, n);
    if (found == nullptr) return out;
    for (const Json& each : *found) out.push_back(as_real(each, key));
    return out;
  }

  /// The same for values inside of other values; `key` names them in errors, which where() begins.
  [[nodiscard]] std::uint64_t as_count(const Json& value, std::string_view key) const {
    const bool whole =
        value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
    MICA_CHECK(whole && value.get<std::uint64_t>() <= max_count, file, where(key), " is ", shown(value),
               "; allowed: whole numbers from 0 to ", max_count);
    return value.get<std::uint64_t>();
  }
  [[nodiscard]] double as_real(const Json& value, std::string_view key) const {
    MICA_CHECK(value.is_number() && std::isfinite(value.get<double>()), file, where(key), " is ",
               shown(value), "; needed: a finite number");
    return value.get<double>();
  }
  [[nodiscard]] std::string where(std::string_view key) const {
    return join(path_, ": key '", spelled(key), "'");
  }

 private:
  [[nodiscard]] const Json* find_spelled(std::string_view key) const {
    const Json* const inner = find_member(find_member(*json_, "text_config"), key);
    return inner != nullptr ? inner : find_member(*json_, key);
  }
  /// The name under which config.json has a key.
  [[nodiscard]] std::string_view spelled(std::string_view key) const {
    for (const KeyName& name : names_) {
      if (name.usual == key && find_spelled(key) == nullptr) return name.own;
    }
    return key;
  }
  [[nodiscard]] const Json& required(std::string_view key) const {
    const Json* const found = find(key);
    MICA_CHECK(found != nullptr, file, where(key), " is missing");
    return *found;
  }
  [[nodiscard]] const Json* list(std::string_view key, std::size_t n) const {
    const Json* const found = find(key);
    if (found == nullptr) return nullptr;
    MICA_CHECK(found->is_array() && found->size() == n, file, where(key), " is ", shown(*found),
               "; needed: a list of ", n);
    return found;
  }
  [[nodiscard]] static std::string shown(const Json& value) {
    return escaped(value.dump(-1, ' ', false, Json::error_handler_t::replace), 40);
  }

  KeptJson json_;
  std::string path_;
  std::span<const KeyName> names_ = {};
};

/// Whether a name among `architectures` ends with this, as "ForSequenceClassification".
[[nodiscard]] inline bool has_architecture(const Config& config, std::string_view end) {
  const Json* const names = config.find("architectures");
  if (names == nullptr || !names->is_array()) return false;
  for (const Json& name : *names) {
    if (name.is_string() && name.get<std::string>().ends_with(end)) return true;
  }
  return false;
}

/// Defaults of a family for missing keys of config.json; 0 means that the key is required.
struct Defaults {
  std::uint64_t heads = 0;     ///< "num_attention_heads"
  std::uint64_t kv_heads = 0;  ///< 0: as many as heads
  std::uint64_t head_dim = 0;  ///< 0: width / heads
  std::uint64_t context = 0;   ///< tokens, "max_position_embeddings"
  double epsilon = 1e-6;       ///< of norms, "rms_norm_eps"
  double rope_base = 10000.0;  ///< "rope_theta"
  bool tied = false;           ///< the output matrix is the embedding
};

/// Widths of a model, in elements.
struct Sizes {
  std::uint64_t layers;            ///< at least 1, as the five below
  std::uint64_t width;             ///< of the residual stream
  std::uint64_t heads;             ///< of queries
  std::uint64_t kv_heads;          ///< as many as heads where config.json has no number
  std::uint64_t head_dim;          ///< of every head
  std::uint64_t context;           ///< tokens that the model was trained for
  std::uint64_t experts = 0;       ///< of a layer; 0: none
  std::uint64_t experts_used = 0;  ///< by a token
  std::uint64_t expert_ff = 0;     ///< of one expert; 0: config.json has no such number
  std::uint64_t shared_ff = 0;     ///< of an expert that every token uses; 0: none
  std::uint64_t vocabulary = 0;    ///< rows of the embedding
  std::uint64_t mtp_layers = 0;    ///< behind the layers, for multi-token prediction, that are kept
  double epsilon = 0;              ///< of the norms

  [[nodiscard]] std::uint64_t all_layers() const noexcept { return layers + mtp_layers; }
  [[nodiscard]] std::uint64_t q_width() const noexcept { return heads * head_dim; }  ///< of all query heads
  [[nodiscard]] std::uint64_t kv_width() const noexcept { return kv_heads * head_dim; }  ///< of all keys
};

namespace detail {

[[nodiscard]] inline std::uint64_t count_in(const Config& config, std::string_view key,
                                            std::uint64_t otherwise, std::uint64_t max) {
  const std::uint64_t found = otherwise == 0 ? config.count(key) : config.count_or(key, otherwise);
  MICA_CHECK(found >= 1 && found <= max, file, config.where(key), " is ", found, "; allowed: 1 to ", max);
  return found;
}

}  // namespace detail

/// Reads them; `vocabulary` is left to the embedding.
[[nodiscard]] inline Sizes read_sizes(const Config& config, const Defaults& defaults) {
  Sizes s{};
  s.layers = detail::count_in(config, "num_hidden_layers", 0, 4096);
  s.width = detail::count_in(config, "hidden_size", 0, std::uint64_t{1} << 20);
  s.heads = detail::count_in(config, "num_attention_heads", defaults.heads, 1U << 14);
  s.kv_heads = detail::count_in(config, "num_key_value_heads",
                                defaults.kv_heads == 0 ? s.heads : defaults.kv_heads, 1U << 14);
  const std::uint64_t fallback = defaults.head_dim == 0 ? s.width / s.heads : defaults.head_dim;
  s.head_dim = detail::count_in(config, "head_dim", fallback == 0 ? 1 : fallback, 1U << 14);
  s.context = detail::count_in(config, "max_position_embeddings", defaults.context, std::uint64_t{1} << 30);
  s.epsilon = config.real_or("rms_norm_eps", defaults.epsilon);
  s.experts = config.count_or("num_local_experts", config.count_or("num_experts", 0));
  s.experts_used = config.count_or("num_experts_per_tok", config.count_or("top_k_experts", 0));
  s.expert_ff = config.count_or("moe_intermediate_size", config.count_or("expert_intermediate_size", 0));
  s.shared_ff = config.count_or("shared_expert_intermediate_size", 0);
  MICA_CHECK(s.experts <= 65536 && s.experts_used <= s.experts, file, config.path(), ": ", s.experts_used,
             " of ", s.experts, " experts");
  return s;
}

}  // namespace mica::convert
