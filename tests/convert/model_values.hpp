// SPDX-License-Identifier: Apache-2.0
//
// The tensors of models that scripts describe by names and shapes: hf_models.json, encoder_models.json.

#pragma once

#include "convert/hf_folder.hpp"

#include <cctype>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// Whether a name holds one of these words.
inline bool holds(std::string_view name, std::initializer_list<std::string_view> words) {
  std::string small(name);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view word : words) {
    if (small.find(word) != small.npos) return true;
  }
  return false;
}

/// The formula of the scripts.
inline StoredTensor values_of(const std::string& name, const std::vector<std::uint64_t>& shape) {
  std::uint32_t seed = 2166136261;
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 16777619;
  std::vector<float> values(product(shape));
  const bool vector = shape.size() == 1;
  const int half = static_cast<int>(std::log2(shape.back())) / 2;
  const bool embeds = holds(name, {"embed_tokens", "word_embeddings", "tok_embeddings"});
  const float width = vector ? 0.25F : embeds ? 2.0F : std::ldexp(1.0F, 2 - half);
  const bool norm = holds(name, {"norm", "emb_ln"}) && !holds(name, {"bias", "beta"});
  const float middle = vector && norm ? 1.0F : 0.0F;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 2654435761U + seed;
    h = (h ^ h >> 15) * 2246822519U;
    h = (h ^ h >> 13) * 3266489917U;
    values[i] = (static_cast<float>(h >> 8) * 0x1p-24F - 0.5F) * width + middle;
  }
  return stored("F32", shape, values);
}

/// [pattern, shape], or [pattern, shape, layers].
inline void add_tensors(const nlohmann::json& rows, HfFolder& folder) {
  for (const nlohmann::json& row : rows) {
    const auto pattern = row[0].get<std::string>();
    const auto shape = row[1].get<std::vector<std::uint64_t>>();
    if (row.size() == 2) folder.tensors[pattern] = values_of(pattern, shape);
    for (std::size_t i = 0; row.size() == 3 && i < row[2].size(); ++i) {
      std::string name = pattern;
      name.replace(name.find('#'), 1, std::to_string(row[2][i].get<int>()));
      folder.tensors[name] = values_of(name, shape);
    }
  }
}

}  // namespace mica::test
