// SPDX-License-Identifier: Apache-2.0
//
// The scratch of blocks. One function of a block, buffers(), requests it: a Scratch without memory counts
// bytes, one with memory returns views. The blocks of a step run one after the other, and the buffers of each
// begin at the beginning of the same frame:
//
//   frame   | queries | keys | values | attended | workers |     attention
//           | gate | up |                                        then the feed-forward block
//
// Buffers that later blocks read too are outside of the frame, and are found by a key: kept(). The step has
// the residual stream, the input of products (rows and their codes) and the branch that waits for its norm.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/base/matrix_view.hpp"
#include "mica/kernel/quantize.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mica::block {

/// Numbers of a step that sizes of buffers depend on.
struct StepSizes {
  std::size_t chunk = 0;       // tokens at most
  std::size_t width = 0;       // of the model
  std::size_t workers = 1;     // of the executor
  std::size_t fast8_from = 0;  // fewest tokens of products that may follow kernel/fast8.hpp; 0: none
};

/// Rows of which each rank has some columns, in units; `all` has room for those of all ranks.
struct DividedRows {
  MatrixView<float> own;  // (n, columns of this rank)
  std::size_t unit = 1;   // columns
  MatrixView<float> all;  // (n, columns)
};

/// Memory for int8 rows.
struct CodeBuffer {
  kernel::QuantizedRows all;  // with the sizes that were requested

  /// As (n, width).
  [[nodiscard]] kernel::QuantizedRows rows(std::size_t n, std::size_t width) const noexcept {
    MICA_ASSERT(n * width <= all.rows * all.cols);
    return {all.codes, all.scales, all.sums, n, width, all.fast8_from};
  }
};

/// The requirements of a model's blocks in a step.
struct ScratchNeeds {
  /// A buffer that keeps its numbers from one layer to the next, known by the address `key`.
  struct Kept {
    const void* key = nullptr;  // of an object that lives as long as the program
    std::size_t width = 0;      // per token
    std::size_t first = 0;      // numbers per token before it
  };
  std::size_t bytes = 0;            // of the frame
  std::size_t input_width = 0;      // of the widest rows that products read
  std::size_t exchanged_width = 0;  // of the widest rows that ranks exchange, but for those of the model
  bool branch = false;              // the output of a block is normed before it is added
  std::vector<Kept> kept = {};      // in the order of their first use

  /// Numbers per token of all kept buffers.
  [[nodiscard]] std::size_t kept_width() const noexcept {
    return kept.empty() ? 0 : kept.back().first + kept.back().width;
  }
};

/// Counts the scratch of a block, or cuts it.
class Scratch {
 public:
  /// Counts for steps of the largest size.
  Scratch(const StepSizes& sizes, ScratchNeeds& needs) noexcept
      : sizes_(sizes), n_(sizes.chunk), counted_(&needs), needs_(needs) {}
  /// Cuts for a step of n tokens. frame: needs.bytes; kept: (chunk, needs.kept_width()).
  Scratch(const StepSizes& sizes, const ScratchNeeds& needs, std::size_t n, std::byte* frame,
          float* kept) noexcept
      : sizes_(sizes), n_(n), needs_(needs), frame_(frame), kept_(kept) {}

  [[nodiscard]] const StepSizes& sizes() const noexcept { return sizes_; }  // of the largest step

  /// Memory of T; its numbers are not initialised.
  template <class T>
  [[nodiscard]] std::span<T> items(std::size_t n) noexcept {
    return {memory<T>(n), n};
  }
  /// (n, width), with n the tokens of the step.
  [[nodiscard]] MatrixView<float> rows(std::size_t width) noexcept { return rows(n_, width); }
  [[nodiscard]] MatrixView<float> rows(std::size_t n, std::size_t width) noexcept {
    return {memory<float>(n * width), n, width};
  }
  /// The same, of which each rank has some columns.
  [[nodiscard]] MatrixView<float> exchanged(std::size_t n, std::size_t width) noexcept {
    if (counted_ != nullptr) counted_->exchanged_width = std::max(counted_->exchanged_width, width);
    return rows(n, width);
  }
  [[nodiscard]] MatrixView<float> exchanged(std::size_t width) noexcept { return exchanged(n_, width); }
  /// For int8 rows, (n, width), of any n.
  [[nodiscard]] CodeBuffer codes(std::size_t n, std::size_t width) noexcept {
    const std::size_t numbers = n * round_up(width, kernel::activation_group);
    kernel::QuantizedRows all{.rows = n, .cols = n == 0 ? 0 : numbers / n, .fast8_from = sizes_.fast8_from};
    all.codes = memory<std::int8_t>(numbers);
    all.scales = memory<float>(numbers / 32);
    all.sums = memory<std::int16_t>(numbers / 16);
    return {all};
  }

  /// The next buffers may reuse the memory after `at`: its contents are not needed any more.
  [[nodiscard]] std::size_t at() const noexcept { return used_; }
  void rewind(std::size_t at) noexcept { used_ = at; }

  /// Products of the block read rows of this width. The width of the model need not be announced.
  void input(std::size_t width) noexcept {
    if (counted_ != nullptr) counted_->input_width = std::max(counted_->input_width, width);
  }
  /// The output of the block is normed before it is added.
  void branch(bool normed) noexcept {
    if (counted_ != nullptr) counted_->branch = counted_->branch || normed;
  }
  /// (n, width) that outlive the block. All blocks that name the key have the same numbers.
  [[nodiscard]] MatrixView<float> kept(const void* key, std::size_t width) {
    const std::vector<ScratchNeeds::Kept>& all = needs_.kept;
    std::size_t i = 0;
    while (i < all.size() && all[i].key != key) ++i;
    if (counted_ != nullptr) {
      if (i == all.size()) counted_->kept.push_back({key, width, counted_->kept_width()});
      return {};
    }
    MICA_ASSERT(i < all.size() && all[i].width == width);
    return {kept_ + sizes_.chunk * all[i].first, n_, width};
  }

 private:
  static constexpr std::size_t alignment = 128;

  template <class T>
  [[nodiscard]] T* memory(std::size_t n) noexcept {
    std::byte* const at = frame_ == nullptr ? nullptr : frame_ + used_;
    use(used_ + round_up(n * sizeof(T), alignment));
    return reinterpret_cast<T*>(at);
  }
  void use(std::size_t end) noexcept {
    used_ = end;
    if (counted_ != nullptr) counted_->bytes = std::max(counted_->bytes, end);
    MICA_ASSERT(end <= needs_.bytes);
  }

  const StepSizes& sizes_;
  std::size_t n_;
  ScratchNeeds* counted_ = nullptr;
  const ScratchNeeds& needs_;
  std::byte* frame_ = nullptr;
  float* kept_ = nullptr;
  std::size_t used_ = 0;
};

}  // namespace mica::block
