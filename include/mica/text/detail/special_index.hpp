// SPDX-License-Identifier: Apache-2.0
//
// The tokens that are found in a text first: control, user-defined and unknown ones. A sorted list that a
// match narrows byte by byte; texts of thousands of such tokens cost one binary search per matching byte.
#pragma once

#include "mica/text/detail/text_arena.hpp"
#include "mica/text/token_id.hpp"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <string_view>
#include <vector>

namespace mica::text::detail {

class SpecialIndex {
 public:
  SpecialIndex() = default;

  /// Takes ids in rising order; of equal texts the first stays, empty and very long texts are left out.
  /// Limit: a token longer than 512 bytes is never found in a text, so that the search stays linear.
  SpecialIndex(const TextArena& texts, std::vector<TokenId> ids) : ids_(std::move(ids)) {
    std::erase_if(ids_, [&](TokenId id) { return texts[id].empty() || texts[id].size() > longest_bytes; });
    std::stable_sort(ids_.begin(), ids_.end(), [&](TokenId a, TokenId b) { return texts[a] < texts[b]; });
    const auto same = [&](TokenId a, TokenId b) { return texts[a] == texts[b]; };
    ids_.erase(std::unique(ids_.begin(), ids_.end(), same), ids_.end());
    ids_.shrink_to_fit();
    for (const TokenId id : ids_) starts_.set(static_cast<unsigned char>(texts[id][0]));
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
