// SPDX-License-Identifier: Apache-2.0
//
// Which tokens begin, end, pad: named in tokenizer_config.json, numbered in generation_config.json and
// config.json.
#pragma once

#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

/// Where special tokens may be looked up.
struct SpecialSources {
  const Json& tokenizer_config;
  const Json& generation_config;
  const Config& config;
};

namespace detail {

/// "bos_token": "<s>", or {"content": "<s>", ...}.
[[nodiscard]] inline std::optional<std::uint64_t> named_token(const Json& config, std::string_view key,
                                                              const VocabularyData& vocabulary) {
  const Json* found = find_member(config, key);
  if (found != nullptr && found->is_object()) found = find_member(*found, "content");
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return vocabulary.find(found->get<std::string>());
}

/// "eos_token_id": 2, or [2, 5]; what is no id of the vocabulary is passed over.
[[nodiscard]] inline std::vector<std::uint64_t> numbered_tokens(const Json* found,
                                                                const VocabularyData& vocabulary) {
  std::vector<std::uint64_t> out;
  const auto add = [&](const Json& id) {
    if (id.is_number_unsigned() && id.get<std::uint64_t>() < vocabulary.tokens.size())
      out.push_back(id.get<std::uint64_t>());
  };
  if (found != nullptr && found->is_array()) {
    for (const Json& each : *found) add(each);
  } else if (found != nullptr) {
    add(*found);
  }
  return out;
}

[[nodiscard]] inline bool ends_turn(std::string_view text) {
  constexpr std::array names = {std::string_view("<end_of_turn>"), std::string_view("<turn|>"),
                                std::string_view("<|eot_id|>"),    std::string_view("<|eot|>"),
                                std::string_view("<|im_end|>"),    std::string_view("<|end|>")};
  return std::find(names.begin(), names.end(), text) != names.end();
}

}  // namespace detail

/// Sets bos, eos, eot, unknown and padding where the folder has them.
inline void find_special_ids(const SpecialSources& from, VocabularyData& out) {
  const auto find = [&](const std::string& name) -> std::optional<std::uint64_t> {
    if (const auto id = detail::named_token(from.tokenizer_config, name, out)) return id;
    const std::string key = name + "_id";
    for (const Json* const found : {find_member(from.generation_config, key), from.config.find(key)}) {
      if (const auto ids = detail::numbered_tokens(found, out); !ids.empty()) return ids.front();
    }
    return std::nullopt;
  };
  out.bos = find("bos_token");
  out.eos = find("eos_token");
  out.padding = find("pad_token");
  if (!out.unknown) out.unknown = detail::named_token(from.tokenizer_config, "unk_token", out);
  const Json* const ends = find_member(from.generation_config, "eos_token_id");
  for (const std::uint64_t id :
       detail::numbered_tokens(ends != nullptr ? ends : from.config.find("eos_token_id"), out)) {
    if (id != out.eos && detail::ends_turn(out.tokens[static_cast<std::size_t>(id)].text)) out.eot = id;
  }
}

}  // namespace mica::convert
