// SPDX-License-Identifier: Apache-2.0
//
// What the key post_processor of tokenizer.json puts around one text and between two.
#pragma once

#include "mica_tools/convert/json.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace mica::convert {

/// The special tokens around texts.
class PostProcessor {
 public:
  /// `tokenizer` is a parsed tokenizer.json; steps that add no tokens are passed over.
  explicit PostProcessor(const Json& tokenizer) {
    const Json* const processor = find_member(tokenizer, "post_processor");
    if (processor == nullptr) return;
    const Json* const list = find_member(*processor, "processors");
    if (list == nullptr || !list->is_array()) {
      read_step(*processor);
    } else {
      for (const Json& each : *list) read_step(each);
    }
  }

  /// Whether the text begins, or ends, with a special token; empty when the file does not say.
  [[nodiscard]] std::optional<bool> adds_special(bool at_end) const {
    if (!found_) return std::nullopt;
    return !(at_end ? last_ : first_).empty();
  }
  /// That token, as the file spells it; empty: there is none.
  [[nodiscard]] const std::string& special(bool at_end) const noexcept { return at_end ? last_ : first_; }
  /// Whether two tokens stand between two texts; empty when the file does not say.
  [[nodiscard]] std::optional<bool> adds_separator() const noexcept { return separator_; }

 private:
  void read_step(const Json& step) {
    const std::string type = member_text(step, "type");
    if (type == "TemplateProcessing") read_template(step);
    if (type != "RobertaProcessing" && type != "BertProcessing") return;
    found_ = true;
    first_ = named(step, "cls");
    last_ = named(step, "sep");
    separator_ = type == "RobertaProcessing";
  }
  void read_template(const Json& step) {
    const Json* const single = find_member(step, "single");
    if (single == nullptr || !single->is_array() || single->empty()) return;
    found_ = true;
    if (first_.empty()) first_ = special_of(single->front());
    if (last_.empty()) last_ = special_of(single->back());
    const Json* const pair = find_member(step, "pair");
    if (pair == nullptr || !pair->is_array()) return;
    std::size_t texts = 0, between = 0;
    for (const Json& piece : *pair) {
      const bool special = !special_of(piece).empty();
      texts += special ? 0 : 1;
      between += special && texts == 1 ? 1 : 0;
    }
    if (texts == 2) separator_ = between >= 2;
  }

  /// {"SpecialToken": {"id": "<s>", ...}}
  static std::string special_of(const Json& piece) {
    const Json* const special = find_member(piece, "SpecialToken");
    return special == nullptr ? std::string() : member_text(*special, "id");
  }
  /// "cls": ["<s>", 0]
  static std::string named(const Json& step, const char* key) {
    const Json* const pair = find_member(step, key);
    const bool fits = pair != nullptr && pair->is_array() && !pair->empty() && pair->front().is_string();
    return fits ? pair->front().get<std::string>() : std::string();
  }

  bool found_ = false;
  std::string first_, last_;
  std::optional<bool> separator_;
};

}  // namespace mica::convert
