// SPDX-License-Identifier: Apache-2.0
//
// The memory of a step of up to `chunk` tokens, allocated once when the model is made: nothing is allocated
// while a step runs. Blocks request their buffers (block/scratch.hpp); all blocks use the same frame, one
// after the other.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/arch/config.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/block/scratch.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mica::model {

/// Buffers of one step, booked as activations; logits as logits.
template <Allocator A>
class Activations {
 public:
  using View = MatrixView<float>;

  static constexpr std::size_t dense_rows = 64;  // that go through dense layers together

  /// needs: of the blocks. Raises ErrorCode::budget when the allocator refuses.
  Activations(const arch::Config& config, const block::StepSizes& sizes, std::size_t logits_rows,
              block::ScratchNeeds needs, A allocator)
      : allocator_(allocator.book_as(budget::Account::activations)),
        sizes_(sizes),
        needs_(std::move(needs)),
        whole_texts_(config.encodes),
        widest_dense_(widest_dense(config)),
        first_angle_(first_angles(config.ropes)),
        residual_(take<float>(sizes.chunk * sizes.width)),
        input_(take<float>(sizes.chunk * sizes.width)),
        branch_(take<float>(needs_.branch || config.residual_scale != 1 ? sizes.chunk * sizes.width : 0)),
        codes_(take<std::int8_t>(codes_size())),
        scales_(take<float>(codes_size() / 32)),
        sums_(take<std::int16_t>(codes_size() / 16)),
        cos_(take<float>(sizes.chunk * first_angle_.back())),
        sin_(take<float>(sizes.chunk * first_angle_.back())),
        frame_(take<std::byte>(needs_.bytes)),
        kept_(take<float>(sizes.chunk * needs_.kept_width())),
        mtp_input_(take<float>(config.mtp ? sizes.chunk * 2 * sizes.width : 0)),
        dense_(take<float>(2 * std::min(sizes.chunk, dense_rows) * widest_dense_)),
        logits_(take<float>(config.encodes ? 0 : logits_rows * config.n_vocab, budget::Account::logits)) {}

  [[nodiscard]] std::size_t chunk() const noexcept { return sizes_.chunk; }
  /// The residual stream of n tokens.
  [[nodiscard]] View residual(std::size_t n) noexcept { return view(residual_, n, sizes_.width); }
  /// What products read: rows as wide as the model.
  [[nodiscard]] View input(std::size_t n) noexcept { return view(input_, n, sizes_.width); }
  /// The int8 form of what products read; every product of a step uses the same place in turn.
  [[nodiscard]] kernel::QuantizedRows codes(std::size_t n, std::size_t width) noexcept {
    MICA_ASSERT(n * width <= codes_.size());
    return {codes_.data(), scales_.data(), sums_.data(), n, width, sizes_.fast8_from};
  }
  /// The output of a block that is normed before it is added.
  [[nodiscard]] View branch(std::size_t n) noexcept { return view(branch_, n, sizes_.width); }
  /// Tables of one rope, (n, pairs).
  [[nodiscard]] View cos(std::size_t rope, std::size_t n) noexcept { return angles(cos_, rope, n); }
  [[nodiscard]] View sin(std::size_t rope, std::size_t n) noexcept { return angles(sin_, rope, n); }
  /// Rows that a head for multi-token prediction reads: embedding and hidden state, (n, 2 * width).
  [[nodiscard]] View mtp_input(std::size_t n) noexcept { return view(mtp_input_, n, 2 * sizes_.width); }
  /// One of two places for rows that dense layers read and write, n <= dense_rows.
  [[nodiscard]] View dense(std::size_t place, std::size_t n, std::size_t width) noexcept {
    MICA_ASSERT(2 * n * width <= dense_.size());
    return {dense_.data() + place * (dense_.size() / 2), n, width};
  }
  [[nodiscard]] View logits(std::size_t n, std::size_t width) noexcept { return view(logits_, n, width); }
  /// The scratch of one block for n tokens.
  [[nodiscard]] block::Scratch scratch(std::size_t n) noexcept {
    return {sizes_, needs_, n, frame_.data(), kept_.data()};
  }

 private:
  [[nodiscard]] static std::vector<std::size_t> first_angles(const std::vector<arch::RopeConfig>& ropes) {
    std::vector<std::size_t> first{0};
    for (const arch::RopeConfig& rope : ropes) first.push_back(first.back() + rope.dims / 2);
    return first;
  }
  template <class T>
  [[nodiscard]] alloc::Buffer<T, A> take(std::size_t n,
                                         budget::Account account = budget::Account::activations) {
    auto buffer = alloc::Buffer<T, A>::make(allocator_.book_as(account), n);
    MICA_CHECK(buffer, budget, budget::name(account), ": ", n * sizeof(T), " bytes for steps of ",
               sizes_.chunk, " tokens ", alloc::refused(allocator_, n * sizeof(T)),
               whole_texts_ ? "; use a shorter context and a smaller chunk: a step holds whole texts"
                            : "; use a smaller chunk");
    return std::move(*buffer);
  }
  /// 0: the model has no dense layers.
  [[nodiscard]] static std::size_t widest_dense(const arch::Config& config) noexcept {
    std::size_t widest = config.dense.empty() ? 0 : config.width;
    for (const arch::DenseLayer& layer : config.dense) widest = std::max(widest, layer.width);
    return widest;
  }
  [[nodiscard]] std::size_t codes_size() const noexcept {
    const std::size_t all =
        sizes_.chunk * round_up(std::max(sizes_.width, needs_.input_width), kernel::activation_group);
    return std::max(all,
                    std::min(sizes_.chunk, dense_rows) * round_up(widest_dense_, kernel::activation_group));
  }
  [[nodiscard]] static View view(alloc::Buffer<float, A>& buffer, std::size_t n, std::size_t width) noexcept {
    MICA_ASSERT(n * width <= buffer.size());
    return {buffer.data(), n, width};
  }
  [[nodiscard]] View angles(alloc::Buffer<float, A>& buffer, std::size_t rope, std::size_t n) noexcept {
    const std::size_t first = first_angle_[rope], pairs = first_angle_[rope + 1] - first;
    return {buffer.data() + first * sizes_.chunk, n, pairs};
  }

  A allocator_;
  block::StepSizes sizes_;
  block::ScratchNeeds needs_;
  bool whole_texts_;                      // a step holds them
  std::size_t widest_dense_;              // of rows that dense layers read or write; 0: there are none
  std::vector<std::size_t> first_angle_;  // of each rope, and the end
  alloc::Buffer<float, A> residual_;      // (chunk, width)
  alloc::Buffer<float, A> input_;         // (chunk, width)
  alloc::Buffer<float, A> branch_;        // (chunk, width), or empty
  alloc::Buffer<std::int8_t, A> codes_;   // (chunk, widest input)
  alloc::Buffer<float, A> scales_;        // one for 32 of them
  alloc::Buffer<std::int16_t, A> sums_;   // one for 16 of them
  alloc::Buffer<float, A> cos_;           // (chunk, pairs of all ropes)
  alloc::Buffer<float, A> sin_;           // (chunk, pairs of all ropes)
  alloc::Buffer<std::byte, A> frame_;     // of the largest block
  alloc::Buffer<float, A> kept_;          // (chunk, what outlives blocks)
  alloc::Buffer<float, A> mtp_input_;     // (chunk, 2 * width), or empty
  alloc::Buffer<float, A> dense_;         // 2 x (dense_rows, widest of the dense layers), or empty
  alloc::Buffer<float, A> logits_;        // (logits_rows, n_vocab), empty without an output matrix
};

}  // namespace mica::model
