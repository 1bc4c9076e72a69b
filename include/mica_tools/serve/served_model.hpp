// SPDX-License-Identifier: Apache-2.0
//
// The part of a loaded model that any thread may use: its texts become tokens where the request is read, so
// that the thread that computes does nothing else.
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/constraint/token_trie.hpp"
#include "mica_tools/calls/template_calls.hpp"
#include "mica_tools/chat/message.hpp"
#include "mica_tools/embed/text_tokens.hpp"
#include "mica_tools/serve/job.hpp"
#include "mica_tools/serve/refusal.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::serve {

/// A conversation that is to be answered.
struct Conversation {
  std::vector<text::Message> messages;  // in order
  std::optional<bool> thinking = {};    // empty: the template decides
  std::string variables = {};           // of the template, as a JSON object; empty: none
  std::string tools = {};               // a JSON array, as OpenAI describes tools; empty: none
  bool continues = false;               // the last message is the beginning of the answer
};

/// How a model writes calls of tools.
struct ServedCalls {
  /// A control or user-defined token that is a mark of calls or thoughts.
  struct Mark {
    std::string text;
    TokenId id;
    bool is_end;  // of answers
  };
  calls::TemplateCalls its;
  std::vector<Mark> marks;  // by ascending id
};

/// What clients want to know about a model.
struct ModelCard {
  std::string id;                  // the name that requests use
  std::string path;                // of its file
  std::string architecture = {};   // general.architecture
  std::string quantisation = {};   // "Q4_K_M"
  std::uint64_t file_bytes = 0;    // of all its shards
  std::uint64_t parameters = 0;    // weights in all
  std::size_t trained_ctx = 0;     // tokens
  std::size_t n_ctx = 0;           // of each answer; 0: not loaded
  std::size_t n_vocab = 0;         // 0: not loaded
  std::size_t n_embd = 0;          // 0: not loaded
  std::int64_t modified = 0;       // of the file, seconds since 1970
  std::string chat_template = {};  // its source, or the name of a built-in format; empty: not loaded
  std::string bos = {};            // the text of this token
  std::string eos = {};            // and of this one
  bool loaded = false;             // at the moment of the call
  bool writes = true;              // answers; false: a text encoder, which embeds texts and nothing else
  bool embeds = false;             // its file says how the states of a text become an embedding
  bool ranks = false;              // a reranker: it scores pairs of a query and a document
  std::uint64_t memory_bytes = 0;  // of its weights, and of keys, values and states; 0: not loaded
  std::optional<std::int64_t> unload_at = {};  // seconds since 1970; empty: when memory is needed
};

/// Raises Refusal (option) for a model that writes no answers.
inline void require_writer(const ModelCard& card) {
  if (card.writes) return;
  Refusal refusal(Cause::option, join("model '", card.id, "' is a text encoder: it ",
                                      card.ranks ? "ranks documents" : "embeds texts", ", and writes none"));
  refusal.field = "model";
  throw refusal;
}

/// A loaded model. Immutable: any number of threads.
class ServedModel {
 public:
  virtual ~ServedModel() = default;

  /// As it was when it was loaded.
  [[nodiscard]] virtual const ModelCard& card() const noexcept = 0;
  /// The conversation, rendered by the chat template, with the beginning of the next answer. Raises Refusal
  /// (invalid) for what the template refuses and for no message.
  [[nodiscard]] virtual Prompt prompt(const Conversation& conversation) const = 0;
  /// The same as text, before it becomes tokens.
  [[nodiscard]] virtual std::string rendered(const Conversation& conversation) const = 0;
  /// A text as tokens. special: control tokens in the text become tokens; begin: with BOS where the model has
  /// it.
  [[nodiscard]] virtual std::vector<TokenId> encode(std::string_view text, bool begin,
                                                    bool special) const = 0;
  /// Tokens as text. Raises Refusal (invalid) for an id outside the vocabulary.
  [[nodiscard]] virtual std::string decode(std::span<const TokenId> tokens) const = 0;
  /// The bytes of one token, which may end within a character. Raises as decode().
  [[nodiscard]] virtual std::string piece(TokenId token) const = 0;
  /// The vocabulary as constraints need it. The first call makes it, in about 0.2 s for 128,000 tokens; call
  /// it where a request with a constraint is read. It is used only while the model is in memory.
  [[nodiscard]] virtual std::shared_ptr<const constraint::TokenTrie> tokens() const = 0;
  /// How the model writes calls. The first access takes about 20 ms.
  [[nodiscard]] virtual const ServedCalls& calls() const = 0;

  // For Job::embed
  /// Tokens of the longest text.
  [[nodiscard]] virtual std::size_t max_text_tokens() const noexcept = 0;
  /// A text, or a query and a document for a reranker, as the model reads them; of TextTokens. truncate: long
  /// ones lose their last tokens. Raises Refusal (invalid) for none or one that is too long, naming it
  /// `name`.
  [[nodiscard]] virtual std::vector<TokenId> text_tokens(std::string_view text, TextUse use, bool truncate,
                                                         std::string_view name) const = 0;
  [[nodiscard]] virtual std::vector<TokenId> pair_tokens(std::string_view query, std::string_view document,
                                                         bool truncate, std::string_view name) const = 0;
  /// Numbers of a row. Raises Refusal (invalid) for options that the model does not have.
  [[nodiscard]] virtual std::size_t row_width(const RowOptions& options) const = 0;
};

}  // namespace mica::serve
