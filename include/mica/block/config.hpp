// SPDX-License-Identifier: Apache-2.0
//
// What the blocks of one layer must know, in numbers. Families fill it from a file's metadata (arch/config.hpp); whatever
// differs from family to family, or from layer to layer, is a field here and not a type.
#pragma once

#include "mica/kernel/gated.hpp"
#include "mica/kernel/rope.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace mica::block {

/// Rotary embedding. The angle of pair i at position p is p * f(i); cosine and sine are multiplied by `magnitude`.
///   f(i) = base^(-2i / dims) / (factors[i] * scale), bent by YaRN where it is on (block/rope.hpp)
struct RopeConfig {
  /// YaRN (Peng et al., arXiv 2309.00071): slow pairs are scaled by `factor`, fast ones are not.
  struct Yarn {
    double factor = 1;                 // 1: off
    std::size_t original_context = 0;  // tokens
    double beta_fast = 32;             // turns within original_context above which a pair is left alone
    double beta_slow = 1;              // turns below which it is scaled in full
    double strength = 1;               // 0: every pair is scaled
  };

  kernel::RopePairs pairs = kernel::RopePairs::adjacent;
  std::size_t dims = 0;  // rotated numbers of a head, even
  double base = 10000;
  double scale = 1;                 // linear scaling
  std::vector<float> factors = {};  // (dims / 2) or empty: all 1
  double magnitude = 1;
  Yarn yarn = {};
  std::vector<float> long_factors = {};  // (dims / 2): in place of factors when n_ctx > original_context
  std::size_t original_context = 0;      // tokens; only read with long_factors
};

/// How far back a token sees.
enum class Reach : std::uint8_t {
  all,     ///< every token before it
  window,  ///< the last `reach_tokens`, itself among them
  chunk,   ///< back to the last position that is a multiple of `reach_tokens`
};

/// What mixes the tokens of a layer.
enum class Mixer : std::uint8_t { attention, delta_net };

/// How queries and keys are normed.
enum class HeadNorm : std::uint8_t {
  none,
  weighted,          ///< RMSNorm per head with a weight, before rotation
  plain_after_rope,  ///< RMSNorm per head without one, after rotation, where a layer rotates
};

/// A gated delta net (arXiv 2412.06464). Its keys are as wide as its queries.
struct DeltaNetConfig {
  std::size_t k_heads = 0;  // divides v_heads
  std::size_t v_heads = 0;
  std::size_t k_dim = 0;
  std::size_t v_dim = 0;
  std::size_t taps = 0;  // of the convolution over tokens
  bool heads_interleaved =
      false;                 // value head h uses key head h / (v_heads / k_heads), otherwise h % k_heads
  bool fused_gates = false;  // one tensor ssm_ba, ordered by key head: its b, its a

  [[nodiscard]] std::size_t k_width() const noexcept { return k_heads * k_dim; }
  [[nodiscard]] std::size_t v_width() const noexcept { return v_heads * v_dim; }
  [[nodiscard]] std::size_t channels() const noexcept { return 2 * k_width() + v_width(); }
  [[nodiscard]] std::size_t key_head(std::size_t v_head) const noexcept {
    return heads_interleaved ? v_head / (v_heads / k_heads) : v_head % k_heads;
  }
};

/// How the router's logits become weights.
enum class Routing : std::uint8_t { softmax, sigmoid };

/// A mixture of experts.
struct ExpertsConfig {
  std::size_t count = 0;  // 0: the layer has none
  std::size_t used = 0;   // by a token
  std::size_t ff_width = 0;
  Routing routing = Routing::softmax;
  bool normalized = true;           // the weights of the chosen ones are made to sum to 1
  bool weighted_input = false;      // the weight multiplies what goes into an expert, not what comes out
  bool scaled_router = false;       // the router reads RMSNorm(residual) * scale / sqrt(width) (Gemma 4)
  std::size_t shared_ff_width = 0;  // of the expert that every token uses; 0: none
  bool shared_gate = false;         // its output is multiplied by sigmoid(gate . x)
  bool beside_dense = false;        // a dense block runs too, each with norms of its own (Gemma 4)
};

inline constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// One layer. Widths in numbers per token.
struct LayerConfig {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;
  std::size_t ff_width = 0;  // of the dense feed-forward block; 0: it has none

  Mixer mixer = Mixer::attention;
  Reach reach = Reach::all;
  std::size_t reach_tokens = 0;
  std::size_t rope = 0;          // which of the model's RopeConfigs; none: it does not rotate
  float attention_scale = 0;     // of scores; 0: 1 / sqrt(head_dim)
  float attention_softcap = 0;   // 0: none
  std::size_t kv_source = none;  // the layer whose keys and values it reads; none: its own
  bool v_from_k = false;         // values are the keys before norm and rotation
  bool q_gate = false;  // queries come as [query, gate] per head; the output is multiplied by sigmoid(gate)
  bool sinks = false;   // a learnt score per head takes part in the softmax and gives nothing
  HeadNorm head_norm = HeadNorm::none;
  bool v_norm = false;  // RMSNorm without weight on every value head
  bool qkv_bias = false;
  bool output_bias = false;
  float position_scale =
      0;  // queries grow by 1 + this * ln(1 + floor((pos + position_offset) / position_step))
  std::size_t position_offset = 1;
  std::size_t position_step = 1;
  DeltaNetConfig delta_net = {};

  std::size_t laurel_rank = 0;  // of a learnt residual beside attention (Gemma 3n); 0: none
  bool post_norms = false;      // the outputs of both blocks are normed before they are added
  kernel::Gate gate = kernel::Gate::silu;
  bool ff_bias = false;
  ExpertsConfig experts = {};
  bool expert_bias = false;   // router and experts have biases (gpt-oss)
  float sparsity = 0;         // Gaussian top-k of the gate: numbers below mean + this * deviation become 0
  bool output_scale = false;  // the residual stream is multiplied by a number at the end of the layer

  [[nodiscard]] bool attends() const noexcept { return mixer == Mixer::attention; }
  [[nodiscard]] bool rotates() const noexcept { return attends() && rope != none; }
  [[nodiscard]] bool stores_kv() const noexcept { return attends() && kv_source == none; }
  [[nodiscard]] std::size_t q_width() const noexcept { return heads * head_dim; }
  [[nodiscard]] std::size_t q_stride() const noexcept { return q_gate ? 2 * head_dim : head_dim; }
  [[nodiscard]] std::size_t kv_width() const noexcept { return kv_heads * head_dim; }
  [[nodiscard]] std::size_t group() const noexcept { return heads / kv_heads; }

  /// The first position that a token at `pos` sees.
  [[nodiscard]] std::size_t first_seen(std::size_t pos) const noexcept {
    if (reach == Reach::window) return pos + 1 > reach_tokens ? pos + 1 - reach_tokens : 0;
    if (reach == Reach::chunk) return pos / reach_tokens * reach_tokens;
    return 0;
  }
};

}  // namespace mica::block
