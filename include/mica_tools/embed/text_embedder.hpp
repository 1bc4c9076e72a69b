// SPDX-License-Identifier: Apache-2.0
//
// Texts become embeddings, and pairs of a query and a document become scores, with one open model:
//
//   auto model = mica::open_embedder("minilm.gguf");
//   mica::TextEmbedder embedder(model);
//   auto rows = embedder.embed({{"a cat", "a dog"}});   // (2, embedder.width())
//
// Prefixes for queries and documents come from the file, where its model was trained with some.
#pragma once

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/error.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica/runtime/open.hpp"
#include "mica/text/token_pair.hpp"

#include <algorithm>
#include <atomic>
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

struct TextEmbedderOptions {
  EmbedderOptions rows = {};  // how states become a row
  bool truncate = false;      // long texts lose their last tokens; false: they are refused
};

/// Options of open() for a model that embeds up to `texts` texts in a step: steps that hold whole texts, and
/// keys and values in pages, so that many short texts take little. Those of an encoder, which live for one
/// layer, are F32. Other choices than the defaults stay.
[[nodiscard]] inline OpenOptions embedding_options(OpenOptions open, const arch::Config& config,
                                                   std::size_t texts = EmbedderOptions().texts) {
  const std::size_t longest = open.n_ctx == 0 ? config.n_ctx_train : open.n_ctx;
  if (config.encodes) open.chunk = std::max(open.chunk, longest);
  if (open.choice.kv == kv::Choice::segmented) open.choice.kv = kv::Choice::paged;
  for (kv::ElementChoice* const element : {&open.choice.cache_type_k, &open.choice.cache_type_v})
    if (config.encodes && *element == kv::ElementChoice()) *element = kv::Element::f32;
  // All texts of a step but one are complete after it, so that they have no more than its tokens.
  const std::size_t others = config.encodes ? 1 : ceil_div(open.chunk, texts);
  open.sequences = {texts, round_up<std::size_t>(others, format::tile_tokens)};
  return open;
}

/// One row of numbers for each text, in their order.
struct Rows {
  std::vector<float> numbers;       // (texts, width)
  std::size_t width = 0;            // of a row
  std::vector<std::size_t> tokens;  // of each text, special ones among them

  [[nodiscard]] std::span<const float> operator[](std::size_t i) const noexcept {
    return std::span(numbers).subspan(i * width, width);
  }
  [[nodiscard]] std::size_t all_tokens() const noexcept {
    std::size_t sum = 0;
    for (const std::size_t n : tokens) sum += n;
    return sum;
  }
};

/// Keys of a file with the prefixes of TextUse::query and TextUse::document. They are mica's own.
inline constexpr std::string_view query_prefix_key = "mica.prefix.query";
inline constexpr std::string_view document_prefix_key = "mica.prefix.document";
/// The key with the text of a pair for a reranker that is a decoder: {query} and {document} are replaced.
inline constexpr std::string_view rerank_template_key = "tokenizer.chat_template.rerank";

/// Embeds and ranks. One thread at a time, with no other work of the model in between.
template <class Families, class Formats>
class BasicTextEmbedder {
 public:
  using Model = BasicModel<Families, Formats>;

  /// The model outlives it. Raises what Embedder raises.
  explicit BasicTextEmbedder(Model& model, const TextEmbedderOptions& options = {})
      : model_(&model), truncates_(options.truncate), embedder_(model.transformer(), options.rows) {
    const gguf::Metadata& metadata = model.document().metadata();
    const auto text = [&](std::string_view key) {
      return std::string(metadata.template get<std::string_view>(key).value_or(""));
    };
    prefixes_[static_cast<std::size_t>(TextUse::query)] = text(query_prefix_key);
    prefixes_[static_cast<std::size_t>(TextUse::document)] = text(document_prefix_key);
    pair_text_ = text(rerank_template_key);
  }

  [[nodiscard]] std::size_t width() const noexcept { return embedder_.width(); }  // of a row
  [[nodiscard]] bool ranks() const noexcept { return embedder_.ranks(); }  // a reranker: rows are scores
  [[nodiscard]] std::size_t max_tokens() const noexcept { return embedder_.max_tokens(); }  // of a text

  /// The tokens of a text as the model reads it. Raises ErrorCode::usage for no text or one that is too long,
  /// naming it `name`.
  [[nodiscard]] std::vector<TokenId> tokens(std::string_view text, TextUse use = TextUse::any,
                                            std::string_view name = "the text") const {
    return fitted(encoded(text, use), name);
  }
  /// The number of tokens of a text, also where the text is too long.
  [[nodiscard]] std::size_t count(std::string_view text, TextUse use = TextUse::any) const {
    return encoded(text, use).size();
  }
  /// What stands before texts of that use; empty: nothing.
  [[nodiscard]] const std::string& prefix(TextUse use) const noexcept {
    return prefixes_[static_cast<std::size_t>(use)];
  }
  /// The same of a query and a document, for a reranker. A document loses tokens before a query does.
  [[nodiscard]] std::vector<TokenId> pair_tokens(std::string_view query, std::string_view document,
                                                 std::string_view name = "the document") const {
    const text::AnyTokenizer& tokenizer = model_->tokenizer();
    if (!pair_text_.empty()) {
      const Filled pair = filled(query, document);
      return fitted(tokenizer.encode(pair.text, {.parse_special = true, .literal = pair.literal}), name);
    }
    const auto plain = [&](std::string_view text) { return tokenizer.encode(text, {.add_special = false}); };
    const std::vector<TokenId> first = plain(query), second = plain(document);
    auto ids = text::join_pair(tokenizer.vocabulary(), first, second).ids;
    if (ids.size() <= max_tokens() || !truncates_) return fitted(std::move(ids), name);
    const std::size_t surplus = ids.size() - max_tokens();
    MICA_CHECK(surplus <= second.size(), usage, "the query has ", first.size(), " tokens; with ", name,
               " at most ", max_tokens(), " are read");
    return text::join_pair(tokenizer.vocabulary(), first, std::span(second).first(second.size() - surplus))
        .ids;
  }

  /// Embeddings of texts. Raises ErrorCode::usage for a text as tokens() does, naming its number from 1 on,
  /// and for a reranker; ErrorCode::budget or failed when a step ends so.
  [[nodiscard]] Rows embed(std::span<const std::string> texts, TextUse use = TextUse::any) {
    MICA_CHECK(!ranks(), usage, "the model is a reranker: it scores pairs of a query and a document");
    std::vector<std::vector<TokenId>> all;
    for (std::size_t i = 0; i < texts.size(); ++i) all.push_back(tokens(texts[i], use, join("text ", i + 1)));
    return embed_tokens(all);
  }
  /// The relevance of each document for the query: a larger score is better. A reranker scores pairs, other
  /// models multiply embeddings.
  [[nodiscard]] std::vector<float> rank(std::string_view query, std::span<const std::string> documents) {
    std::vector<std::vector<TokenId>> all;
    const auto name = [](std::size_t i) { return join("document ", i + 1); };
    if (!ranks()) all.push_back(tokens(query, TextUse::query, "the query"));
    for (std::size_t i = 0; i < documents.size(); ++i) {
      all.push_back(ranks() ? pair_tokens(query, documents[i], name(i))
                            : tokens(documents[i], TextUse::document, name(i)));
    }
    const Rows rows = embed_tokens(all);
    read_ = rows.all_tokens();
    std::vector<float> scores(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i)
      scores[i] = ranks() ? rows[i][0] : product(rows[0], rows[i + 1]);
    return scores;
  }
  /// Tokens that the last rank() read.
  [[nodiscard]] std::size_t ranked_tokens() const noexcept { return read_; }

  /// Rows of texts that are tokens already, each [1, max_tokens()].
  [[nodiscard]] Rows embed_tokens(std::span<const std::vector<TokenId>> texts) {
    Rows rows{std::vector<float>(texts.size() * width()), width(), {}};
    std::vector<std::span<const TokenId>> spans;
    for (const std::vector<TokenId>& text : texts) {
      for (const TokenId id : text) {
        MICA_CHECK(id < model_->config().n_vocab, usage, "token ", id, " is outside the vocabulary of ",
                   model_->config().n_vocab);
      }
      MICA_CHECK(!text.empty() && text.size() <= max_tokens(), usage, "a text has ", text.size(),
                 " tokens; allowed: 1 to ", max_tokens());
      spans.emplace_back(text.data(), text.size());
      rows.tokens.push_back(text.size());
    }
    const model::StepStatus status = embedder_.embed(spans, {rows.numbers.data(), texts.size(), rows.width});
    MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
    MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
    return rows;
  }

 private:
  [[nodiscard]] std::vector<TokenId> encoded(std::string_view text, TextUse use) const {
    return model_->tokenizer().encode(prefix(use).empty() ? std::string(text) : join(prefix(use), text));
  }
  [[nodiscard]] std::vector<TokenId> fitted(std::vector<TokenId> ids, std::string_view name) const {
    MICA_CHECK(!ids.empty(), usage, name, " is empty");
    MICA_CHECK(truncates_ || ids.size() <= max_tokens(), usage, name, " has ", ids.size(), " tokens, and ",
               max_tokens(), " are read at most; shorten it, or let it be truncated");
    if (ids.size() <= max_tokens()) return ids;
    const bool ends = model_->tokenizer().vocabulary().add_eos();
    const TokenId end = ids.back();
    ids.resize(max_tokens());
    if (ends) ids.back() = end;
    return ids;
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
  [[nodiscard]] static float product(std::span<const float> a, std::span<const float> b) noexcept {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return static_cast<float>(sum);
  }

  Model* model_;
  bool truncates_;
  Embedder<AnyModel> embedder_;
  std::string prefixes_[3];
  std::string pair_text_;
  std::size_t read_ = 0;
};

/// Opens a file with embedding_options().
[[nodiscard]] inline Model open_embedder(std::string path, OpenOptions open = {},
                                         std::size_t texts = EmbedderOptions().texts) {
  gguf::Document document = gguf::open(std::move(path), format::table_with<format::All>());
  open = embedding_options(std::move(open), arch::AnyOf<arch::All>::config(document), texts);
  return {std::move(document), open};
}

/// For a model of any family.
using TextEmbedder = BasicTextEmbedder<arch::All, format::All>;

}  // namespace mica
