// SPDX-License-Identifier: Apache-2.0
//
// From sampled tokens to pieces of text: whole UTF-8 sequences, nothing of a stop text.
#pragma once

#include "mica/runtime/generate_options.hpp"
#include "mica/text/token_id.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::detail {

/// Holds back what may be the beginning of a stop text.
class StopTexts {
 public:
  /// The texts outlive it.
  explicit StopTexts(const std::vector<std::string>& stops) noexcept : stops_(stops) {}

  /// Adds text and returns the text that cannot be part of a stop text; sets found() when one is complete.
  [[nodiscard]] std::string take(std::string_view more) {
    held_ += more;
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      if (const std::size_t at = stops_[i].empty() ? std::string::npos : held_.find(stops_[i]);
          at != std::string::npos) {
        found_ = true;
        which_ = i;
        held_.resize(at);
      }
    }
    const std::size_t keep = found_ ? 0 : longest_beginning();
    std::string out = held_.substr(0, held_.size() - keep);
    held_.erase(0, out.size());
    return out;
  }
  /// The text that was held back, when the answer ends for another reason.
  [[nodiscard]] std::string rest() noexcept { return std::exchange(held_, {}); }
  [[nodiscard]] bool found() const noexcept { return found_; }
  [[nodiscard]] std::size_t which() const noexcept { return which_; }  // the text that begins first

 private:
  /// Bytes at the end of the held text that begin a stop text.
  [[nodiscard]] std::size_t longest_beginning() const noexcept {
    std::size_t max = 0;
    for (const std::string& stop : stops_) {
      for (std::size_t n = std::min(stop.size(), held_.size()); n > max; --n) {
        if (std::string_view(held_).substr(held_.size() - n) == std::string_view(stop).substr(0, n)) max = n;
      }
    }
    return max;
  }

  const std::vector<std::string>& stops_;
  std::string held_;
  bool found_ = false;
  std::size_t which_ = 0;
};

/// Sampled tokens become text: whole UTF-8 sequences, without control tokens and stop texts.
template <class Tokenizer, class OnText>
class TextWriter {
 public:
  /// at_start: only control tokens precede the text, so the space that encoding adds before a first word is
  /// not part of it.
  TextWriter(const Tokenizer& tokenizer, const GenerateOptions& options, bool at_start, OnText& on_text)
      : tokenizer_(tokenizer),
        show_special_(options.show_special),
        shown_(options.shown),
        drop_space_(at_start && tokenizer.vocabulary().add_space_prefix()),
        stops_(options.stop),
        on_text_(on_text) {}

  /// False when a stop text is complete or the caller stops.
  [[nodiscard]] bool write(text::TokenId id) {
    std::string piece, whole;
    const bool is_shown = show_special_ || std::binary_search(shown_.begin(), shown_.end(), id);
    tokenizer_.append_piece(id, is_shown, piece);
    if (drop_space_ && !piece.empty()) {
      if (piece.front() == ' ') piece.erase(0, 1);
      drop_space_ = false;
    }
    utf8_.append(piece, whole);
    return give(stops_.take(whole)) && !stops_.found();
  }
  /// Writes the text that was held back, unless it belongs to a stop text.
  void finish() {
    if (stops_.found()) return;
    std::string whole;
    utf8_.finish(whole);
    std::string last = stops_.take(whole);
    if (!stops_.found()) last += stops_.rest();
    static_cast<void>(give(last));
  }
  [[nodiscard]] bool stopped() const noexcept { return stops_.found(); }
  [[nodiscard]] std::size_t stop() const noexcept { return stops_.which(); }

 private:
  [[nodiscard]] bool give(const std::string& text) {
    return text.empty() || on_text_(std::string_view(text));
  }

  const Tokenizer& tokenizer_;
  bool show_special_;
  std::span<const TokenId> shown_;
  bool drop_space_;
  StopTexts stops_;
  OnText& on_text_;
  text::Utf8Stream utf8_;
};

}  // namespace mica::detail
