// SPDX-License-Identifier: Apache-2.0
//
// The parameters of attention in one layer. A difference between families, or between layers, is a field here
// and not a type.
#pragma once

#include "mica/ranks/division.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace mica::block {

/// The reach of a token.
enum class Reach : std::uint8_t {
  all,     ///< every token before it, and with AttentionConfig::bidirectional every token of its text
  window,  ///< the last `reach_tokens`, itself among them
  chunk,   ///< back to the last position that is a multiple of `reach_tokens`
};

/// How queries and keys are normed.
enum class HeadNorm : std::uint8_t {
  none,
  weighted,          ///< RMSNorm per head with a weight, before rotation
  plain_after_rope,  ///< RMSNorm per head without one, after rotation, where a layer rotates
};

/// None: no layer, no rope, no place.
inline constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// One layer. Widths in numbers per token.
struct AttentionConfig {
  std::size_t heads = 0;     // of queries
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;  // numbers of a head, of queries, keys and values

  Reach reach = Reach::all;      // the previous tokens that a token sees
  std::size_t reach_tokens = 0;  // not read for Reach::all
  /// A token also sees those behind it, all of them or as far as those before it: a step has whole texts.
  /// Keys and values live for one layer. Not with Reach::chunk.
  bool bidirectional = false;
  std::size_t rope = 0;          // which of the model's RopeConfigs; none: it does not rotate
  float attention_scale = 0;     // of scores; 0: 1 / sqrt(head_dim)
  float attention_softcap = 0;   // 0: none
  std::size_t kv_source = none;  // the layer before it whose keys and values it reads; none: its own
  bool v_from_k = false;         // values are the keys before norm and rotation
  bool q_gate = false;  // queries come as [query, gate] per head; the output is multiplied by sigmoid(gate)
  bool sinks = false;   // a learnt score per head takes part in the softmax and gives nothing
  HeadNorm head_norm = HeadNorm::none;  // of queries and keys
  bool v_norm = false;                  // RMSNorm without weight on every value head
  bool qkv_bias = false;                // numbers are added to queries, keys and values
  bool output_bias = false;             // and to the output
  /// Queries grow by 1 + position_scale * ln(1 + floor((pos + position_offset) / position_step)).
  float position_scale = 0;
  std::size_t position_offset = 1;
  std::size_t position_step = 1;
  bool pre_norm = true;  // the input is normed
  /// Exact products also read second codes of their inputs (kernel/second_codes.hpp). Not with pre_norm.
  /// Ranks do not divide such a layer.
  bool second_codes = false;
  bool post_norm = false;  // the output is normed before it is added
  /// ALiBi (Press et al., arXiv 2108.12409): scores lose slope(head) for each token of distance; 0: none.
  float alibi_max = 0;  // the exponent of the slopes, 8 in the paper
  /// Where ranks divide the layer: KV heads of this one, which are then kv_heads, and query heads of each.
  ranks::Part divided = {};    // all == 0: it is whole
  std::size_t group_size = 0;  // 0: heads / kv_heads

  /// Makes tokens see the last `tokens` only, themselves among them; in both directions, where attention is
  /// bidirectional.
  void look_through_window(std::size_t tokens) noexcept {
    reach = Reach::window;
    reach_tokens = tokens;
  }
  /// What follows from the fields. Widths are numbers per token, q_stride() those of a head with its gate,
  /// group() the query heads of a kv_head.
  [[nodiscard]] bool rotates() const noexcept { return rope != none; }
  [[nodiscard]] bool stores_kv() const noexcept { return kv_source == none; }
  [[nodiscard]] std::size_t q_width() const noexcept { return heads * head_dim; }
  [[nodiscard]] std::size_t q_stride() const noexcept { return q_gate ? 2 * head_dim : head_dim; }
  [[nodiscard]] std::size_t kv_width() const noexcept { return kv_heads * head_dim; }
  [[nodiscard]] std::size_t group() const noexcept { return group_size != 0 ? group_size : heads / kv_heads; }
  /// The KV heads of this rank, among all.
  [[nodiscard]] ranks::Part kv_part() const noexcept {
    return divided.all == 0 ? ranks::all_of(kv_heads) : divided;
  }
  /// Numbers of all heads that the output reads.
  [[nodiscard]] std::size_t all_q_width() const noexcept { return kv_part().all * group() * head_dim; }

  /// What one rank has of the layer: whole KV heads with their query heads. Slopes of ALiBi are those of all
  /// heads, so that such a layer stays whole, as one with second codes does.
  [[nodiscard]] AttentionConfig own(const ranks::Division& ranks) const noexcept {
    AttentionConfig c = *this;
    if (ranks.size() == 1 || alibi_max != 0 || second_codes) return c;
    c.group_size = group();
    c.divided = ranks.own(kv_heads);
    c.kv_heads = c.divided.count;
    c.heads = c.kv_heads * c.group_size;
    return c;
  }

  /// The first position that a token at `pos` sees.
  [[nodiscard]] std::size_t first_seen(std::size_t pos) const noexcept {
    if (reach == Reach::window) return pos + 1 > reach_tokens ? pos + 1 - reach_tokens : 0;
    if (reach == Reach::chunk) return pos / reach_tokens * reach_tokens;
    return 0;
  }
  /// The position behind the last one that a token at `pos` sees, of a text of `tokens`.
  [[nodiscard]] std::size_t end_seen(std::size_t pos, std::size_t tokens) const noexcept {
    if (!bidirectional) return pos + 1;
    return reach == Reach::window ? std::min(tokens, pos + reach_tokens) : tokens;
  }
};

}  // namespace mica::block
