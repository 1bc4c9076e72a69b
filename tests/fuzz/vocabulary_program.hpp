// SPDX-License-Identifier: Apache-2.0
//
// The front of an input as a vocabulary: a kind, options, and tokens with texts, scores and types. A complete
// one has a token for each byte, so that every text of it can be written.
#pragma once

#include "fuzz/input.hpp"
#include "mica/text/bpe.hpp"
#include "mica/text/tokenizer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fuzz {

/// The values of a VocabularySource, which views them.
struct VocabularyProgram {
  static constexpr std::array<std::string_view, 5> models = {"llama", "gpt2", "bert", "t5", "gemma4"};

  std::size_t model;
  bool complete;  // a token for each byte, and one for a space
  bool plain;     // all others are normal, of letters and U+2581 alone
  std::deque<std::string> texts, merged;
  std::vector<std::string_view> tokens, merges;
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  text::VocabularySource source;

  /// Any kind, or one that is given, of plain tokens.
  explicit VocabularyProgram(Input& input, std::optional<std::size_t> kind = {})
      : model(kind ? *kind : input.below(models.size())),
        complete(input.flag()),
        plain(kind || input.flag()) {
    source.model = models[model];
    add("<unk>", -1, 2);
    source.unknown = 0;
    if (complete) add_bytes();
    for (std::size_t n = input.below(40); n > 0; --n) add_token(input);
    for (std::size_t n = input.below(30); n > 0; --n) add_merge(input);
    set_options(input);
    source.tokens = {tokens.data(), tokens.size()};
    source.scores = {scores.data(), scores.size()};
    source.types = {types.data(), types.size()};
    source.merges = {merges.data(), merges.size()};
  }
  VocabularyProgram(const VocabularyProgram&) = delete;
  VocabularyProgram& operator=(const VocabularyProgram&) = delete;

 private:
  void add(std::string text, float score, std::int32_t type) {
    tokens.push_back(texts.emplace_back(std::move(text)));
    scores.push_back(score);
    types.push_back(type);
  }

  void add_bytes() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      char spelled[8];
      std::snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
      const char c = static_cast<char>(byte);
      std::string letter;
      text::append_spelled({&c, 1}, letter);
      const bool bpe = source.model == "gpt2";
      add(bpe ? letter : spelled, 0, bpe ? 1 : 6);
    }
    if (source.model != "gpt2") add("\xE2\x96\x81", -20, 1);  // a space, as every vocabulary has it
  }

  /// Scores are multiples of 1/8, whose sums are exact.
  void add_token(Input& input) {
    const float score = static_cast<float>(input.number<std::int8_t>()) / 8;
    const std::int32_t type = plain ? 1 : static_cast<std::int32_t>(input.below(8));
    std::string text;
    const std::size_t size = input.below(plain ? 8 : 24);
    for (std::size_t i = 0; i < size && plain; ++i) text += letter(input.byte());
    if (!plain) text = input.text(size);
    add(std::move(text), score, type);
  }
  void add_merge(Input& input) {
    const auto side = [&] { return tokens[input.below(tokens.size())]; };
    const std::string_view left = side(), right = side();
    merges.push_back(merged.emplace_back(join(left, " ", right)));
    if (input.flag()) add(join(left, right), 0, 1);
  }
  [[nodiscard]] static std::string letter(std::uint8_t byte) {
    return byte % 8 == 7 ? "\xE2\x96\x81" : std::string(1, static_cast<char>('a' + byte % 8));
  }

  void set_options(Input& input) {
    static constexpr std::array<std::string_view, 8> pres = {
        "gpt-2", "llama-bpe", "qwen2", "deepseek-llm", "deepseek-v3", "gpt-4o", "default", "tekken"};
    source.pre = pres[input.below(pres.size())];
    const std::uint8_t options = input.byte();
    const auto option = [&](unsigned bit) { return (options >> bit & 1U) != 0; };
    if (option(0)) source.add_space_prefix = option(1);
    source.remove_extra_spaces = option(2);
    source.lower_case = option(3);
    source.strip_accents = option(4);
    if (plain) return;
    if (option(5)) source.bos = input.byte();
    if (option(6)) source.eos = input.byte();
    if (option(7)) source.name = "phi-3";
  }
};

}  // namespace mica::fuzz
