// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of a token to its id: an open table of ids at most two thirds full. The texts stay where
// they are.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/base/rng.hpp"
#include "mica/text/detail/text_arena.hpp"
#include "mica/text/token_id.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace mica::text::detail {

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

}  // namespace mica::text::detail
