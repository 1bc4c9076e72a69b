// SPDX-License-Identifier: Apache-2.0
#include "text_blocks.hpp"

#include "console.hpp"
#include "mica/base/assert.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace mica::program {

TextBlocks::TextBlocks(std::vector<std::string> words, const std::string& lines)
    : words_(std::move(words)), name_(lines == "-" ? "stdin" : lines) {
  if (!lines.empty() && lines != "-") file_ = io::File::open(lines);
  if (file_ && file_->size() == 0) file_.reset();
  if (!lines.empty() && !file_) buffer_ = read_text(lines);
}

std::vector<std::string> TextBlocks::next() {
  std::vector<std::string> block;
  for (std::size_t bytes = 0; block.size() < max_texts && bytes < max_bytes;) {
    std::optional<std::string> text = next_text();
    if (!text) break;
    bytes += text->size();
    block.push_back(*std::move(text));
  }
  if (!block.empty()) return block;
  if (file_) buffer_.clear();
  taken_ = words_taken_ = lines_taken_ = 0;
  read_ = 0;
  return block;
}

std::optional<std::string> TextBlocks::next_text() {
  if (words_taken_ < words_.size()) return words_[words_taken_++];
  return next_line();
}

std::optional<std::string> TextBlocks::next_line() {
  std::size_t end = buffer_.find('\n', taken_);
  while (end == std::string::npos && buffer_.size() - taken_ <= max_line) {
    const std::size_t searched = buffer_.size() - taken_;
    if (!read_more()) break;
    end = buffer_.find('\n', taken_ + searched);
  }
  end = std::min(end, buffer_.size());
  MICA_CHECK(end - taken_ <= max_line, limit, name_, ": line ", lines_taken_ + 1, " has more than ", max_line,
             " bytes; allowed are as many: make several lines of it");
  if (taken_ == buffer_.size()) return std::nullopt;
  const bool carriage = end > taken_ && buffer_[end - 1] == '\r';
  std::string line = buffer_.substr(taken_, end - taken_ - (carriage ? 1 : 0));
  taken_ = std::min(end + 1, buffer_.size());
  ++lines_taken_;
  return line;
}

bool TextBlocks::read_more() {
  if (!file_ || read_ == file_->size()) return false;
  buffer_.erase(0, std::exchange(taken_, 0));
  const std::size_t kept = buffer_.size();
  const auto more = static_cast<std::size_t>(std::min<std::uint64_t>(1 << 16, file_->size() - read_));
  buffer_.resize(kept + more);
  file_->read_at(read_, std::as_writable_bytes(std::span(buffer_.data() + kept, more)));
  read_ += more;
  return true;
}

}  // namespace mica::program
