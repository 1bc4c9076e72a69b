// SPDX-License-Identifier: Apache-2.0
//
// The tokens of a vocabulary by their bytes, for the masks of grammars. A trie in the order of a walk:
//
//   node      a   b   c   d        depth of each, and where its children end, so that a byte that cannot
//   depth     1   2   2   1        follow skips all tokens that begin like it
//
// And slices: most tokens are words, which a place for free text allows all. The tokens that consist of
// characters of a slice are one mask for each number of characters; all others are kept apart, without the
// characters of the slice at their beginning:
//
//   Hello     mask of 5 characters and more
//   o":       after 1 character: ":
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/token_id.hpp"
#include "mica/constraint/byte_set.hpp"
#include "mica/constraint/token_mask.hpp"
#include "mica/text/concept.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::constraint {

/// The bytes of one token.
struct TokenBytes {
  TokenId id;
  std::string bytes;
};

/// Tokens as a trie.
class Trie {
 public:
  static constexpr std::size_t max_bytes = 255;  // of a token; longer ones are left out

  struct Node {
    std::uint32_t next;  // the node after all that begin like this one
    TokenId token;       // that ends here, or no_token
    std::uint8_t byte;   // the last one
    std::uint8_t depth;  // bytes so far
  };

  Trie() = default;
  /// Sorts the tokens; of equal texts each has a node. Tokens without bytes are left out.
  explicit Trie(std::vector<TokenBytes> tokens);

  [[nodiscard]] std::span<const Node> nodes() const noexcept { return nodes_; }
  /// Whether node i + 1, below `end`, has the text of node i, as in a vocabulary that has tokens for bytes
  /// too. Of equal ones the last has the children.
  [[nodiscard]] bool has_equal(std::size_t i, std::size_t end) const noexcept {
    return nodes_[i].next == i + 1 && i + 1 < end && nodes_[i + 1].byte == nodes_[i].byte;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return nodes_.capacity() * sizeof(Node); }

 private:
  std::vector<Node> nodes_;
};

/// Tokens that consist of characters of one kind, as masks; and all others.
class Slice {
 public:
  static constexpr std::size_t max_characters = 32;   // of a token that is counted; longer ones count as this
  static constexpr std::size_t some_characters = 16;  // which few tokens exceed

  /// member: whether a code point belongs to it.
  Slice(std::span<const TokenBytes> tokens, std::size_t n_vocab, bool (*member)(std::uint32_t));

  /// The bytes of its characters that have one.
  [[nodiscard]] const ByteSet& ascii() const noexcept { return ascii_; }
  [[nodiscard]] bool has_more_than_ascii() const noexcept { return member_(0x80); }
  /// Tokens of n or fewer characters of the slice, and no other ones. n <= max_characters, which is all.
  [[nodiscard]] const TokenMask& up_to(std::size_t n) const noexcept { return masks_[n]; }
  /// Tokens with n characters of the slice and then something else, without these characters.
  [[nodiscard]] const Trie& after(std::size_t n) const noexcept { return rest_[n]; }
  /// All tokens but those that consist of characters of the slice, whole.
  [[nodiscard]] const Trie& others() const noexcept { return others_; }
  /// Tokens of more than some_characters of the slice, and no other ones, whole.
  [[nodiscard]] const Trie& longer() const noexcept { return longer_; }
  /// Tokens with max_characters of the slice or more, whole: for places that count characters.
  [[nodiscard]] const Trie& long_tokens() const noexcept { return long_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  bool (*member_)(std::uint32_t);
  ByteSet ascii_;
  std::vector<TokenMask> masks_;  // [max_characters + 1]
  std::array<Trie, max_characters + 1> rest_;
  Trie longer_, long_, others_;
};

/// The vocabulary of a model as grammars need it. Immutable: for any number of threads.
///
/// Control tokens have no bytes of text. In a grammar each is a byte that no text has and its number:
/// special_text().
class TokenTrie {
 public:
  /// The tokenizer outlives it. Cost: a sort of all tokens, about 0.2 s for 128,000; their bytes and about 40
  /// bytes for each.
  template <text::Tokenizer Tokenizer>
  explicit TokenTrie(const Tokenizer& tokenizer)
      : TokenTrie(bytes_of(tokenizer), tokenizer.vocabulary().size(), ends_of(tokenizer.vocabulary()),
                  best_end(tokenizer.vocabulary())) {
    encode_ = [&tokenizer](std::string_view text) {
      return tokenizer.encode(text, {.add_special = false, .parse_special = false});
    };
  }
  /// Of tokens that are given. end: the token that ends a text, where one must be chosen.
  TokenTrie(std::vector<TokenBytes> tokens, std::size_t n_vocab, std::vector<TokenId> ends,
            std::optional<TokenId> end);

  [[nodiscard]] std::size_t n_vocab() const noexcept { return n_vocab_; }
  [[nodiscard]] std::span<const TokenId> ends() const noexcept { return ends_; }
  [[nodiscard]] std::optional<TokenId> end() const noexcept { return end_; }
  [[nodiscard]] bool is_end(TokenId id) const noexcept {
    return std::find(ends_.begin(), ends_.end(), id) != ends_.end();
  }
  /// The bytes of a token; of a control token special_text(). Empty for a token that is never allowed.
  [[nodiscard]] std::string_view bytes_of(TokenId id) const noexcept {
    return std::string_view(bytes_).substr(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }
  /// Tokens whose bytes are the text: those of the tokenizer, or else the longest ones from the left. A byte
  /// without a token ends them.
  [[nodiscard]] std::vector<TokenId> tokens_of(std::string_view text) const;
  [[nodiscard]] const Trie& all() const noexcept { return all_; }
  [[nodiscard]] std::span<const Slice> slices() const noexcept { return slices_; }
  /// Tokens of short_bytes or fewer, and those that end a text; all others.
  static constexpr std::size_t short_bytes = 16;
  [[nodiscard]] const TokenMask& short_tokens() const noexcept { return short_tokens_; }
  [[nodiscard]] const Trie& long_tokens() const noexcept { return long_tokens_; }
  /// Bytes held.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// The text that stands for a control token in a grammar: the byte 0xFF, its id, a semicolon.
  [[nodiscard]] static std::string special_text(TokenId id) { return "\xFF" + std::to_string(id) + ";"; }

 private:
  template <class Tokenizer>
  static std::vector<TokenBytes> bytes_of(const Tokenizer& tokenizer);
  static std::vector<TokenId> ends_of(const text::Vocabulary& vocabulary) {
    return {vocabulary.ends().begin(), vocabulary.ends().end()};
  }
  static std::optional<TokenId> best_end(const text::Vocabulary& vocabulary) {
    const text::SpecialIds& special = vocabulary.special();
    if (special.eot) return special.eot;
    if (special.eos) return special.eos;
    return vocabulary.ends().empty() ? std::nullopt : std::optional(vocabulary.ends()[0]);
  }

  [[nodiscard]] std::vector<TokenId> longest_tokens(std::string_view text) const;
  [[nodiscard]] bool is_spelled(std::span<const TokenId> tokens, std::string_view text) const;

  std::size_t n_vocab_;
  std::function<std::vector<TokenId>(std::string_view)> encode_;
  std::vector<TokenId> ends_;
  std::optional<TokenId> end_;
  std::string bytes_;
  std::vector<std::uint32_t> offsets_;  // [n_vocab + 1]
  Trie all_, long_tokens_;
  TokenMask short_tokens_;
  std::vector<Slice> slices_;
};

inline Trie::Trie(std::vector<TokenBytes> tokens) {
  std::erase_if(tokens, [](const TokenBytes& t) { return t.bytes.empty() || t.bytes.size() > max_bytes; });
  std::sort(tokens.begin(), tokens.end(), [](const TokenBytes& a, const TokenBytes& b) {
    return std::pair(std::string_view(a.bytes), a.id) < std::pair(std::string_view(b.bytes), b.id);
  });
  std::vector<std::uint32_t> path;  // nodes whose children are not complete
  const auto leave = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].next = static_cast<std::uint32_t>(nodes_.size());
  };
  std::string_view before;
  for (const TokenBytes& token : tokens) {
    const std::string_view text = token.bytes;
    const auto common = static_cast<std::size_t>(
        std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first - before.begin());
    const bool again = common == text.size();  // an equal text: one more leaf
    leave(again ? common - 1 : common);
    for (std::size_t i = again ? common - 1 : common; i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({0, i + 1 == text.size() ? token.id : text::no_token,
                        static_cast<std::uint8_t>(text[i]), static_cast<std::uint8_t>(i + 1)});
    }
    before = text;
  }
  leave(0);
  nodes_.shrink_to_fit();
}

namespace detail {

/// The number of bytes of the complete character at the beginning of a text, and the character; 0 bytes where
/// there is none.
struct Character {
  std::size_t bytes = 0;
  std::uint32_t code_point = 0;
};
[[nodiscard]] inline Character first_character(std::string_view text) noexcept {
  const std::size_t n = text::utf8_sequence_bytes(text);
  if (n == 0) return {};
  std::uint32_t code_point = static_cast<std::uint8_t>(text[0]) & (n == 1 ? 0x7FU : 0xFFU >> (n + 1));
  for (std::size_t i = 1; i < n; ++i)
    code_point = code_point << 6 | (static_cast<std::uint8_t>(text[i]) & 0x3F);
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  return surrogate ? Character{} : Character{n, code_point};
}

/// Characters that a JSON string has as they are, except those that some grammars exclude: DEL, and the line
/// ends of Unicode, which are no `.` of a regular expression.
[[nodiscard]] inline bool is_string_character(std::uint32_t c) noexcept {
  return c >= 0x20 && c != '"' && c != '\\' && c != 0x7F && c != 0x2028 && c != 0x2029;
}
[[nodiscard]] inline bool is_letter_or_digit(std::uint32_t c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace detail

inline Slice::Slice(std::span<const TokenBytes> tokens, std::size_t n_vocab, bool (*member)(std::uint32_t))
    : member_(member), masks_(max_characters + 1, TokenMask(n_vocab)) {
  std::array<std::vector<TokenBytes>, max_characters + 1> rest;
  for (std::uint8_t byte = 0; byte < 0x80; ++byte) {
    if (member(byte)) ascii_.insert(byte);
  }
  std::vector<TokenBytes> longer, long_tokens, others;
  for (const TokenBytes& token : tokens) {
    std::string_view left = token.bytes;
    if (left.empty() || left.size() > Trie::max_bytes) continue;
    std::size_t n = 0;
    for (auto c = detail::first_character(left); c.bytes > 0 && member(c.code_point);
         c = detail::first_character(left)) {
      left.remove_prefix(c.bytes);
      ++n;
    }
    n = std::min(n, max_characters);
    if (n == max_characters) long_tokens.push_back(token);
    if (left.empty()) {
      masks_[n].insert(token.id);
      if (n > some_characters) longer.push_back(token);
    } else {
      rest[n].push_back({token.id, std::string(left)});
      others.push_back(token);
    }
  }
  for (std::size_t n = 1; n <= max_characters; ++n) masks_[n] |= masks_[n - 1];
  for (std::size_t n = 0; n <= max_characters; ++n) rest_[n] = Trie(std::move(rest[n]));
  longer_ = Trie(std::move(longer));
  long_ = Trie(std::move(long_tokens));
  others_ = Trie(std::move(others));
}

inline std::size_t Slice::bytes() const noexcept {
  std::size_t sum = longer_.bytes() + long_.bytes() + others_.bytes();
  for (const TokenMask& mask : masks_) sum += mask.words().size_bytes();
  for (const Trie& trie : rest_) sum += trie.bytes();
  return sum;
}

inline TokenTrie::TokenTrie(std::vector<TokenBytes> tokens, std::size_t n_vocab, std::vector<TokenId> ends,
                            std::optional<TokenId> end)
    : n_vocab_(n_vocab), ends_(std::move(ends)), end_(end) {
  std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  offsets_.reserve(n_vocab + 1);
  for (TokenBytes& token : tokens) {
    MICA_ASSERT(token.id < n_vocab);
    // No text has this byte, and other tokens must not spell a control token.
    if (token.bytes.find('\xFF') != std::string::npos && token.bytes != special_text(token.id))
      token.bytes.clear();
    offsets_.resize(token.id + 1, static_cast<std::uint32_t>(bytes_.size()));
    bytes_ += token.bytes;
  }
  offsets_.resize(n_vocab + 1, static_cast<std::uint32_t>(bytes_.size()));
  std::erase_if(tokens, [&](const TokenBytes& token) { return is_end(token.id); });
  slices_.emplace_back(tokens, n_vocab, &detail::is_string_character);
  slices_.emplace_back(tokens, n_vocab, &detail::is_letter_or_digit);
  short_tokens_ = TokenMask(n_vocab);
  for (const TokenId id : ends_) short_tokens_.insert(id);
  std::vector<TokenBytes> long_tokens;
  for (const TokenBytes& token : tokens) {
    if (token.bytes.size() > short_bytes) {
      long_tokens.push_back(token);
    } else {
      short_tokens_.insert(token.id);
    }
  }
  long_tokens_ = Trie(std::move(long_tokens));
  all_ = Trie(std::move(tokens));
}

template <class Tokenizer>
std::vector<TokenBytes> TokenTrie::bytes_of(const Tokenizer& tokenizer) {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  std::vector<TokenBytes> out;
  out.reserve(vocabulary.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == text::TokenType::unused) continue;
    TokenBytes token{id, {}};
    tokenizer.append_piece(id, false, token.bytes);
    if (vocabulary.type(id) == text::TokenType::control) token.bytes = special_text(id);
    out.push_back(std::move(token));
  }
  return out;
}

inline bool TokenTrie::is_spelled(std::span<const TokenId> tokens, std::string_view text) const {
  for (const TokenId id : tokens) {
    if (id >= n_vocab_ || bytes_of(id).empty() || !text.starts_with(bytes_of(id))) return false;
    text.remove_prefix(bytes_of(id).size());
  }
  return text.empty();
}

inline std::vector<TokenId> TokenTrie::longest_tokens(std::string_view text) const {
  std::vector<TokenId> out;
  const auto nodes = all_.nodes();
  while (!text.empty()) {
    TokenId best = text::no_token;
    std::size_t depth = 0;
    for (std::size_t i = 0, end = nodes.size(); i < end && depth < text.size();) {
      if (nodes[i].byte != static_cast<std::uint8_t>(text[depth]) || all_.has_equal(i, end)) {
        i = nodes[i].next;
        continue;
      }
      if (nodes[i].token != text::no_token) best = nodes[i].token;
      ++depth;
      end = nodes[i].next;
      ++i;
    }
    if (best == text::no_token) break;
    out.push_back(best);
    text.remove_prefix(bytes_of(best).size());
  }
  return out;
}

inline std::vector<TokenId> TokenTrie::tokens_of(std::string_view text) const {
  if (encode_) {
    std::vector<TokenId> tokens = encode_(text);
    if (is_spelled(tokens, text)) return tokens;
  }
  return longest_tokens(text);
}

inline std::size_t TokenTrie::bytes() const noexcept {
  std::size_t sum = bytes_.capacity() + offsets_.capacity() * 4 + all_.bytes() + long_tokens_.bytes();
  for (const Slice& slice : slices_) sum += slice.bytes();
  return sum;
}

}  // namespace mica::constraint
