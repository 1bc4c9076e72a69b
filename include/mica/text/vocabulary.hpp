// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a model as its file spells them, checked once: texts, scores, types, merges, the special ids.
// Spm, Bpe, WordPiece and Unigram cut texts into them.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/text/detail/pretokenizer_rules.hpp"
#include "mica/text/detail/text_index.hpp"
#include "mica/text/detail/token_names.hpp"
#include "mica/text/token_id.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text {

/// The tokenizer.* values of a file: views of arrays of the caller, not copied and not checked. Absent arrays
/// are empty, absent numbers have no value.
struct VocabularySource {
  std::string_view model;                    // "llama" (SPM), "gpt2" (byte-level BPE), "bert" or "t5"
  std::string_view pre;                      // name of the pre-tokenizer, BPE only
  std::string_view name;                     // name of the whole model; some vocabularies are known by it
  std::span<const std::string_view> tokens;  // (n_tokens)
  std::span<const float> scores;             // (n_tokens) or empty
  std::span<const std::int32_t> types;       // (n_tokens) or empty: all normal
  std::span<const std::string_view> merges;  // "left right", best first
  std::string_view charsmap;                 // bytes as detail/charsmap.hpp reads them, Unigram only
  std::optional<std::uint64_t> bos;          // begins a text; 0xFFFFFFFF, here and below: none
  std::optional<std::uint64_t> eos;          // ends a text
  std::optional<std::uint64_t> eot;          // ends a turn
  std::optional<std::uint64_t> eom;          // ends a message
  std::optional<std::uint64_t> unknown;      // stands for bytes without a token
  std::optional<std::uint64_t> padding;      // fills batches of other programs
  std::optional<std::uint64_t> separator;    // stands between two texts; WordPiece: after every text
  std::optional<std::uint64_t> classifier;   // its output stands for the whole text; BOS of WordPiece
  std::optional<std::uint64_t> mask;         // stands for a token that a model is to guess
  std::optional<bool> add_bos;               // Vocabulary::add_bos(); empty: the default of its kind
  std::optional<bool> add_eos;               // the same of EOS; empty: with "t5" alone
  std::optional<bool> add_separator;         // Vocabulary::add_separator(); empty: the default of its kind
  std::optional<bool> add_space_prefix;      // a space before texts; empty: with "llama" alone
  std::optional<bool> remove_extra_spaces;   // Vocabulary::remove_extra_spaces(); empty: no
  std::optional<bool> lower_case;            // Vocabulary::lower_case(); empty: yes
  std::optional<bool> strip_accents;         // Vocabulary::strip_accents(); empty: as lower_case
};

/// Which algorithm cuts text into these tokens.
enum class TokenizerKind : std::uint8_t { spm, bpe, wordpiece, unigram };

/// The enumerator as text.
[[nodiscard]] constexpr std::string_view name(TokenizerKind kind) noexcept {
  constexpr std::string_view names[] = {"SPM", "BPE", "WordPiece", "Unigram"};
  return names[static_cast<std::size_t>(kind)];
}

/// Two neighbouring tokens and the one that replaces them.
struct Merge {
  TokenId left;    // no id here is no_token
  TokenId right;   // after `left`
  TokenId result;  // its text is that of both
};

/// The ids with a meaning of their own, each smaller than the number of tokens.
struct SpecialIds {
  std::optional<TokenId> bos;         // begins a text; empty, as those below: there is none
  std::optional<TokenId> eos;         // ends a text
  std::optional<TokenId> eot;         // ends a turn
  std::optional<TokenId> eom;         // ends a message
  std::optional<TokenId> unknown;     // stands for bytes without a token
  std::optional<TokenId> padding;     // fills batches of other programs
  std::optional<TokenId> separator;   // stands between two texts; of WordPiece it is EOS, too
  std::optional<TokenId> classifier;  // its output stands for the whole text; of WordPiece it is BOS, too
  std::optional<TokenId> mask;        // stands for a token that a model is to guess
};

/// Immutable: for any number of threads. Texts that occur twice: the first id encodes, every id decodes.
class Vocabulary {
 public:
  /// Checks and copies. Raises `unsupported` for a tokenizer model that is not here, `file` for arrays of
  /// different lengths, unknown token types and special ids outside the vocabulary (0xFFFFFFFF means none).
  /// Merges that name a missing token are left out and counted. Time and memory are linear in the source.
  explicit Vocabulary(const VocabularySource& source);

  [[nodiscard]] std::size_t size() const noexcept { return texts_.size(); }  // tokens
  /// From the source: the algorithm, the names of pre-tokenizer and model. Both names may be empty.
  [[nodiscard]] TokenizerKind kind() const noexcept { return kind_; }
  [[nodiscard]] const std::string& pre() const noexcept { return pre_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Text of a token as the file spells it: U+2581 for a space in SPM and Unigram and for the beginning of a
  /// word in WordPiece, the byte alphabet of GPT-2 in BPE.
  [[nodiscard]] std::string_view text(TokenId id) const noexcept { return texts_[id]; }
  /// The type in the file, except for control tokens and channel marks that are known by their text.
  [[nodiscard]] TokenType type(TokenId id) const noexcept { return types_[id]; }
  /// Never NaN; 0 in a vocabulary without scores. SPM joins the pair with the highest score first, Unigram
  /// finds the tokens with the highest sum.
  [[nodiscard]] float score(TokenId id) const noexcept { return scores_.empty() ? 0.0F : scores_[id]; }
  /// Bytes of the longest text(): a longer text is not a token.
  [[nodiscard]] std::size_t longest_text_bytes() const noexcept { return texts_.longest_bytes(); }

  /// The token that ordinary text of this spelling becomes (never a control, unknown or byte token, nor one
  /// that begins or ends texts), or `no_token`.
  [[nodiscard]] TokenId find(std::string_view text) const noexcept { return index_.find(texts_, text); }

  /// The control, user-defined or unknown token written like this, or `no_token`.
  [[nodiscard]] TokenId find_special(std::string_view text) const { return special_.find(texts_, text); }

  /// The longest special token with which the text begins, or `no_token`; without `parse_special` only
  /// user-defined ones, and of these none that begins or ends texts.
  [[nodiscard]] TokenId special_prefix(std::string_view text, bool parse_special) const {
    return special_.longest_prefix(texts_, text, [&](TokenId id) {
      return parse_special || (type(id) == TokenType::user_defined && !is_guarded(id));
    });
  }

  /// Those of the source; if it names none, the defaults of the kind and a token known to end turns.
  [[nodiscard]] const SpecialIds& special() const noexcept { return ids_; }
  /// Whether encoding puts BOS before a text and EOS after it (false without such a token), and a space
  /// before each stretch of ordinary text.
  [[nodiscard]] bool add_bos() const noexcept { return add_bos_ && ids_.bos; }
  [[nodiscard]] bool add_eos() const noexcept { return add_eos_ && ids_.eos; }
  [[nodiscard]] bool add_space_prefix() const noexcept { return add_space_prefix_; }
  /// Whether two texts that are read at once have a separator after the EOS of the first (see TokenPair).
  [[nodiscard]] bool add_separator() const noexcept { return add_separator_; }

  /// Unigram: whether spaces at the ends of a text and repeated ones are dropped, and the replacements of
  /// characters (see detail/charsmap.hpp; empty: none).
  [[nodiscard]] bool remove_extra_spaces() const noexcept { return remove_extra_spaces_; }
  [[nodiscard]] const std::string& charsmap() const noexcept { return charsmap_; }
  /// WordPiece: whether texts are read in lower case, and without accents.
  [[nodiscard]] bool lower_case() const noexcept { return lower_case_; }
  [[nodiscard]] bool strip_accents() const noexcept { return strip_accents_; }

  /// Tokens that end an answer, in rising order.
  [[nodiscard]] std::span<const TokenId> ends() const noexcept { return {ends_.data(), ends_.size()}; }
  /// Whether the token is one of ends().
  [[nodiscard]] bool is_end(TokenId id) const noexcept {
    return std::binary_search(ends_.begin(), ends_.end(), id);
  }

  [[nodiscard]] const std::vector<Merge>& merges() const noexcept { return merges_; }  // best first
  /// Whether an SPM vocabulary joins by the rank of its merges and not by the score of the result.
  [[nodiscard]] bool joins_by_rank() const noexcept { return joins_by_rank_; }
  /// Merges of the source that are left out: those whose joined text is not a token, or that name no tokens.
  [[nodiscard]] std::size_t ignored_merges() const noexcept { return ignored_merges_; }

  /// Bytes held by the tables.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return texts_.bytes() + index_.bytes() + types_.capacity() + scores_.capacity() * sizeof(float) +
           merges_.capacity() * sizeof(Merge) + special_.ids().capacity() * sizeof(TokenId) +
           charsmap_.size();
  }

 private:
  void read_types(const VocabularySource& source) {
    types_.assign(source.tokens.size(), TokenType::normal);
    for (std::size_t i = 0; i < source.types.size(); ++i) {
      const std::int32_t type = source.types[i];
      MICA_CHECK(type >= 0 && type <= 6, file, "tokenizer.ggml.token_type: found ", type, " for token ", i,
                 ", allowed are 0 to 6");
      types_[i] = static_cast<TokenType>(type);
    }
  }
  /// Some files call "<|im_end|>" ordinary text; text that a user types must not end a turn or open a gap.
  void correct_types() {
    const auto among = [](std::span<const std::string_view> names, std::string_view text) {
      return std::find(names.begin(), names.end(), text) != names.end();
    };
    for (TokenId id = 0; id < size(); ++id) {
      const std::string_view text = texts_[id];
      if (!detail::may_have_a_name(text)) continue;
      const bool controls = among(detail::turn_ends, text) || among(detail::other_ends, text);
      if (controls || among(detail::infill_marks, text)) types_[id] = TokenType::control;
      if (among(detail::channel_marks, text)) types_[id] = TokenType::user_defined;
    }
  }

  /// User-defined tokens that a file names for the beginning or end of texts, and the end that SPM files
  /// seldom name.
  void guard_borders(const VocabularySource& source) {
    const auto guard = [this](TokenId id) {
      if (types_[id] == TokenType::user_defined && !is_guarded(id)) guarded_.push_back(id);
    };
    for (TokenId id = 0; id < size(); ++id) {
      if (texts_[id] == detail::text_end && guarded_.empty()) guard(id);
    }
    for (const auto& id : {source.bos, source.eos, source.eot, source.eom}) {
      if (id && *id < size()) guard(static_cast<TokenId>(*id));
    }
  }
  [[nodiscard]] bool is_guarded(TokenId id) const noexcept {
    return std::find(guarded_.begin(), guarded_.end(), id) != guarded_.end();
  }
  void read_special_ids(const VocabularySource& source) {
    ids_.bos = checked_id("tokenizer.ggml.bos_token_id", source.bos);
    ids_.eos = checked_id("tokenizer.ggml.eos_token_id", source.eos);
    ids_.eot = checked_id("tokenizer.ggml.eot_token_id", source.eot);
    ids_.eom = checked_id("tokenizer.ggml.eom_token_id", source.eom);
    ids_.unknown = checked_id("tokenizer.ggml.unknown_token_id", source.unknown);
    ids_.padding = checked_id("tokenizer.ggml.padding_token_id", source.padding);
    ids_.separator = checked_id("tokenizer.ggml.seperator_token_id", source.separator);
    ids_.classifier = checked_id("tokenizer.ggml.cls_token_id", source.classifier);
    ids_.mask = checked_id("tokenizer.ggml.mask_token_id", source.mask);
    if (kind_ == TokenizerKind::spm) {
      if (!source.bos) ids_.bos = default_id(1, TokenType::control);
      if (!source.eos) ids_.eos = default_id(2, TokenType::control);
      if (!source.unknown) ids_.unknown = default_id(0, TokenType::unknown);
    } else if (kind_ == TokenizerKind::unigram) {
      if (!source.eos) ids_.eos = default_id(1, TokenType::control);
      if (!source.unknown) ids_.unknown = default_id(2, TokenType::unknown);
      if (!source.padding) ids_.padding = default_id(0, TokenType::control);
    } else if (kind_ == TokenizerKind::wordpiece) {
      find_wordpiece_ids();
    }
    for (const std::string_view text : detail::turn_ends) {
      if (ids_.eot) break;
      if (const TokenId id = find_special(text); id != no_token) ids_.eot = id;
    }
  }

  /// BERT's files name CLS and SEP, BOS and EOS, or all; the names of tokens stand in for what is missing.
  void find_wordpiece_ids() {
    const auto first_of = [](std::optional<TokenId> a, std::optional<TokenId> b, TokenId named) {
      return a ? a : b ? b : named != no_token ? std::optional(named) : std::nullopt;
    };
    ids_.bos = ids_.classifier = first_of(ids_.bos, ids_.classifier, find_special("[CLS]"));
    ids_.eos = ids_.separator = first_of(ids_.separator, ids_.eos, find_special("[SEP]"));
    ids_.unknown = first_of(ids_.unknown, {}, find_special("[UNK]"));
    ids_.padding = first_of(ids_.padding, {}, find_special("[PAD]"));
    ids_.mask = first_of(ids_.mask, {}, find_special("[MASK]"));
  }

  void read_merges(std::span<const std::string_view> merges) {
    merges_.reserve(merges.size());
    std::string joined;
    for (const std::string_view merge : merges) {
      const std::size_t space =
          merge.find(' ', 1);  // a token may begin with a space, never contain one later
      if (space == std::string_view::npos) continue;
      const std::string_view left = merge.substr(0, space);
      const std::string_view right = merge.substr(space + 1);
      joined.assign(left).append(right);
      const Merge ids = {find(left), find(right), find(joined)};
      if (ids.left != no_token && ids.right != no_token && ids.result != no_token) merges_.push_back(ids);
    }
    ignored_merges_ = merges.size() - merges_.size();
  }

  /// Collects the tokens that end an answer: by id, and by the names that published models use.
  /// Where "<|return|>" ends answers, "<|end|>" only ends one of several messages.
  void find_ends() {
    for (const auto& id : {ids_.eos, ids_.eot, ids_.eom}) {
      if (id) ends_.push_back(*id);
    }
    const auto add = [&](std::string_view text) {
      if (const TokenId id = find_special(text); id != no_token) ends_.push_back(id);
    };
    for (const std::string_view text : detail::turn_ends) add(text);
    for (const std::string_view text : detail::other_ends) add(text);
    if (find_special("<|return|>") != no_token) std::erase(ends_, find_special("<|end|>"));
    std::sort(ends_.begin(), ends_.end());
    ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  }

  [[nodiscard]] std::optional<TokenId> checked_id(std::string_view key,
                                                  std::optional<std::uint64_t> id) const {
    if (!id || *id == no_token) return std::nullopt;
    MICA_CHECK(*id < size(), file, key, ": found ", *id, ", the vocabulary has ", size(), " tokens (0 to ",
               size() - 1, ")");
    return static_cast<TokenId>(*id);
  }
  /// An id that files may leave out, taken only when the token there is of the right type.
  [[nodiscard]] std::optional<TokenId> default_id(TokenId id, TokenType type) const {
    if (id >= size() || types_[id] != type) return std::nullopt;
    return id;
  }
  [[nodiscard]] bool is_special(TokenId id) const noexcept {
    return types_[id] == TokenType::control || types_[id] == TokenType::user_defined ||
           types_[id] == TokenType::unknown;
  }

  TokenizerKind kind_;
  std::string pre_, name_, charsmap_;
  detail::TextArena texts_;
  detail::TextIndex index_;
  detail::SpecialIndex special_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;
  std::vector<Merge> merges_;
  std::vector<TokenId> ends_;
  std::vector<TokenId> guarded_;  // user-defined, but found only where control tokens are: a handful
  SpecialIds ids_;
  std::size_t ignored_merges_ = 0;
  bool joins_by_rank_;
  bool add_bos_, add_eos_, add_separator_, add_space_prefix_, remove_extra_spaces_;
  bool lower_case_, strip_accents_;
};

namespace detail {

/// The tokenizer model of Gemma 4: SPM's pieces, joined by merges; texts begin with BOS whatever the file
/// says.
inline constexpr std::string_view ranked_spm = "gemma4";

/// Raises unless the file's name for its tokenizer is one of those known here.
inline TokenizerKind tokenizer_kind(std::string_view model) {
  if (model == "llama" || model == ranked_spm) return TokenizerKind::spm;
  if (model == "gpt2") return TokenizerKind::bpe;
  if (model == "bert") return TokenizerKind::wordpiece;
  if (model == "t5") return TokenizerKind::unigram;
  raise(ErrorCode::unsupported, "tokenizer.ggml.model: found '", escaped(model, 40),
        "', known are 'llama' (SPM), 'gemma4' (SPM by merges), 'gpt2' (byte-level BPE), 'bert' (WordPiece) "
        "and ",
        "'t5' (Unigram)");
}

/// Whether texts begin with BOS. WordPiece's always do; where other files do not say, kind and pre-tokenizer
/// decide; unknown names of the latter are refused later.
inline bool adds_bos(TokenizerKind kind, const VocabularySource& source) {
  if (kind == TokenizerKind::wordpiece || source.model == ranked_spm) return true;
  if (source.add_bos) return *source.add_bos;
  const PretokenizerRules* rules = kind == TokenizerKind::bpe ? find_pretokenizer_rules(source.pre) : nullptr;
  return kind == TokenizerKind::spm || (rules != nullptr && rules->traits.adds_bos);
}

inline bool adds_eos(TokenizerKind kind, const VocabularySource& source) {
  return kind == TokenizerKind::wordpiece || source.add_eos.value_or(kind == TokenizerKind::unigram);
}

/// Whether two texts have two tokens between them. Of WordPiece, whose files name SEP twice, they have one
/// unless both keys say otherwise; Unigram with BOS is XLM-RoBERTa's, which has two.
inline bool adds_separator(TokenizerKind kind, const VocabularySource& source) {
  if (kind == TokenizerKind::wordpiece)
    return source.add_separator.value_or(false) && source.add_eos.value_or(false);
  return source.add_separator.value_or(kind == TokenizerKind::unigram && adds_bos(kind, source));
}

inline void check_lengths(const VocabularySource& source) {
  const std::size_t n = source.tokens.size();
  MICA_CHECK(n > 0, file, "tokenizer.ggml.tokens: found no tokens, a vocabulary needs at least one");
  MICA_CHECK(n < no_token, file, "tokenizer.ggml.tokens: found ", n, " tokens, at most ", no_token - 1,
             " are read");
  const auto check = [n](std::string_view key, std::size_t found) {
    MICA_CHECK(found == 0 || found == n, file, key, ": found ", found, " entries, ", n, " tokens need ", n,
               " or none");
  };
  check("tokenizer.ggml.scores", source.scores.size());
  check("tokenizer.ggml.token_type", source.types.size());
}

/// A NaN has no place in an order, and merges are chosen by score.
inline void check_scores(const VocabularySource& source) {
  for (std::size_t i = 0; i < source.scores.size(); ++i) {
    MICA_CHECK(!std::isnan(source.scores[i]), file, "tokenizer.ggml.scores: found a NaN for token ", i,
               ", a score must be a number");
  }
}

}  // namespace detail

inline Vocabulary::Vocabulary(const VocabularySource& source)
    : kind_(detail::tokenizer_kind(source.model)),
      pre_(source.pre),
      name_(source.name),
      charsmap_(source.charsmap),
      texts_((detail::check_lengths(source), source.tokens)),
      index_(source.tokens.size()),
      scores_(source.scores.begin(), source.scores.end()),
      joins_by_rank_(source.model == detail::ranked_spm),
      add_bos_(detail::adds_bos(kind_, source)),
      add_eos_(detail::adds_eos(kind_, source)),
      add_separator_(detail::adds_separator(kind_, source)),
      add_space_prefix_(source.add_space_prefix.value_or(kind_ == TokenizerKind::spm && !joins_by_rank_)),
      remove_extra_spaces_(source.remove_extra_spaces.value_or(false)),
      lower_case_(source.lower_case.value_or(true)),
      strip_accents_(source.strip_accents.value_or(lower_case_)) {
  detail::check_scores(source);
  read_types(source);
  correct_types();
  guard_borders(source);
  std::vector<TokenId> special;
  for (TokenId id = 0; id < size(); ++id) {
    if (is_special(id)) special.push_back(id);
    const bool ordinary = types_[id] == TokenType::normal || types_[id] == TokenType::undefined;
    const bool by_text = types_[id] == TokenType::user_defined || types_[id] == TokenType::unused;
    const bool has_words = kind_ == TokenizerKind::spm || kind_ == TokenizerKind::wordpiece;
    if (ordinary || (by_text && has_words && !is_guarded(id))) index_.add(texts_, id);
  }
  special_ = detail::SpecialIndex(texts_, std::move(special));
  read_special_ids(source);
  find_ends();
  if (kind_ == TokenizerKind::bpe || joins_by_rank_) read_merges(source.merges);
}

/// The vocabulary, which a tokenizer of this kind takes. Raises ErrorCode::unsupported if it is of another one.
[[nodiscard]] inline Vocabulary of_kind(TokenizerKind kind, Vocabulary vocabulary) {
  MICA_CHECK(vocabulary.kind() == kind, unsupported, "a vocabulary of the kind ", name(vocabulary.kind()),
             " in a tokenizer for ", name(kind), "; AnyTokenizer takes all kinds");
  return vocabulary;
}

}  // namespace mica::text
