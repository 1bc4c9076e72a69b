// SPDX-License-Identifier: Apache-2.0
//
// Texts of an embedding model, and pairs of a reranker, as tokens: with the prefixes that the model was
// trained with, and cut to the tokens that it reads. Not here: the model itself (embed/text_embedder.hpp).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/token_id.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/text/token_pair.hpp"
#include "mica/text/tokenizer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

/// What a text is used for. A model that was trained with prefixes has one for each.
enum class TextUse : std::uint8_t { any, query, document };

/// Keys of a file with the prefixes of TextUse::query and TextUse::document. They are mica's own.
inline constexpr std::string_view query_prefix_key = "mica.prefix.query";
inline constexpr std::string_view document_prefix_key = "mica.prefix.document";
/// The key with the text of a pair for a reranker that is a decoder: {query} and {document} are replaced.
inline constexpr std::string_view rerank_template_key = "tokenizer.chat_template.rerank";

/// Immutable: any number of threads.
class TextTokens {
 public:
  /// The tokenizer outlives it. max_tokens: of a text, with its special tokens.
  TextTokens(const text::AnyTokenizer& tokenizer, const gguf::Metadata& metadata, std::size_t max_tokens)
      : tokenizer_(&tokenizer), max_tokens_(max_tokens) {
    const auto text = [&](std::string_view key) {
      return std::string(metadata.get<std::string_view>(key).value_or(""));
    };
    prefixes_[static_cast<std::size_t>(TextUse::query)] = text(query_prefix_key);
    prefixes_[static_cast<std::size_t>(TextUse::document)] = text(document_prefix_key);
    pair_text_ = text(rerank_template_key);
  }

  [[nodiscard]] std::size_t max_tokens() const noexcept { return max_tokens_; }

  /// The tokens of a text as the model reads it. truncate: a long one loses its last tokens. Raises
  /// ErrorCode::usage for a text without tokens, ErrorCode::limit for one that is too long, naming it `name`.
  [[nodiscard]] std::vector<TokenId> of_text(std::string_view text, TextUse use, bool truncate,
                                             std::string_view name) const {
    return fitted(encoded(text, use), truncate, name);
  }
  /// The same of a query and a document, for a reranker. Where both are too long together, the document loses
  /// its last tokens; raises ErrorCode::limit where the query alone is too long.
  [[nodiscard]] std::vector<TokenId> of_pair(std::string_view query, std::string_view document, bool truncate,
                                             std::string_view name) const {
    if (!pair_text_.empty()) return of_filled(query, document, truncate, name);
    const text::Vocabulary& vocabulary = tokenizer_->vocabulary();
    const auto plain = [&](std::string_view text) {
      return tokenizer_->encode(text, {.add_special = false});
    };
    const std::vector<TokenId> first = plain(query), second = plain(document);
    auto ids = text::join_pair(vocabulary, first, second).ids;
    if (ids.size() <= max_tokens_ || !truncate) return fitted(std::move(ids), truncate, name);
    const std::size_t surplus = ids.size() - max_tokens_;
    MICA_CHECK(surplus <= second.size(), limit, "the query has ", first.size(), " tokens; with ", name,
               " at most ", max_tokens_, " are read");
    return text::join_pair(vocabulary, first, std::span(second).first(second.size() - surplus)).ids;
  }
  /// The number of tokens of a text, also where the text is too long.
  [[nodiscard]] std::size_t count(std::string_view text, TextUse use) const {
    return encoded(text, use).size();
  }
  /// What stands before texts of that use; empty: nothing.
  [[nodiscard]] const std::string& prefix(TextUse use) const noexcept {
    return prefixes_[static_cast<std::size_t>(use)];
  }

 private:
  [[nodiscard]] std::vector<TokenId> encoded(std::string_view text, TextUse use) const {
    return tokenizer_->encode(prefix(use).empty() ? std::string(text) : join(prefix(use), text));
  }
  [[nodiscard]] std::vector<TokenId> fitted(std::vector<TokenId> ids, bool truncate,
                                            std::string_view name) const {
    MICA_CHECK(!ids.empty(), usage, name, " is empty");
    MICA_CHECK(truncate || ids.size() <= max_tokens_, limit, name, " is too large: it has ", ids.size(),
               " tokens, and ", max_tokens_, " are read at most; shorten it, or let it be truncated");
    if (ids.size() <= max_tokens_) return ids;
    const bool ends = tokenizer_->vocabulary().add_eos();
    const TokenId end = ids.back();
    ids.resize(max_tokens_);
    if (ends) ids.back() = end;
    return ids;
  }
  /// The tokens of a pair in its template. The end of the template is what the model answers to, so a document
  /// that is too long is cut behind its last character that fits. Cost: about twice the tokens of the document.
  [[nodiscard]] std::vector<TokenId> of_filled(std::string_view query, std::string_view document,
                                               bool truncate, std::string_view name) const {
    const auto tokens = [&](std::size_t bytes) {
      const Filled pair = filled(query, document.substr(0, bytes));
      return tokenizer_->encode(pair.text, {.parse_special = true, .literal = pair.literal});
    };
    std::vector<TokenId> all = tokens(document.size());
    if (all.size() <= max_tokens_ || !truncate) return fitted(std::move(all), truncate, name);
    std::vector<TokenId> best = tokens(0);
    MICA_CHECK(best.size() <= max_tokens_, limit, "the query has too many tokens: with its template ",
               best.size(), "; with ", name, " at most ", max_tokens_, " are read");
    std::vector<std::size_t> ends;  // where characters end
    for (std::size_t i = 1; i < document.size(); ++i) {
      if ((static_cast<unsigned char>(document[i]) & 0xC0U) != 0x80U) ends.push_back(i);
    }
    std::size_t fits = 0, too_long = ends.size() + 1;  // characters
    while (fits + 1 < too_long) {
      const std::size_t middle = fits + (too_long - fits) / 2;
      std::vector<TokenId> now = tokens(ends[middle - 1]);
      const bool small = now.size() <= max_tokens_;
      (small ? fits : too_long) = middle;
      if (small) best = std::move(now);
    }
    return best;
  }
  /// The text of a pair, and the places in it that the caller wrote: no control token begins there.
  struct Filled {
    std::string text;
    std::vector<std::size_t> literal;

    void append_literal(std::string_view part) {
      for (std::size_t i = 0; i < part.size(); ++i) literal.push_back(text.size() + i);
      text.append(part);
    }
  };
  [[nodiscard]] Filled filled(std::string_view query, std::string_view document) const {
    Filled out;
    for (std::string_view rest = pair_text_; !rest.empty();) {
      const auto takes = [&](std::string_view word, std::string_view value) {
        if (!rest.starts_with(word)) return false;
        out.append_literal(value);
        rest.remove_prefix(word.size());
        return true;
      };
      if (takes("{query}", query) || takes("{document}", document)) continue;
      const std::size_t brace = std::min(rest.find('{', 1), rest.size());
      out.text.append(rest.substr(0, brace));
      rest.remove_prefix(brace);
    }
    return out;
  }

  const text::AnyTokenizer* tokenizer_;
  std::size_t max_tokens_;
  std::string prefixes_[3];
  std::string pair_text_;
};

/// The relevance of a document for a query by their embeddings: their dot product, a larger one is better.
[[nodiscard]] inline float dot_product(std::span<const float> a, std::span<const float> b) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return static_cast<float>(sum);
}

}  // namespace mica
