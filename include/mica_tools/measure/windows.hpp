// SPDX-License-Identifier: Apache-2.0
//
// Divides a text into evaluation windows: whole windows of equal width; the remainder is dropped. In each
// window the model predicts every token of the second half but the first of it, so that it always has half a
// window of context. This is the chunking of llama-perplexity, so that figures can be compared.
//
//   position   0 ... width/2 - 1 | width/2 ...... width - 2 | width - 1
//              read              | read, and predicts next  | predicted only
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/token_id.hpp"
#include "mica/runtime/session.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica {

/// The evaluation windows of a text.
class Windows {
 public:
  static constexpr std::size_t min_width = 4;  // tokens of the shortest window

  /// bos: takes the place of the first token of each window when it is fed; empty for a vocabulary without.
  /// Raises ErrorCode::usage when the width is below min_width or the text shorter than a window.
  Windows(std::vector<TokenId> tokens, std::size_t width, std::optional<TokenId> bos)
      : tokens_(std::move(tokens)), width_(width), bos_(bos) {
    MICA_CHECK(width >= min_width, usage, "a window of ", width,
               " tokens has no second half; needed: ", min_width);
    MICA_CHECK(tokens_.size() >= width, usage, "the text has ", tokens_.size(), " tokens; a window takes ",
               width, ": use a smaller -c or a longer text");
  }

  [[nodiscard]] std::size_t size() const noexcept { return tokens_.size() / width_; }
  [[nodiscard]] std::size_t width() const noexcept { return width_; }  // tokens of a window
  /// The tokens of a window as the text has them. Requires i < size().
  [[nodiscard]] std::span<const TokenId> operator[](std::size_t i) const noexcept {
    MICA_ASSERT(i < size());
    return std::span(tokens_).subspan(i * width_, width_);
  }
  /// The same as they are fed, with BOS in its place.
  [[nodiscard]] std::vector<TokenId> fed(std::size_t i) const {
    std::vector<TokenId> tokens((*this)[i].begin(), (*this)[i].end());
    if (bos_) tokens.front() = *bos_;
    return tokens;
  }
  /// Predictions that count in a window.
  [[nodiscard]] std::size_t counted() const noexcept { return counted(width_); }
  [[nodiscard]] static constexpr std::size_t counted(std::size_t width) noexcept {
    return width - 1 - width / 2;
  }

  /// Feeds a window to an emptied session and calls on_row(logits, next), with a row of logits and the token
  /// that came next, for each prediction that counts, in order. At most model().logits_rows() rows exist at a
  /// time. The answer is ok too when `cancel` was set; rows are then missing.
  template <StepModel Model, class OnRow>
  [[nodiscard]] model::StepStatus run(Session<Model>& session, std::size_t i, const std::atomic<bool>* cancel,
                                      OnRow&& on_row) const {
    const std::span<const TokenId> text = (*this)[i];
    std::vector<std::size_t> positions;
    session.rewind(0);
    return session.feed_rows(fed(i), cancel, [&](std::size_t first, std::size_t count) {
      const std::size_t last = std::min(first + count, width_ - 1);
      for (std::size_t at = std::max(first, width_ / 2); at < last; at += positions.size()) {
        positions.clear();
        while (positions.size() < session.model().logits_rows() && at + positions.size() < last)
          positions.push_back(at + positions.size());
        const auto rows = session.logits(positions);  // (positions, n_vocab)
        for (std::size_t r = 0; r < rows.rows(); ++r) on_row(rows[r], text[positions[r] + 1]);
      }
    });
  }

 private:
  std::vector<TokenId> tokens_;
  std::size_t width_;
  std::optional<TokenId> bos_;
};

}  // namespace mica
