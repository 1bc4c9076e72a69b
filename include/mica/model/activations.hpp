// SPDX-License-Identifier: Apache-2.0
//
// The scratch of a step: every buffer that a forward pass of up to `chunk` tokens writes, taken once when the model is
// made. Nothing is allocated while a step runs. Layers of different kinds use the same buffers in turn; each is as wide as
// the widest use.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/alloc/refused.hpp"
#include "mica/arch/config.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/block/attention.hpp"
#include "mica/block/experts.hpp"
#include "mica/kernel/quantize.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace mica::model {

/// How wide the buffers of a step must be, in numbers per token.
struct StepWidths {
  explicit StepWidths(const arch::Config& c)
      : q(c.most([](const auto& l) { return std::max(l.heads * l.q_stride(), l.delta_net.v_width()); })),
        kv(c.most([](const auto& l) { return std::max(l.kv_width(), 2 * l.delta_net.v_heads); })),
        attended(c.most([&c](const auto& l) {
          const bool sums = l.experts.shared_gate || l.experts.beside_dense;  // of outputs, (n, width)
          return std::max({l.q_width(), l.delta_net.v_width(), sums ? c.width : 0});
        })),
        hidden(std::max(c.per_layer_width, c.most([](const auto& l) {
          return std::max({l.ff_width, l.experts.shared_ff_width, l.delta_net.channels(), l.laurel_rank});
        }))),
        experts(c.most([](const auto& l) { return l.experts.count; })),
        used(c.most([](const auto& l) { return l.experts.used; })),
        expert_hidden(c.most([](const auto& l) { return l.experts.count == 0 ? 0 : l.experts.ff_width; })),
        codes(round_up(std::max({c.width, attended, hidden}), kernel::activation_group)),
        streams(c.streams == 1 ? 0 : c.streams),
        expert_codes(round_up(std::max(c.width, expert_hidden), kernel::activation_group)) {
    for (const arch::RopeConfig& rope : c.ropes) angles += rope.dims / 2;
  }

  std::size_t q, kv, attended;
  std::size_t hidden;  // of a dense feed-forward block, or the channels of a delta net
  std::size_t experts, used, expert_hidden;
  std::size_t codes, streams, expert_codes;
  std::size_t angles = 0;  // of all ropes
};

/// Buffers of one step, booked as activations; logits as logits.
template <Allocator A>
class Activations {
 public:
  /// fast8: products of many tokens follow kernel/fast8.hpp. Raises ErrorCode::budget when the allocator refuses.
  Activations(const arch::Config& config, std::size_t chunk, std::size_t logits_rows, std::size_t workers,
              bool fast8, A allocator);

  [[nodiscard]] std::size_t chunk() const noexcept { return chunk_; }

  using View = MatrixView<float>;
  [[nodiscard]] View residual(std::size_t n, std::size_t width) noexcept { return view(residual_, n, width); }
  [[nodiscard]] View normed(std::size_t n, std::size_t width) noexcept { return view(normed_, n, width); }
  [[nodiscard]] View q(std::size_t n, std::size_t width) noexcept { return view(q_, n, width); }
  [[nodiscard]] View k(std::size_t n, std::size_t width) noexcept { return view(k_, n, width); }
  [[nodiscard]] View v(std::size_t n, std::size_t width) noexcept { return view(v_, n, width); }
  [[nodiscard]] View attended(std::size_t n, std::size_t width) noexcept { return view(attended_, n, width); }
  [[nodiscard]] View gate(std::size_t n, std::size_t width) noexcept { return view(gate_, n, width); }
  [[nodiscard]] View up(std::size_t n, std::size_t width) noexcept { return view(up_, n, width); }
  [[nodiscard]] View branch(std::size_t n, std::size_t width) noexcept { return view(branch_, n, width); }
  [[nodiscard]] View per_layer(std::size_t n, std::size_t width) noexcept {
    return view(per_layer_, n, width);
  }
  /// Of models with several residual streams: the streams, what their coefficients come from, and the coefficients.
  [[nodiscard]] View streams(std::size_t n, std::size_t width) noexcept { return view(streams_, n, width); }
  [[nodiscard]] View modalities(std::size_t n, std::size_t width) noexcept {
    return view(modalities_, n, width);
  }
  [[nodiscard]] View coefficients(std::size_t n, std::size_t width) noexcept {
    return view(coefficients_, n, width);
  }
  [[nodiscard]] View router(std::size_t n, std::size_t experts) noexcept { return view(router_, n, experts); }
  /// Tables of one rope, (n, pairs).
  [[nodiscard]] View cos(std::size_t rope, std::size_t n) noexcept { return angles(cos_, rope, n); }
  [[nodiscard]] View sin(std::size_t rope, std::size_t n) noexcept { return angles(sin_, rope, n); }
  [[nodiscard]] View logits(std::size_t n, std::size_t width) noexcept { return view(logits_, n, width); }

  /// The int8 form of n rows; every product input of a step uses the same place in turn.
  [[nodiscard]] kernel::QuantizedRows codes(std::size_t n, std::size_t width) noexcept {
    return codes_.rows(n, width);
  }
  /// Scratch of the experts of one layer for n tokens.
  [[nodiscard]] block::ExpertScratch experts(std::size_t n, std::size_t width,
                                             const block::ExpertsConfig& config) noexcept;
  [[nodiscard]] float* attention(std::size_t worker) noexcept {
    return attention_.data() + worker * attention_floats_;
  }

 private:
  template <class T>
  [[nodiscard]] alloc::Buffer<T, A> take(std::size_t n,
                                         budget::Account account = budget::Account::activations) {
    auto buffer = alloc::Buffer<T, A>::make(allocator_.book_as(account), n);
    MICA_CHECK(buffer, budget, budget::name(account), ": ", n * sizeof(T), " bytes for steps of ", chunk_,
               " tokens ", alloc::refused(allocator_, n * sizeof(T)), "; use a smaller chunk");
    return std::move(*buffer);
  }
  /// Room for int8 rows.
  struct CodeBuffer {
    CodeBuffer(Activations& from, std::size_t rows, std::size_t width)
        : codes(from.take<std::int8_t>(rows * width)),
          scales(from.take<float>(rows * width / 32)),
          sums(from.take<std::int16_t>(rows * width / 16)),
          fast8(from.fast8_) {}
    [[nodiscard]] kernel::QuantizedRows rows(std::size_t n, std::size_t width) noexcept {
      MICA_ASSERT(n * width <= codes.size());
      return {codes.data(), scales.data(), sums.data(), n, width, fast8};
    }
    alloc::Buffer<std::int8_t, A> codes;
    alloc::Buffer<float, A> scales;
    alloc::Buffer<std::int16_t, A> sums;
    bool fast8;
  };

  [[nodiscard]] static View view(alloc::Buffer<float, A>& buffer, std::size_t n, std::size_t width) noexcept {
    MICA_ASSERT(n * width <= buffer.size());
    return {buffer.data(), n, width};
  }
  [[nodiscard]] View angles(alloc::Buffer<float, A>& buffer, std::size_t rope, std::size_t n) noexcept {
    const std::size_t first = first_angle_[rope], pairs = first_angle_[rope + 1] - first;
    return {buffer.data() + first * chunk_, n, pairs};
  }

  A allocator_;
  std::size_t chunk_;
  bool fast8_;
  StepWidths w_;
  std::size_t expert_rows_;                       // that experts work on at a time
  std::vector<std::size_t> first_angle_;          // of each rope, and the end
  alloc::Buffer<float, A> residual_;              // (chunk, width)
  alloc::Buffer<float, A> streams_;               // (chunk, streams * width)
  alloc::Buffer<float, A> modalities_;            // (chunk, streams)
  alloc::Buffer<float, A> coefficients_;          // (chunk, streams * streams)
  alloc::Buffer<float, A> normed_;                // (chunk, width)
  alloc::Buffer<float, A> branch_;                // (chunk, width): outputs that are not added at once
  alloc::Buffer<float, A> q_;                     // (chunk, q)
  alloc::Buffer<float, A> k_;                     // (chunk, kv)
  alloc::Buffer<float, A> v_;                     // (chunk, kv)
  alloc::Buffer<float, A> attended_;              // (chunk, attended)
  alloc::Buffer<float, A> gate_;                  // (chunk, hidden) or (expert_rows, expert_hidden)
  alloc::Buffer<float, A> up_;                    // the same
  alloc::Buffer<float, A> per_layer_;             // (chunk, layers * per_layer_width)
  alloc::Buffer<float, A> cos_;                   // (chunk, angles)
  alloc::Buffer<float, A> sin_;                   // (chunk, angles)
  CodeBuffer codes_;                              // (chunk, codes)
  alloc::Buffer<float, A> router_;                // (chunk, experts)
  alloc::Buffer<block::Choice, A> choices_;       // (chunk, used)
  alloc::Buffer<std::uint32_t, A> expert_begin_;  // (experts + 1)
  alloc::Buffer<std::uint32_t, A> row_token_;     // (chunk * used)
  alloc::Buffer<float, A> row_weight_;            // (chunk * used)
  alloc::Buffer<float, A> expert_values_;         // (expert_rows, width)
  CodeBuffer expert_codes_;                       // (expert_rows, expert_codes)
  std::size_t attention_floats_;
  alloc::Buffer<float, A> attention_;  // (workers, attention_floats)
  alloc::Buffer<float, A> logits_;     // (logits_rows, n_vocab)
};

namespace detail {

[[nodiscard]] inline std::vector<std::size_t> first_angles(const std::vector<arch::RopeConfig>& ropes) {
  std::vector<std::size_t> first{0};
  for (const arch::RopeConfig& rope : ropes) first.push_back(first.back() + rope.dims / 2);
  return first;
}

/// Whether a block's output waits in scratch before it is added.
[[nodiscard]] inline bool has_branches(const arch::Config& c) {
  return c.residual_scale != 1 || c.per_layer_width != 0 || c.streams > 1 || c.most([](const auto& l) {
    return l.post_norms || l.experts.shared_gate || l.experts.beside_dense;
  }) != 0;
}

}  // namespace detail

template <Allocator A>
Activations<A>::Activations(const arch::Config& config, std::size_t chunk, std::size_t logits_rows,
                            std::size_t workers, bool fast8, A allocator)
    : allocator_(allocator.book_as(budget::Account::activations)),
      chunk_(chunk),
      fast8_(fast8),
      w_(config),
      expert_rows_(w_.experts == 0 ? 0 : std::max(chunk, w_.used)),
      first_angle_(detail::first_angles(config.ropes)),
      residual_(take<float>(chunk * config.width)),
      streams_(take<float>(chunk * w_.streams * config.width)),
      modalities_(take<float>(chunk * w_.streams)),
      coefficients_(take<float>(chunk * w_.streams * w_.streams)),
      normed_(take<float>(chunk * config.width)),
      branch_(take<float>(detail::has_branches(config) ? chunk * config.width : 0)),
      q_(take<float>(chunk * w_.q)),
      k_(take<float>(chunk * w_.kv)),
      v_(take<float>(chunk * w_.kv)),
      attended_(take<float>(chunk * w_.attended)),
      gate_(take<float>(std::max(chunk * w_.hidden, expert_rows_ * w_.expert_hidden))),
      up_(take<float>(std::max(chunk * w_.hidden, expert_rows_ * w_.expert_hidden))),
      per_layer_(take<float>(chunk * config.layers.size() * config.per_layer_width)),
      cos_(take<float>(chunk * w_.angles)),
      sin_(take<float>(chunk * w_.angles)),
      codes_(*this, chunk, w_.codes),
      router_(take<float>(chunk * w_.experts)),
      choices_(take<block::Choice>(chunk * w_.used)),
      expert_begin_(take<std::uint32_t>(w_.experts + 1)),
      row_token_(take<std::uint32_t>(chunk * w_.used)),
      row_weight_(take<float>(chunk * w_.used)),
      expert_values_(take<float>(expert_rows_ * config.width)),
      expert_codes_(*this, expert_rows_, w_.expert_codes),
      attention_floats_(block::AttentionScratch::floats(
          config.most([](const auto& l) { return l.kv_heads == 0 ? 0 : l.group(); }),
          config.most([](const auto& l) { return l.head_dim; }))),
      attention_(take<float>(workers * attention_floats_)),
      logits_(take<float>(logits_rows * config.n_vocab, budget::Account::logits)) {}

template <Allocator A>
block::ExpertScratch Activations<A>::experts(std::size_t n, std::size_t width,
                                             const block::ExpertsConfig& config) noexcept {
  const std::size_t rows = n * config.used, most = expert_rows_;
  block::ExpertScratch s;
  s.capacity = most;
  s.rows = {choices_.span().first(rows), expert_begin_.span().first(config.count + 1),
            row_token_.span().first(rows), row_weight_.span().first(rows)};
  s.values = view(expert_values_, most, width);
  s.gate_out = view(gate_, most, config.ff_width);
  s.up_out = view(up_, most, config.ff_width);
  s.input_codes = expert_codes_.rows(most, width);
  s.hidden_codes = expert_codes_.rows(most, config.ff_width);
  return s;
}

}  // namespace mica::model
