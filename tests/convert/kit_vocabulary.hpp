// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of a GGUF file as the JSON files that it could have come from.

#pragma once

#include "mica/gguf/metadata.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace mica::test {

/// The tokenizer.* keys that the way back needs.
struct KitVocabulary {
  std::string model, pre;
  std::vector<std::string> tokens;
  std::vector<int> types;
  std::vector<std::string> merges;
  std::vector<float> scores;

  explicit KitVocabulary(const gguf::Metadata& metadata) {
    model = metadata.require<std::string>("tokenizer.ggml.model");
    pre = metadata.get<std::string>("tokenizer.ggml.pre").value_or("");
    for (const auto text : metadata.require<gguf::Array<std::string_view>>("tokenizer.ggml.tokens"))
      tokens.emplace_back(text);
    for (const auto type : metadata.require<gguf::Array<std::int32_t>>("tokenizer.ggml.token_type"))
      types.push_back(type);
    if (const auto given = metadata.get<gguf::Array<float>>("tokenizer.ggml.scores"))
      scores.assign(given->begin(), given->end());
    const auto found = metadata.get<gguf::Array<std::string_view>>("tokenizer.ggml.merges");
    if (!found) return;
    for (const auto merge : *found) merges.emplace_back(merge);
  }
};

/// The expressions as the models' authors published them.
inline std::string published_expression(const std::string& pre) {
  const std::string contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  const std::string tail = R"([\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string upper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])", lower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
  const std::string before = R"([^\r\n\p{L}\p{N}]?)";
  if (pre == "llama-bpe")
    return contractions + "|" + before + R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+)" + tail;
  if (pre == "qwen2") return contractions + "|" + before + R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+)" + tail;
  REQUIRE((pre == "gpt-4o" || pre == "llama4"));
  return before + upper + "*" + lower + "+" + contractions + "?|" + before + upper + "+" + lower + "*" +
         contractions + R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

/// Every way to put two tokens together, the best result first.
inline nlohmann::json all_merges(const KitVocabulary& vocabulary) {
  std::unordered_set<std::string> normal;
  std::vector<std::size_t> order;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] != 1) continue;
    normal.insert(vocabulary.tokens[id]);
    order.push_back(id);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return vocabulary.scores[a] > vocabulary.scores[b]; });
  nlohmann::json merges = nlohmann::json::array();
  for (const std::size_t id : order) {
    const std::string& token = vocabulary.tokens[id];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if (normal.contains(token.substr(0, cut)) && normal.contains(token.substr(cut)))
        merges.push_back({token.substr(0, cut), token.substr(cut)});
    }
  }
  return merges;
}

inline nlohmann::json replaced_spaces() {
  return {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\xE2\x96\x81"}};
}

/// tokenizer.json of a vocabulary. `prefix`: a space is put before the text; SPM only.
inline nlohmann::json tokenizer_json(const KitVocabulary& v, bool prefix) {
  const bool spm = v.model == "llama";
  nlohmann::json vocab, added = nlohmann::json::array();
  std::string unknown;
  for (std::size_t id = 0; id < v.tokens.size(); ++id) {
    if (v.types[id] == 2) unknown = v.tokens[id];
    const bool is_added = v.types[id] == 3 || v.types[id] == 4;
    if (is_added) added.push_back({{"id", id}, {"content", v.tokens[id]}, {"special", v.types[id] == 3}});
    if (!is_added || spm) vocab[v.tokens[id]] = id;
  }
  nlohmann::json model = {{"type", "BPE"}, {"byte_fallback", spm}, {"vocab", vocab}};
  if (spm) {
    model["unk_token"] = unknown;
    model["merges"] = all_merges(v);
    const nlohmann::json with_prefix = {
        {"type", "Sequence"},
        {"normalizers", {{{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}}, replaced_spaces()}}};
    return {
        {"added_tokens", added}, {"normalizer", prefix ? with_prefix : replaced_spaces()}, {"model", model}};
  }
  model["merges"] = v.merges;
  model["ignore_merges"] = v.pre == "llama-bpe";
  const nlohmann::json split = {
      {"type", "Split"}, {"pattern", {{"Regex", published_expression(v.pre)}}}, {"behavior", "Isolated"}};
  const nlohmann::json bytes = {{"type", "ByteLevel"}, {"use_regex", false}};
  return {{"added_tokens", added},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", model}};
}

/// tokenizer_config.json: special tokens by name, and the flags.
inline nlohmann::json tokenizer_config(const gguf::Metadata& metadata) {
  const KitVocabulary v(metadata);
  nlohmann::json out;
  const std::map<std::string, std::string> names = {
      {"bos_token", "bos"}, {"eos_token", "eos"}, {"unk_token", "unknown"}, {"pad_token", "padding"}};
  for (const auto& [theirs, ours] : names) {
    const auto id = metadata.get<std::uint64_t>("tokenizer.ggml." + ours + "_token_id");
    if (id) out[theirs] = v.tokens[*id];
  }
  for (const std::string key : {"add_bos_token", "add_eos_token"}) {
    if (const auto flag = metadata.get<bool>("tokenizer.ggml." + key)) out[key] = *flag;
  }
  if (const auto text = metadata.get<std::string>("tokenizer.chat_template")) out["chat_template"] = *text;
  return out;
}

}  // namespace mica::test
