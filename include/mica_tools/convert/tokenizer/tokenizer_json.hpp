// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies of tokenizer.json: byte-level BPE, BPE in the manner of SentencePiece, which falls back to
// bytes and writes a space as U+2581, WordPiece and Unigram. Others are refused by name.
#pragma once

#include "mica_tools/convert/tokenizer/post_processor.hpp"
#include "mica_tools/convert/tokenizer/pretokenizer_match.hpp"
#include "mica_tools/convert/tokenizer/unigram.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"
#include "mica_tools/convert/tokenizer/wordpiece.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mica::convert {

/// A parsed tokenizer.json.
class TokenizerJson {
 public:
  /// Raises ErrorCode::unsupported for a model of another kind, naming it; file for one that is damaged.
  TokenizerJson(const Json& json, std::string file) : json_(json), file_(std::move(file)), around_(json) {
    model_ = find_member(json_, "model");
    MICA_CHECK(model_ != nullptr && model_->is_object(), file, file_, ": key 'model' is missing");
    const std::string type = member_text(*model_, "type");
    wordpiece_ = type == "WordPiece";
    unigram_ = type == "Unigram";
    if (wordpiece_ || unigram_) return;
    const bool bpe = type == "BPE" || (type.empty() && find_member(*model_, "merges") != nullptr);
    MICA_CHECK(bpe, unsupported, file_, ": a tokenizer of the kind '", escaped(type),
               "'; supported: BPE, WordPiece, Unigram");
    const bool bytes = mentions(find_member(json_, "pre_tokenizer"), "ByteLevel") ||
                       mentions(find_member(json_, "decoder"), "ByteLevel");
    spm_ = !bytes && member_flag(*model_, "byte_fallback").value_or(false);
    MICA_CHECK(bytes || spm_, unsupported, file_,
               ": a BPE that is neither byte-level nor falls back to bytes; it has no tokens for unknown "
               "characters");
  }

  /// Whether it is a BPE in the manner of SentencePiece.
  [[nodiscard]] bool is_spm() const noexcept { return spm_; }
  [[nodiscard]] bool is_unigram() const noexcept { return unigram_; }

  /// The vocabulary without special ids. `family` is tokenizer.ggml.model where a family has its own.
  /// Raises ErrorCode::unsupported for an unknown pre-tokenizer, file for ids that do not fit.
  [[nodiscard]] VocabularyData read(std::uint64_t n_vocab, std::string_view family,
                                    std::optional<bool> tidies_spaces) const {
    if (wordpiece_) return read_wordpiece(n_vocab);
    if (unigram_) return read_unigram(n_vocab);
    VocabularyData out;
    out.model = !spm_ ? "gpt2" : family.empty() ? "llama" : std::string(family);
    out.pre = "default";
    if (!spm_) {
      const Json* const step = find_member(json_, "pre_tokenizer");
      MICA_CHECK(step != nullptr, unsupported, file_, ": there is no pre_tokenizer; text would be one word");
      out.pre = match_pretokenizer(
          *step, {member_flag(*model_, "ignore_merges").value_or(false), tidies_spaces}, file_);
    }
    read_tokens(n_vocab, out);
    if (out.model != "llama") read_merges(out);
    if (spm_) read_scores(out);
    place_added_tokens(added(), n_vocab, out);
    out.add_space_prefix = add_space_prefix();
    return out;
  }

  /// Whether a BPE in the manner of SentencePiece puts a space before the text; empty when the file does not
  /// say.
  [[nodiscard]] std::optional<bool> add_space_prefix() const {
    if (!spm_) return std::nullopt;
    const Json* const normalizer = find_member(json_, "normalizer");
    if (mentions(normalizer, "Prepend")) return true;
    const Json* const pre = find_member(json_, "pre_tokenizer");
    if (pre == nullptr || member_text(*pre, "type") != "Metaspace")
      return normalizer != nullptr ? std::optional(false) : std::nullopt;
    const std::string scheme = member_text(*pre, "prepend_scheme");
    return scheme.empty() ? member_flag(*pre, "add_prefix_space").value_or(true) : scheme != "never";
  }
  /// The special tokens around texts.
  [[nodiscard]] const PostProcessor& around() const noexcept { return around_; }
  /// Those of the key added_tokens. Raises ErrorCode::file for one without an id or a text.
  [[nodiscard]] std::vector<AddedToken> added() const { return added_tokens(json_, file_); }

 private:
  [[nodiscard]] VocabularyData read_wordpiece(std::uint64_t n_vocab) const {
    VocabularyData out;
    out.model = "bert";
    out.pre = "default";
    read_wordpiece_options(json_, *model_, file_, out);
    read_tokens(n_vocab, out);
    place_added_tokens(added(), n_vocab, out);
    mark_word_starts(out);
    return out;
  }
  [[nodiscard]] VocabularyData read_unigram(std::uint64_t n_vocab) const {
    VocabularyData out;
    out.model = "t5";
    out.pre = "default";
    read_unigram_options(json_, file_, out);
    read_unigram_tokens(*model_, file_, n_vocab, out);
    place_added_tokens(added(), n_vocab, out);
    return out;
  }

  void read_tokens(std::uint64_t n_vocab, VocabularyData& out) const {
    const Json* const vocab = find_member(*model_, "vocab");
    MICA_CHECK(vocab != nullptr && vocab->is_object() && !vocab->empty(), file, file_,
               ": key 'vocab' is missing");
    const std::string unknown = member_text(*model_, "unk_token");
    for (const auto& [text, id] : vocab->items()) {
      MICA_CHECK(id.is_number_unsigned() && id.get<std::uint64_t>() < VocabularyData::max_tokens, file, file_,
                 ": token '", escaped(text), "' has no id below ", VocabularyData::max_tokens);
      const auto at = id.get<std::uint64_t>();
      if (at >= n_vocab) {
        out.notes.push_back(
            join("token ", at, " '", escaped(text), "' is left out: the embedding has ", n_vocab, " rows"));
        continue;
      }
      VocabularyToken& token = out.at(at);
      MICA_CHECK(token.type == text::TokenType::unused, file, file_, ": tokens '", escaped(token.text),
                 "' and '", escaped(text), "' have the same id ", at);
      const bool byte = spm_ && text.size() == 6 && text.starts_with("<0x") && text.back() == '>';
      token.text = text;
      token.type = byte ? text::TokenType::byte : text::TokenType::normal;
      if (!unknown.empty() && text == unknown) {
        token.type = text::TokenType::unknown;
        out.unknown = at;
      }
    }
  }

  void read_merges(VocabularyData& out) const {
    const Json* const merges = find_member(*model_, "merges");
    MICA_CHECK(merges != nullptr && merges->is_array(), file, file_, ": key 'merges' is missing");
    out.merges.reserve(merges->size());
    for (const Json& merge : *merges) {
      std::string pair;  // with one space, which separates the two
      if (merge.is_string()) {
        pair = merge.get<std::string>();
      } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
        for (const Json& part : merge)
          pair += join(pair.empty() ? "" : " ", detail::replaced(part.get<std::string>(), " ", "\xC4\xA0"));
      }
      const std::size_t space = pair.find(' ');
      MICA_CHECK(space != pair.npos && space == pair.rfind(' ') && space != 0 && space + 1 != pair.size(),
                 file, file_, ": merge ", out.merges.size(),
                 " is no pair of texts: ", escaped(merge.dump(), 60));
      out.merges.push_back(std::move(pair));
    }
  }

  /// SentencePiece merges the pair whose result has the best score. Published files are numbered in that
  /// order, so the score is -id; where merges are in another order, it is -rank of the first merge that makes
  /// the token.
  void read_scores(VocabularyData& out) const {
    out.scored = true;
    for (std::size_t id = 0; id < out.tokens.size(); ++id) {
      VocabularyToken& token = out.tokens[id];
      if (token.type != text::TokenType::unused)
        token.score = token.type == text::TokenType::normal ? -static_cast<float>(id) : 0.0F;
    }
    VocabularyData ranked;
    read_merges(ranked);
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t id = 0; id < out.tokens.size(); ++id) ids.emplace(out.tokens[id].text, id);
    std::vector<std::size_t> results;
    for (std::string& merge : ranked.merges) {
      const std::size_t space = merge.find(' ', 1);
      if (space != merge.npos) merge.erase(space, 1);
      const auto found = ids.find(merge);
      if (found != ids.end()) results.push_back(found->second);
    }
    if (std::is_sorted(results.begin(), results.end())) return;
    const auto max = static_cast<float>(results.size());
    for (VocabularyToken& token : out.tokens) {
      if (token.type == text::TokenType::normal) token.score = -max;
    }
    for (std::size_t rank = results.size(); rank-- > 0;)
      out.tokens[results[rank]].score = -static_cast<float>(rank);
    out.notes.emplace_back("scores follow the merges, whose order is not that of the ids");
  }

  [[nodiscard]] static bool mentions(const Json* step, std::string_view type) {
    if (step == nullptr) return false;
    if (member_text(*step, "type") == type) return true;
    for (const char* list : {"pretokenizers", "decoders", "normalizers", "processors"}) {
      const Json* const steps = find_member(*step, list);
      if (steps == nullptr || !steps->is_array()) continue;
      for (const Json& each : *steps) {
        if (mentions(&each, type)) return true;
      }
    }
    return false;
  }

  const Json& json_;
  const Json* model_ = nullptr;
  std::string file_;
  PostProcessor around_;
  bool spm_ = false, wordpiece_ = false, unigram_ = false;
};

}  // namespace mica::convert
