// SPDX-License-Identifier: Apache-2.0
//
// Separates the thoughts of a model from its answer, while the text arrives in pieces. Marks are left out,
// and so is the white space around thoughts:
//
//   <think>\n2 and 2 ...\n</think>\n\nFour.       Qwen, DeepSeek, SmolLM, Granite; the prompt may open it
//   [THINK]...[/THINK]Four.                       Mistral
//   <|channel>thought\n...<channel|>Four.         Gemma 4
//   <|channel|>analysis<|message|>...<|start|>assistant<|channel|>final<|message|>Four.      gpt-oss
//
// Text without marks passes unchanged. Marks count only at the beginning of an answer, so an answer may
// contain them later, as in a text about marks; only gpt-oss separates all of its text by channels.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica {

/// Thoughts are text that a model writes before its answer, for itself.
enum class ChatPart : std::uint8_t { thoughts, answer };

/// Splits the text of one answer into its parts. Not thread-safe.
class ThoughtSplitter {
 public:
  /// prompt: the text that the model continues. If it ends with a mark that opens thoughts, thoughts come
  /// first.
  explicit ThoughtSplitter(std::string_view prompt = {}) {
    const std::string_view text = without_space_at_end(prompt);
    for (const Marks& marks : all_marks) {
      if (text.ends_with(marks.open)) begin_thoughts(marks.close);
    }
  }

  /// The mark that ends the thoughts in which the text is; empty: it is in none.
  [[nodiscard]] std::string_view end_of_thoughts() const noexcept {
    return state_ == State::thoughts ? close_ : std::string_view();
  }

  /// Takes a piece of text; calls give(ChatPart, std::string_view) with text whose part is certain, and
  /// returns false as soon as give() does.
  template <class Give>
  [[nodiscard]] bool take(std::string_view piece, Give&& give) {
    held_ += piece;
    while (advance(give)) {
    }
    return !stopped_;
  }
  /// Call at the end of the text: gives the rest. Returns false if give() does.
  template <class Give>
  bool finish(Give&& give) {
    if (state_ == State::thoughts) {
      give_thoughts(without_space_at_end(held_).size(), give);
    } else if (state_ == State::begin || state_ == State::answer) {
      give_all(ChatPart::answer, held_.size(), give);
    }
    held_.clear();
    return !stopped_;
  }

 private:
  /// before: at the beginning of the text. gap: between thoughts and answer. header, author: of gpt-oss, up
  /// to <|message|>, and between <|start|> and the next mark.
  enum class State : std::uint8_t { begin, thoughts, gap, answer, header, author };
  struct Marks {
    std::string_view open, close;
  };

  static constexpr std::array all_marks = {Marks{"<think>", "</think>"}, Marks{"[THINK]", "[/THINK]"},
                                           Marks{"<|channel>thought", "<channel|>"}};
  static constexpr std::string_view channel = "<|channel|>", message = "<|message|>", start = "<|start|>";
  static constexpr std::string_view space = " \t\r\n";

  [[nodiscard]] static std::string_view without_space_at_end(std::string_view text) noexcept {
    return text.substr(0, text.find_last_not_of(space) + 1);
  }
  /// Bytes at the end of the held text that may begin a mark.
  [[nodiscard]] std::size_t beginning_of(std::string_view mark) const noexcept {
    for (std::size_t n = std::min(mark.size() - 1, held_.size()); n > 0; --n) {
      if (mark.starts_with(std::string_view(held_).substr(held_.size() - n))) return n;
    }
    return 0;
  }
  void begin_thoughts(std::string_view close) {
    close_ = close;
    state_ = State::thoughts;
    thought_ = false;
  }

  /// One change of state; false when there is nothing more to do with the held text.
  template <class Give>
  [[nodiscard]] bool advance(Give&& give) {
    if (stopped_) return false;
    switch (state_) {
      case State::begin:
        return open();
      case State::thoughts:
        return think(give);
      case State::gap:
        held_.erase(0, std::min(held_.find_first_not_of(space), held_.size()));
        if (held_.empty()) return false;
        state_ = State::answer;
        return true;
      case State::answer:
        return answer(give);
      case State::header:
        return read_header();
      case State::author:
        return skip_author();
    }
    return false;
  }
  [[nodiscard]] bool open() {
    const std::size_t first = held_.find_first_not_of(space);
    if (first == std::string::npos) return false;
    const std::string_view text = std::string_view(held_).substr(first);
    for (const Marks& marks : all_marks) {
      if (!text.starts_with(marks.open)) continue;
      held_.erase(0, first + marks.open.size());
      begin_thoughts(marks.close);
      return true;
    }
    if (text.starts_with(channel)) {
      held_.erase(0, first + channel.size());
      channels_ = true;
      state_ = State::header;
      return true;
    }
    const auto may_become = [&](std::string_view mark) { return mark.starts_with(text); };
    if (may_become(channel)) return false;
    for (const Marks& marks : all_marks) {
      if (may_become(marks.open)) return false;
    }
    state_ = State::answer;
    return true;
  }
  template <class Give>
  [[nodiscard]] bool think(Give&& give) {
    const std::size_t at = held_.find(close_);
    const std::size_t end = at == std::string::npos ? held_.size() - beginning_of(close_) : at;
    give_thoughts(without_space_at_end(std::string_view(held_).substr(0, end)).size(), give);
    if (at == std::string::npos) return false;
    held_.erase(0, held_.find(close_) + close_.size());
    state_ = channels_ ? State::author : State::gap;
    return true;
  }
  template <class Give>
  [[nodiscard]] bool answer(Give&& give) {
    if (!channels_) {
      give_all(ChatPart::answer, held_.size(), give);
      return false;
    }
    const std::size_t at = held_.find(start);
    give_all(ChatPart::answer, at == std::string::npos ? held_.size() - beginning_of(start) : at, give);
    if (at == std::string::npos) return false;
    held_.erase(0, start.size());
    state_ = State::author;
    return true;
  }
  [[nodiscard]] bool read_header() {
    const std::size_t at = held_.find(message);
    if (at == std::string::npos) return false;
    const bool thinks = held_.starts_with("analysis");
    held_.erase(0, at + message.size());
    if (thinks) {
      begin_thoughts(start);
    } else {
      state_ = State::answer;
    }
    return true;
  }
  [[nodiscard]] bool skip_author() {
    const std::size_t next = held_.find(channel), text = held_.find(message);
    if (next == std::string::npos && text == std::string::npos) return false;
    state_ = next < text ? State::header : State::answer;
    held_.erase(0, next < text ? next + channel.size() : text + message.size());
    return true;
  }

  template <class Give>
  void give_thoughts(std::size_t bytes, Give&& give) {
    if (!thought_) {
      const std::size_t blank = std::min(held_.find_first_not_of(space), bytes);
      held_.erase(0, blank);
      bytes -= blank;
    }
    thought_ = thought_ || bytes > 0;
    give_all(ChatPart::thoughts, bytes, give);
  }
  template <class Give>
  void give_all(ChatPart part, std::size_t bytes, Give&& give) {
    if (bytes == 0) return;
    const std::string text = held_.substr(0, bytes);
    held_.erase(0, bytes);
    if (!give(part, std::string_view(text))) stopped_ = true;
  }

  State state_ = State::begin;
  std::string held_;
  std::string_view close_;  // the mark that ends the thoughts
  bool thought_ = false;    // whether some of the thoughts were given
  bool channels_ = false;
  bool stopped_ = false;
};

}  // namespace mica
