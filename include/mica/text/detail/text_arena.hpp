// SPDX-License-Identifier: Apache-2.0
//
// Many short byte strings in two allocations instead of one each:
//
//   bytes    a b c | d e | | f ...
//   offsets  0       3     5 5 ...   one more than there are strings
#pragma once

#include "mica/base/assert.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mica::text::detail {

class TextArena {
 public:
  TextArena() = default;

  /// Copies the strings; raises when they have 4 GiB or more together.
  explicit TextArena(std::span<const std::string_view> texts) {
    std::uint64_t total = 0;
    for (const std::string_view text : texts) total += text.size();
    MICA_CHECK(total < 0xFFFF'FFFFU, file, "vocabulary: the tokens have ", total,
               " bytes, at most 4294967294 are read");
    bytes_.reserve(total);
    offsets_.reserve(texts.size() + 1);
    for (const std::string_view text : texts) {
      bytes_.insert(bytes_.end(), text.begin(), text.end());
      offsets_.push_back(static_cast<std::uint32_t>(bytes_.size()));
      longest_ = text.size() > longest_ ? text.size() : longest_;
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::size_t longest_bytes() const noexcept { return longest_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.capacity() + offsets_.capacity() * 4; }

  [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept {
    return {bytes_.data() + offsets_[i], offsets_[i + 1] - offsets_[i]};
  }

 private:
  std::vector<char> bytes_;
  std::vector<std::uint32_t> offsets_ = {0};
  std::size_t longest_ = 0;
};

}  // namespace mica::text::detail
