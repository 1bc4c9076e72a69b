// SPDX-License-Identifier: Apache-2.0
//
// The parts of an embedder behind its layers, as sentence-transformers saves them: modules.json lists
// folders, each of which has a config.json.
//
//   modules.json     [{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, ...]
//   1_Pooling/       which states become the row of a text
//   2_Dense/         a matrix for that row: config.json, model.safetensors
//   config_sentence_transformers.json     {"prompts": {"query": "query: ", "document": "passage: "}}
#pragma once

#include "mica/arch/read_pooling.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/folder_file.hpp"
#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// A matrix behind pooling, without a bias and an activation.
struct DenseModule {
  std::string folder;     ///< "2_Dense"
  std::uint64_t in, out;  ///< numbers of a row
};

struct Modules {
  std::optional<arch::PoolingKey> pooling;              ///< empty: the folder does not say
  std::vector<DenseModule> dense;                       ///< in their order
  std::string query_prefix = {}, document_prefix = {};  ///< what stands before such texts
};

namespace detail {

/// The config.json of a module.
[[nodiscard]] inline Config module_config(const std::string& folder, const std::string& module) {
  MICA_CHECK(!module.empty() && module.find('/') == module.npos && !module.starts_with("."), file, folder,
             "/modules.json: path '", escaped(module), "' is no folder of this one");
  const std::string file = io::folder_file(folder, join(module, "/config.json"));
  return Config(read_json(file), file);
}

[[nodiscard]] inline arch::PoolingKey read_pooling_module(const Config& config) {
  constexpr std::pair<std::string_view, arch::PoolingKey> modes[] = {
      {"pooling_mode_mean_tokens", arch::PoolingKey::mean},
      {"pooling_mode_cls_token", arch::PoolingKey::first},
      {"pooling_mode_lasttoken", arch::PoolingKey::last}};
  std::optional<arch::PoolingKey> chosen;
  for (const auto& [key, pooling] : modes) {
    if (!config.flag_or(key, false)) continue;
    MICA_CHECK(!chosen, unsupported, config.path(), ": '", key,
               "' is true beside another pooling; supported is one of them");
    chosen = pooling;
  }
  MICA_CHECK(chosen, unsupported, config.path(), ": no supported pooling is true; supported are ",
             "pooling_mode_mean_tokens, pooling_mode_cls_token and pooling_mode_lasttoken");
  return *chosen;
}

[[nodiscard]] inline DenseModule read_dense_module(const Config& config, std::string folder) {
  const std::string activation = config.text_or("activation_function", "torch.nn.modules.activation.Tanh");
  MICA_CHECK(activation.ends_with(".Identity") && !config.flag_or("bias", true), unsupported, config.path(),
             ": a dense layer with a bias or the activation ", escaped(activation),
             "; supported are those without both");
  return {std::move(folder), config.count("in_features"), config.count("out_features")};
}

/// The prompts for queries and documents, which some folders call passages; those for other uses are left out.
inline void read_prompts(const std::string& folder, Modules& out) {
  const std::string file = io::folder_file(folder, "config_sentence_transformers.json");
  const auto config = read_json_if_present(file);
  const Json* const prompts = config ? find_member(*config, "prompts") : nullptr;
  if (prompts == nullptr) return;
  MICA_CHECK(prompts->is_object(), file, file, ": 'prompts' is no object");
  const auto text = [&](std::string_view name) {
    const Json* const found = find_member(*prompts, name);
    MICA_CHECK(found == nullptr || found->is_string(), file, file, ": prompt '", name, "' is no text");
    return member_text(*prompts, name);
  };
  out.query_prefix = text("query");
  out.document_prefix = text("document");
  if (out.document_prefix.empty()) out.document_prefix = text("passage");
}

}  // namespace detail

/// Reads modules.json and the configs that it names; nothing where there is no such file. Raises
/// ErrorCode::unsupported for another module, another pooling or two of them, or a dense layer with more than a
/// matrix; file for a damaged file. Prompts are read with or without modules.json.
[[nodiscard]] inline Modules read_modules(const std::string& folder) {
  Modules out;
  detail::read_prompts(folder, out);
  const std::string file = io::folder_file(folder, "modules.json");
  const auto list = read_json_if_present(file);
  if (!list) return out;
  MICA_CHECK(list->is_array(), file, file, ": is no list");
  for (const Json& module : *list) {
    const std::string type = member_text(module, "type"), path = member_text(module, "path");
    if (type.ends_with(".Transformer") || type.ends_with(".Normalize")) continue;
    if (type.ends_with(".Dense")) {
      out.dense.push_back(detail::read_dense_module(detail::module_config(folder, path), path));
      continue;
    }
    MICA_CHECK(type.ends_with(".Pooling"), unsupported, file, ": a module of the type '", escaped(type),
               "'; supported are Transformer, Pooling, Dense and Normalize");
    MICA_CHECK(!out.pooling, unsupported, file, ": has two modules of the type Pooling; supported is one");
    out.pooling = detail::read_pooling_module(detail::module_config(folder, path));
  }
  return out;
}

}  // namespace mica::convert
