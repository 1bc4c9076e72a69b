// SPDX-License-Identifier: Apache-2.0
//
// The texts of tokens in two allocations, and what finds an id by its text: for ordinary tokens an open table
// of ids, for special ones a sorted list. The texts stay where they are.
//
//   bytes    a b c | d e | | f ...
//   offsets  0       3     5 5 ...   one more than there are strings
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "mica/text/token_id.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::text::detail {

/// Many short byte strings, without an allocation for each.
class TextArena {
 public:
  TextArena() = default;

  /// Copies the strings; raises when they have 4 GiB or more together.
  explicit TextArena(std::span<const std::string_view> texts) {
    std::uint64_t total = 0;
    for (const std::string_view text : texts) total += text.size();
    MICA_CHECK(total < 0xFFFF'FFFFU, file, "vocabulary: the tokens have ", total,
               " bytes, at most 4294967294 are read");
    bytes_.reserve(total);
    offsets_.reserve(texts.size() + 1);
    for (const std::string_view text : texts) {
      bytes_ += text;
      offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
      longest_ = text.size() > longest_ ? text.size() : longest_;
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::size_t longest_bytes() const noexcept { return longest_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.size() + offsets_.capacity() * 4; }

  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return {bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> offsets_ = {0};
  std::size_t longest_ = 0;
};

/// Hash of a byte string, eight bytes at a time. Not for files, not for secrets: collisions can be made on
/// purpose, which is why the tables bound their probing.
inline std::uint64_t hash(std::string_view bytes) noexcept {
  std::uint64_t h = bytes.size();
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), n);
    h = mix64(h ^ word) + word;
    bytes.remove_prefix(n);
  }
  return mix64(h);
}

/// From the bytes of a token to its id: an open table at most two thirds full.
class TextIndex {
 public:
  /// Makes room for `count` texts; more must not be added.
  explicit TextIndex(std::size_t count = 0) : slots_(std::bit_ceil(count + count / 2 + 2), no_token) {}

  /// Adds a token unless an equal text is there already: the first id wins.
  /// Raises when the texts were chosen to collide.
  void add(const TextArena& texts, TokenId id) {
    const std::string_view text = texts[id];
    std::size_t at = hash(text);
    for (std::size_t probe = 0; probe < max_probes; ++probe, ++at) {
      TokenId& slot = slots_[at & (slots_.size() - 1)];
      if (slot == no_token) slot = id;
      if (texts[slot] == text) return;
    }
    raise(ErrorCode::file, "tokenizer.ggml.tokens: token ", id, " '", escaped(text, 40),
          "' collides with more than ", max_probes, " others; no honest vocabulary does");
  }

  /// Id of the text, or `no_token`.
  [[nodiscard]] TokenId find(const TextArena& texts, std::string_view text) const noexcept {
    std::size_t at = hash(text);
    for (std::size_t probe = 0; probe < max_probes; ++probe, ++at) {
      const TokenId slot = slots_[at & (slots_.size() - 1)];
      if (slot == no_token || texts[slot] == text) return slot;
    }
    return no_token;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return slots_.capacity() * sizeof(TokenId); }

 private:
  static constexpr std::size_t max_probes = 512;  // honest texts need fewer than two hundred at this load

  std::vector<TokenId> slots_;
};

/// The tokens that are found in a text first: control, user-defined and unknown ones. A sorted list that a
/// match narrows byte by byte; texts of thousands of such tokens cost one binary search per matching byte.
class SpecialIndex {
 public:
  SpecialIndex() = default;

  /// Of equal texts the lowest id stays, empty and very long texts are left out.
  /// Limit: a token longer than 512 bytes is never found in a text, so that the search stays linear.
  SpecialIndex(const TextArena& texts, std::vector<TokenId> ids) {
    std::sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
      const int order = texts[a].compare(texts[b]);
      return order != 0 ? order < 0 : a < b;
    });
    std::size_t n = 0;
    for (const TokenId id : ids) {
      const std::string_view text = texts[id];
      if (text.empty() || text.size() > longest_bytes || (n != 0 && texts[ids[n - 1]] == text)) continue;
      starts_.set(static_cast<unsigned char>(text[0]));
      ids[n++] = id;
    }
    ids.resize(n);
    ids_ = ids;  // without room for those that were left out
  }

  [[nodiscard]] const std::vector<TokenId>& ids() const noexcept { return ids_; }

  /// The longest token for which `accept(id)` holds and with which the text begins, or `no_token`.
  template <class Accept>
  [[nodiscard]] TokenId longest_prefix(const TextArena& texts, std::string_view text, Accept&& accept) const {
    TokenId best = no_token;
    if (text.empty() || !starts_.test(static_cast<unsigned char>(text[0]))) return best;
    auto low = ids_.begin();
    auto high = ids_.end();
    for (std::size_t depth = 0; depth < text.size() && low != high; ++depth) {
      const auto byte = static_cast<unsigned char>(text[depth]);
      const auto at = [&](TokenId id) { return static_cast<unsigned char>(texts[id][depth]); };
      low = std::partition_point(low, high,
                                 [&](TokenId id) { return texts[id].size() <= depth || at(id) < byte; });
      high = std::partition_point(low, high, [&](TokenId id) { return at(id) == byte; });
      if (low != high && texts[*low].size() == depth + 1 && accept(*low)) best = *low;
    }
    return best;
  }

  /// Id of exactly this text, or `no_token`.
  [[nodiscard]] TokenId find(const TextArena& texts, std::string_view text) const {
    const auto at = std::lower_bound(ids_.begin(), ids_.end(), text,
                                     [&](TokenId id, std::string_view t) { return texts[id] < t; });
    return at != ids_.end() && texts[*at] == text ? *at : no_token;
  }

 private:
  static constexpr std::size_t longest_bytes = 512;

  std::vector<TokenId> ids_;  // sorted by text
  std::bitset<256> starts_;   // first bytes
};

}  // namespace mica::text::detail
