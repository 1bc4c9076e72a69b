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
#include "mica_tools/embed/text_tokens.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica {

struct TextEmbedderOptions {
  EmbedderOptions rows = {};  // how states become a row
  bool truncate = false;      // long texts lose their last tokens; false: they are refused
};

namespace detail {

/// The caches of a step. Texts have no more tiles than the tokens of the step fill, and of a decoder, one may
/// have been read in part before. Where storages take memory for more than a tile at a time, each text has
/// some, and those beside the longest one share what is left of the step.
[[nodiscard]] inline plan::Sequences texts_of_step(const OpenOptions& open, bool encodes, std::size_t longest,
                                                   std::size_t texts) {
  const auto in_tiles = [](std::size_t tokens) { return round_up<std::size_t>(tokens, format::tile_tokens); };
  const std::size_t step = in_tiles(open.chunk);
  if (open.choice.kv == kv::Choice::paged) return {texts, step, encodes ? step : step + in_tiles(longest)};
  const std::size_t left = encodes ? open.chunk - std::min(open.chunk, longest) : open.chunk;
  const std::size_t others = std::max<std::size_t>(texts, 2) - 1;
  return {texts, in_tiles(std::max<std::size_t>(1, ceil_div(left, others)))};
}

}  // namespace detail

/// Options of open() for a model that embeds up to `texts` texts in a step: steps that hold whole texts, and
/// keys and values in pages, so that many short texts take little. Those of an encoder, which live for one
/// layer, are F32, with fast8 Q8_0. Other choices than the defaults stay.
[[nodiscard]] inline OpenOptions embedding_options(OpenOptions open, const arch::Config& config,
                                                   std::size_t texts = EmbedderOptions().texts) {
  const std::size_t longest = open.n_ctx == 0 ? config.n_ctx_train : open.n_ctx;
  if (config.encodes) open.chunk = std::max(open.chunk, longest);
  if (open.choice.kv == kv::Choice::segmented) open.choice.kv = kv::Choice::paged;
  for (kv::ElementChoice* const element : {&open.choice.cache_type_k, &open.choice.cache_type_v})
    if (config.encodes && *element == kv::ElementChoice())
      *element = open.choice.fast8 ? kv::Element::q8_0 : kv::Element::f32;
  open.sequences = detail::texts_of_step(open, config.encodes, longest, texts);
  return open;
}

/// One row of numbers for each text, in their order.
struct Rows {
  std::vector<float> numbers;       // (texts, width)
  std::size_t width = 0;            // of a row
  std::vector<std::size_t> tokens;  // of each text, special ones among them
  bool complete = true;             // false: it was cancelled, and some rows are zeros

  [[nodiscard]] std::span<const float> operator[](std::size_t i) const noexcept {
    return std::span(numbers).subspan(i * width, width);
  }
  [[nodiscard]] std::size_t all_tokens() const noexcept {
    std::size_t sum = 0;
    for (const std::size_t n : tokens) sum += n;
    return sum;
  }
};

/// Embeds and ranks. One thread at a time, with no other work of the model in between.
template <class Families, class Formats>
class BasicTextEmbedder {
 public:
  using Model = BasicModel<Families, Formats>;

  /// The model outlives it. Raises what Embedder raises.
  explicit BasicTextEmbedder(Model& model, const TextEmbedderOptions& options = {})
      : model_(&model),
        truncates_(options.truncate),
        embedder_(model.transformer(), options.rows),
        tokens_(model.tokenizer(), model.document().metadata(), embedder_.max_tokens()) {}

  [[nodiscard]] std::size_t width() const noexcept { return embedder_.width(); }  // of a row
  [[nodiscard]] bool ranks() const noexcept { return embedder_.ranks(); }  // a reranker: rows are scores
  [[nodiscard]] std::size_t max_tokens() const noexcept { return embedder_.max_tokens(); }  // of a text

  /// The tokens of a text as the model reads it. Raises ErrorCode::usage for a text without tokens (an empty
  /// one, where the model adds no special tokens), ErrorCode::limit for one that is too long, naming it `name`.
  [[nodiscard]] std::vector<TokenId> tokens(std::string_view text, TextUse use = TextUse::any,
                                            std::string_view name = "the text") const {
    return tokens_.of_text(text, use, truncates_, name);
  }
  /// The same of a query and a document, for a reranker. Where both are too long together, the document loses
  /// its last tokens.
  [[nodiscard]] std::vector<TokenId> pair_tokens(std::string_view query, std::string_view document,
                                                 std::string_view name = "the document") const {
    return tokens_.of_pair(query, document, truncates_, name);
  }
  /// The number of tokens of a text, also where the text is too long.
  [[nodiscard]] std::size_t count(std::string_view text, TextUse use = TextUse::any) const {
    return tokens_.count(text, use);
  }
  /// What stands before texts of that use; empty: nothing.
  [[nodiscard]] const std::string& prefix(TextUse use) const noexcept { return tokens_.prefix(use); }

  /// Embeddings of texts. Raises for a text what tokens() raises, naming its number from 1 on;
  /// ErrorCode::usage for a reranker; ErrorCode::budget or failed when a step ends so.
  [[nodiscard]] Rows embed(std::span<const std::string> texts, TextUse use = TextUse::any) {
    return embed_tokens(tokens_of(texts, use));
  }
  /// What embed() reads of these texts, of which the first is text `first` + 1 in errors. Raises as it does.
  [[nodiscard]] std::vector<std::vector<TokenId>> tokens_of(std::span<const std::string> texts,
                                                            TextUse use = TextUse::any,
                                                            std::size_t first = 0) const {
    MICA_CHECK(!ranks(), usage, "the model is a reranker: it scores pairs of a query and a document");
    std::vector<std::vector<TokenId>> all;
    for (const std::string& text : texts)
      all.push_back(tokens(text, use, join("text ", first + all.size() + 1)));
    return all;
  }
  /// The relevance of each document for the query: a larger score is better. A reranker scores pairs, other
  /// models multiply embeddings. Empty where it was cancelled.
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
    if (!rows.complete) return {};
    std::vector<float> scores(documents.size());
    for (std::size_t i = 0; i < documents.size(); ++i)
      scores[i] = ranks() ? rows[i][0] : dot_product(rows[0], rows[i + 1]);
    return scores;
  }
  /// Tokens that the last rank() read.
  [[nodiscard]] std::size_t ranked_tokens() const noexcept { return read_; }

  /// Rows of texts that are tokens already, each [1, max_tokens()].
  [[nodiscard]] Rows embed_tokens(std::span<const std::vector<TokenId>> texts) {
    Rows rows{std::vector<float>(texts.size() * width()), width(), {}, true};
    std::vector<std::span<const TokenId>> spans;
    for (const std::vector<TokenId>& text : texts) {
      for (const TokenId id : text) {
        MICA_CHECK(id < model_->config().n_vocab, usage, "token ", id, " is outside the vocabulary of ",
                   model_->config().n_vocab);
      }
      MICA_CHECK(!text.empty(), usage, "a text has no tokens");
      MICA_CHECK(text.size() <= max_tokens(), limit, "a text has ", text.size(),
                 " tokens; allowed: ", max_tokens());
      spans.emplace_back(text.data(), text.size());
      rows.tokens.push_back(text.size());
    }
    const model::StepStatus status = embedder_.embed(spans, {rows.numbers.data(), texts.size(), rows.width});
    MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
    MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
    rows.complete = embedder_.complete();
    return rows;
  }

 private:
  Model* model_;
  bool truncates_;
  Embedder<AnyModel> embedder_;
  TextTokens tokens_;
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
