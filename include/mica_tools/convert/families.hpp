// SPDX-License-Identifier: Apache-2.0
//
// The closed list of families that can be converted.
#pragma once

#include "mica_tools/convert/families/bert.hpp"
#include "mica_tools/convert/families/gemma.hpp"
#include "mica_tools/convert/families/gemma_embedding.hpp"
#include "mica_tools/convert/families/gpt_oss.hpp"
#include "mica_tools/convert/families/llama.hpp"
#include "mica_tools/convert/families/modern_bert.hpp"
#include "mica_tools/convert/families/phi3.hpp"
#include "mica_tools/convert/families/qwen.hpp"

#include <array>
#include <string>

namespace mica::convert {

/// Those that find_family() knows. Of several with the same type the first one that matches is chosen.
inline constexpr std::array all_families = {
    &families::jina_bert_v2, &families::bert,        &families::roberta,
    &families::nomic_bert,   &families::modern_bert, &families::gemma_embedding,
    &families::llama,        &families::llama4,      &families::phi3,
    &families::qwen2,        &families::qwen2moe,    &families::qwen3,
    &families::qwen3moe,     &families::qwen3next,   &families::qwen35,
    &families::qwen35moe,    &families::gemma,       &families::gemma2,
    &families::gemma3,       &families::gemma3n,     &families::gemma4,
    &families::gpt_oss,
};

namespace detail {

/// Whether a list of names with a space between each has this one.
constexpr bool lists(std::string_view names, std::string_view name) noexcept {
  for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == ' ') && (end == names.size() || names[end] == ' ')) return !name.empty();
  }
  return false;
}

}  // namespace detail

/// The family of a model. Raises ErrorCode::unsupported, listing the known ones, when there is none.
[[nodiscard]] inline const Family& find_family(const Config& config) {
  const auto types = config.model_types();
  for (const std::string& type : types) {
    for (const Family* const family : all_families) {
      if (!detail::lists(family->model_types, type)) continue;
      if (family->matches == nullptr || family->matches(config)) return *family;
    }
  }
  std::string known;
  for (const Family* const family : all_families) {
    if (family->matches == nullptr) known.append(" ").append(family->model_types);
  }
  raise(ErrorCode::unsupported, config.where("model_type"), " is '", escaped(types.back()), "'; known are",
        known);
}

}  // namespace mica::convert
