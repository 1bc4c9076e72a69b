// SPDX-License-Identifier: Apache-2.0
//
// The logits of a model on a text, in a file, so that another model can be compared with it. The format is
// that of llama-perplexity, in both directions:
//
//   "_logits_" | i32 n_ctx | i32 n_vocab | i32 windows | i32 token, windows * n_ctx of them
//   for each window, for each position from n_ctx / 2 to n_ctx - 2: a QuantizedRow of the token after it
//
// The file does not name the model. Limit: little-endian machines only, like the formats of weights.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/token_id.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/file.hpp"
#include "mica_tools/measure/log_probabilities.hpp"
#include "mica_tools/measure/windows.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica {

namespace detail {

inline constexpr std::string_view base_logits_magic = "_logits_";

[[nodiscard]] inline std::int32_t as_i32(std::size_t n, std::string_view what) {
  MICA_CHECK(n <= INT32_MAX, usage, "base logits: ", n, " ", what, "; the file format ends at ", INT32_MAX);
  return static_cast<std::int32_t>(n);
}

}  // namespace detail

/// Writes base logits, row by row; the file appears whole, with commit(). One row in memory at a time.
class BaseLogitsWriter {
 public:
  /// Writes the header. `windows`: the number of evaluation windows. Raises as io::AtomicFile.
  BaseLogitsWriter(std::string path, const Windows& text, std::size_t windows, std::size_t n_vocab)
      : file_(std::move(path)), row_(n_vocab), expected_rows_(windows * text.counted()) {
    MICA_ASSERT(windows <= text.size());
    const std::array<std::int32_t, 3> numbers = {detail::as_i32(text.width(), "tokens in a window"),
                                                 detail::as_i32(n_vocab, "tokens in the vocabulary"),
                                                 detail::as_i32(windows, "windows")};
    file_.write(detail::base_logits_magic);
    file_.write(std::as_bytes(std::span(numbers)));
    for (std::size_t i = 0; i < windows; ++i) {
      for (const TokenId id : text[i]) {
        const std::int32_t token = detail::as_i32(id, "is the number of a token");
        file_.write(std::as_bytes(std::span(&token, 1)));
      }
    }
  }

  /// The next row, in the order of windows and positions. Requires n_vocab finite logits.
  void write(const LogProbabilities& row) {
    row_.encode(row);
    file_.write(row_.bytes());
    ++rows_;
  }
  /// Requires that all rows were written.
  void commit() {
    MICA_ASSERT(rows_ == expected_rows_);
    file_.commit();
  }

 private:
  io::AtomicFile file_;
  QuantizedRow row_;
  std::uint64_t rows_ = 0;
  std::uint64_t expected_rows_;
};

/// Base logits in a file, checked. Reads the tokens at once and rows on demand.
class BaseLogitsReader {
 public:
  /// Raises ErrorCode::file when it is no such file, contradicts itself or is truncated.
  explicit BaseLogitsReader(std::string path) : file_(io::File::open(std::move(path))) {
    read_header();
    read_tokens();
    row_ = QuantizedRow(n_vocab_);
  }

  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }
  /// Tokens of a window, entries of the vocabulary, and windows; each at least 1.
  [[nodiscard]] std::size_t n_ctx() const noexcept { return n_ctx_; }
  [[nodiscard]] std::size_t n_vocab() const noexcept { return n_vocab_; }
  [[nodiscard]] std::size_t windows() const noexcept { return windows_; }
  /// The text, (windows * n_ctx), each id below n_vocab().
  [[nodiscard]] const std::vector<TokenId>& tokens() const noexcept { return tokens_; }

  /// The next row, in the order of windows and positions; valid until the next call.
  /// Raises ErrorCode::file when there is no more, or the row cannot be one.
  [[nodiscard]] const QuantizedRow& next() {
    file_.read_at(offset_, row_.bytes());
    MICA_CHECK(row_.valid(), file, path(), ": the row at byte ", offset_,
               " has a range that is not finite or upside down");
    offset_ += row_.bytes().size();
    return row_;
  }

 private:
  static constexpr std::uint64_t header_bytes = detail::base_logits_magic.size() + 3 * sizeof(std::int32_t);

  void read_header() {
    struct {
      std::array<char, 8> magic;
      std::array<std::int32_t, 3> numbers;
    } header{};
    static_assert(sizeof header == header_bytes);
    file_.read_at(0, std::as_writable_bytes(std::span(&header, 1)));
    MICA_CHECK(std::string_view(header.magic.data(), header.magic.size()) == detail::base_logits_magic, file,
               path(), ": these are no base logits: the file begins with '",
               escaped(std::string_view(header.magic.data(), header.magic.size())), "' and not with '",
               detail::base_logits_magic, "'");
    const auto& [n_ctx, n_vocab, windows] = header.numbers;
    MICA_CHECK(n_ctx >= static_cast<std::int32_t>(Windows::min_width) && n_vocab > 0 && windows > 0, file,
               path(), ": base logits of ", windows, " windows of ", n_ctx, " tokens, vocabulary ", n_vocab,
               "; needed: one window, ", Windows::min_width, " tokens, one word");
    n_ctx_ = static_cast<std::size_t>(n_ctx);
    n_vocab_ = static_cast<std::size_t>(n_vocab);
    windows_ = static_cast<std::size_t>(windows);
    // Each factor is below 2^31: (windows * positions) below 2^62 and bytes of a row below 2^33 are compared
    // by division.
    const std::uint64_t tokens = std::uint64_t{windows_} * n_ctx_;
    const std::uint64_t rows = std::uint64_t{windows_} * Windows::counted(n_ctx_);
    const std::uint64_t rest = file_.size() - header_bytes;
    MICA_CHECK(tokens <= rest / sizeof(std::int32_t) &&
                   rows <= (rest - tokens * sizeof(std::int32_t)) / QuantizedRow::bytes_for(n_vocab_),
               file, path(), ": truncated: ", file_.size(), " bytes; ", windows_, " windows of ", n_ctx_,
               " tokens and a vocabulary of ", n_vocab_, " need more");
  }

  void read_tokens() {
    tokens_.resize(windows_ * n_ctx_);
    file_.read_at(header_bytes, std::as_writable_bytes(std::span(tokens_)));
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      MICA_CHECK(tokens_[i] < n_vocab_, file, path(), ": token ", i, " of the text has the number ",
                 tokens_[i], "; the vocabulary has ", n_vocab_, " tokens");
    }
    offset_ = header_bytes + tokens_.size() * sizeof(std::int32_t);
  }

  io::File file_;
  std::size_t n_ctx_ = 0;
  std::size_t n_vocab_ = 0;
  std::size_t windows_ = 0;
  std::vector<TokenId> tokens_;
  QuantizedRow row_{0};
  std::uint64_t offset_ = 0;  // of the next row
};

}  // namespace mica
