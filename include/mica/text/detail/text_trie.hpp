// SPDX-License-Identifier: Apache-2.0
//
// All tokens with which a text begins, in one walk: a trie whose nodes are numbered level by level, so that
// the children of a node are neighbours and begin where those of the node before end.
//
//   labels       . a b | b c | d ...   the byte that leads to a node; node 0 is the empty text
//   first_child  1 3 5 | 5 6 | 6 ...   one more than there are nodes
#pragma once

#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text::detail {

/// Immutable: for any number of threads.
class TextTrie {
 public:
  /// Of equal texts the lowest id stays; empty and very long texts are left out.
  /// Limit: a token longer than 512 bytes is never found in a text, so that the search stays linear.
  TextTrie(const Vocabulary& vocabulary, std::vector<TokenId> ids) {
    std::erase_if(ids, [&](TokenId id) {
      return vocabulary.text(id).empty() || vocabulary.text(id).size() > max_bytes;
    });
    std::sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
      const int order = vocabulary.text(a).compare(vocabulary.text(b));
      return order != 0 ? order < 0 : a < b;
    });
    std::vector<Stretch> level = {{0, ids.size()}}, next;
    labels_.push_back(0);
    tokens_.push_back(no_token);
    for (std::size_t depth = 0; !level.empty(); ++depth, std::swap(level, next)) {
      next.clear();
      for (const Stretch& node : level) add_children(vocabulary, ids, node, depth, next);
    }
    first_child_.push_back(static_cast<std::uint32_t>(labels_.size()));
  }

  /// Calls `on_token(id, bytes)` for each token with which the text begins, the shortest first.
  template <class F>
  void each_prefix(std::string_view text, F&& on_token) const {
    std::size_t node = 0;
    for (std::size_t n = 0; n < text.size(); ++n) {
      const auto first = labels_.begin() + first_child_[node],
                 last = labels_.begin() + first_child_[node + 1];
      const auto byte = static_cast<unsigned char>(text[n]);
      const auto found = std::lower_bound(first, last, byte);
      if (found == last || *found != byte) return;
      node = static_cast<std::size_t>(found - labels_.begin());
      if (tokens_[node] != no_token) on_token(tokens_[node], n + 1);
    }
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return labels_.capacity() + first_child_.capacity() * 4 + tokens_.capacity() * sizeof(TokenId);
  }

 private:
  static constexpr std::size_t max_bytes = 512;

  /// Sorted ids whose texts have the bytes of one node in common.
  struct Stretch {
    std::size_t begin, end;
  };

  void add_children(const Vocabulary& vocabulary, const std::vector<TokenId>& ids, Stretch node,
                    std::size_t depth, std::vector<Stretch>& out) {
    first_child_.push_back(static_cast<std::uint32_t>(labels_.size()));
    while (node.begin < node.end && vocabulary.text(ids[node.begin]).size() == depth)
      ++node.begin;  // ends at the node
    while (node.begin < node.end) {
      const char byte = vocabulary.text(ids[node.begin])[depth];
      const auto other = std::find_if(ids.begin() + static_cast<std::ptrdiff_t>(node.begin),
                                      ids.begin() + static_cast<std::ptrdiff_t>(node.end),
                                      [&](TokenId id) { return vocabulary.text(id)[depth] != byte; });
      const auto end = static_cast<std::size_t>(other - ids.begin());
      labels_.push_back(static_cast<unsigned char>(byte));
      tokens_.push_back(vocabulary.text(ids[node.begin]).size() == depth + 1 ? ids[node.begin] : no_token);
      out.push_back({node.begin, end});
      node.begin = end;
    }
  }

  std::vector<unsigned char> labels_;
  std::vector<std::uint32_t> first_child_;
  std::vector<TokenId> tokens_;  // that ends at a node, or no_token
};

}  // namespace mica::text::detail
