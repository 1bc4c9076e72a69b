// SPDX-License-Identifier: Apache-2.0
//
// The scratch of a step: every buffer that a forward pass of up to `chunk` tokens writes, taken once when the model is
// made. Nothing is allocated while a step runs.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/arch/config.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/block/attention.hpp"
#include "mica/kernel/quantize.hpp"

#include <algorithm>
#include <cstddef>

namespace mica::model {

/// Buffers of one step, booked as activations; logits as logits.
template <Allocator A>
class Activations {
 public:
  /// Raises ErrorCode::budget when the allocator refuses.
  Activations(const arch::Config& config, std::size_t chunk, std::size_t logits_rows, std::size_t workers,
              A allocator)
      : allocator_(alloc::for_account(allocator, budget::Account::activations)),
        chunk_(chunk),
        residual_(take<float>(chunk * config.width)),
        normed_(take<float>(chunk * config.width)),
        q_(take<float>(chunk * config.max_q_width())),
        k_(take<float>(chunk * config.max_kv_width())),
        v_(take<float>(chunk * config.max_kv_width())),
        attended_(take<float>(chunk * config.max_q_width())),
        gate_(take<float>(chunk * config.max_ff_width())),
        up_(take<float>(chunk * config.max_ff_width())),
        cos_(take<float>(chunk * config.rope.dims / 2)),
        sin_(take<float>(chunk * config.rope.dims / 2)),
        code_width_(
            round_up(std::max({config.width, config.max_q_width(), config.max_ff_width()}), std::size_t{32})),
        codes_(take<std::int8_t>(chunk * code_width_)),
        scales_(take<float>(chunk * code_width_ / 32)),
        sums_(take<std::int16_t>(chunk * code_width_ / 16)),
        attention_floats_(block::AttentionScratch::floats(config.max_group(), config.max_head_dim())),
        attention_(take<float>(workers * attention_floats_)),
        logits_(take<float>(logits_rows * config.n_vocab, budget::Account::logits)) {}

  [[nodiscard]] std::size_t chunk() const noexcept { return chunk_; }

  [[nodiscard]] MatrixView<float> residual(std::size_t n, std::size_t width) noexcept {
    return view(residual_, n, width);
  }
  [[nodiscard]] MatrixView<float> normed(std::size_t n, std::size_t width) noexcept {
    return view(normed_, n, width);
  }
  [[nodiscard]] MatrixView<float> q(std::size_t n, std::size_t width) noexcept { return view(q_, n, width); }
  [[nodiscard]] MatrixView<float> k(std::size_t n, std::size_t width) noexcept { return view(k_, n, width); }
  [[nodiscard]] MatrixView<float> v(std::size_t n, std::size_t width) noexcept { return view(v_, n, width); }
  [[nodiscard]] MatrixView<float> attended(std::size_t n, std::size_t width) noexcept {
    return view(attended_, n, width);
  }
  [[nodiscard]] MatrixView<float> gate(std::size_t n, std::size_t width) noexcept {
    return view(gate_, n, width);
  }
  [[nodiscard]] MatrixView<float> up(std::size_t n, std::size_t width) noexcept {
    return view(up_, n, width);
  }
  [[nodiscard]] MatrixView<float> cos(std::size_t n, std::size_t pairs) noexcept {
    return view(cos_, n, pairs);
  }
  [[nodiscard]] MatrixView<float> sin(std::size_t n, std::size_t pairs) noexcept {
    return view(sin_, n, pairs);
  }
  [[nodiscard]] MatrixView<float> logits(std::size_t n, std::size_t width) noexcept {
    return view(logits_, n, width);
  }

  /// The int8 form of n rows; every product input of a step uses the same place in turn.
  [[nodiscard]] kernel::QuantizedRows codes(std::size_t n, std::size_t width) noexcept {
    MICA_ASSERT(width <= code_width_);
    return {codes_.data(), scales_.data(), sums_.data(), n, width};
  }
  [[nodiscard]] float* attention(std::size_t worker) noexcept {
    return attention_.data() + worker * attention_floats_;
  }

 private:
  template <class T>
  [[nodiscard]] alloc::Buffer<T, A> take(std::size_t n,
                                         budget::Account account = budget::Account::activations) {
    auto buffer = alloc::Buffer<T, A>::make(alloc::for_account(allocator_, account), n);
    MICA_CHECK(buffer, budget, budget::name(account), ": ", n * sizeof(T), " bytes for steps of ", chunk_,
               " tokens do not fit the memory budget; use a smaller chunk");
    return std::move(*buffer);
  }
  [[nodiscard]] static MatrixView<float> view(alloc::Buffer<float, A>& buffer, std::size_t n,
                                              std::size_t width) noexcept {
    MICA_ASSERT(n * width <= buffer.size());
    return {buffer.data(), n, width};
  }

  A allocator_;
  std::size_t chunk_;
  alloc::Buffer<float, A> residual_;  // (chunk, width)
  alloc::Buffer<float, A> normed_;    // (chunk, width)
  alloc::Buffer<float, A> q_;         // (chunk, heads * head_dim)
  alloc::Buffer<float, A> k_;         // (chunk, kv_heads * head_dim)
  alloc::Buffer<float, A> v_;         // (chunk, kv_heads * head_dim)
  alloc::Buffer<float, A> attended_;  // (chunk, heads * head_dim)
  alloc::Buffer<float, A> gate_;      // (chunk, ff_width)
  alloc::Buffer<float, A> up_;        // (chunk, ff_width)
  alloc::Buffer<float, A> cos_;       // (chunk, dims / 2)
  alloc::Buffer<float, A> sin_;       // (chunk, dims / 2)
  std::size_t code_width_;
  alloc::Buffer<std::int8_t, A> codes_;  // (chunk, code_width)
  alloc::Buffer<float, A> scales_;       // (chunk, code_width / 32)
  alloc::Buffer<std::int16_t, A> sums_;  // (chunk, code_width / 16)
  std::size_t attention_floats_;
  alloc::Buffer<float, A> attention_;  // (workers, attention_floats)
  alloc::Buffer<float, A> logits_;     // (logits_rows, n_vocab)
};

}  // namespace mica::model
