// SPDX-License-Identifier: Apache-2.0
//
// A valid GGUF file with a few changes that follow from a number: in its header, in its weights, or in its
// length.
#pragma once

#include "fuzz/gguf_edits.hpp"
#include "mica/gguf/reader.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

namespace mica::test {

class Mutant {
 public:
  /// Of a valid file.
  Mutant(std::span<const std::byte> valid, std::uint64_t number)
      : bytes_(valid.begin(), valid.end()), random_(number) {
    const std::size_t changes = 1 + (below(2) == 0 ? below(4) : 0), entries = below(2) == 0 ? changes : 0;
    try {
      const gguf::Document document = gguf::parse(bytes_, "valid.gguf");
      header_ = document.data_offset();
      for (std::size_t i = 0; i < entries; ++i) change_entry(document);
    } catch (const Error&) {  // one part of several
      header_ = 4096;
    }
    for (std::size_t i = entries; i < changes && !bytes_.empty(); ++i) change_bytes();
  }

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  /// Below n, which is at least 1.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  /// In the header, or sometimes anywhere. Requires bytes.
  std::size_t place() {
    return below(below(8) == 0 ? bytes_.size() : std::clamp<std::size_t>(header_, 1, bytes_.size()));
  }
  /// Of a part from `at` on; short ones more often.
  std::size_t length(std::size_t at) {
    return 1 + below(std::min<std::size_t>(bytes_.size() - at, std::size_t{1} << below(13)));
  }
  auto position(std::size_t at) { return bytes_.begin() + static_cast<std::ptrdiff_t>(at); }
  /// Often one at which a size or a count changes its meaning.
  std::uint64_t number() {
    if (below(4) == 0) return random_();
    const std::uint64_t power = std::uint64_t{1} << below(64);
    return power - below(3);
  }

  /// The value of a key or the entry of a tensor, in place. `document` views the bytes.
  void change_entry(const gguf::Document& document) {
    std::array<std::uint8_t, 32> choices{};
    for (std::uint8_t& each : choices) each = static_cast<std::uint8_t>(random_());
    fuzz::Input input(choices.data(), choices.size());
    if (document.tensors().empty() || below(2) == 0) {
      fuzz::change_value(bytes_, document.metadata(), below(document.metadata().size()), input);
    } else {
      fuzz::change_tensor(bytes_, document.tensors()[below(document.tensors().size())], input);
    }
  }

  void change_bytes() {
    const std::size_t at = place();
    switch (below(10)) {
      case 0:
        bytes_[at] ^= static_cast<std::byte>(1U << below(8));
        break;
      case 1: {
        const std::uint64_t value = number();
        std::memcpy(&bytes_[at], &value, std::min(bytes_.size() - at, std::size_t{1} << below(4)));
        break;
      }
      case 2:
        bytes_.resize(at);
        break;
      case 3:
        bytes_.erase(position(at), position(at + length(at)));
        break;
      case 4: {  // a part once more
        const std::vector<std::byte> part(position(at), position(at + length(at)));
        bytes_.insert(position(place()), part.begin(), part.end());
        break;
      }
      case 5:
        std::fill_n(position(at), length(at), below(2) == 0 ? std::byte{0} : std::byte{0xFF});
        break;
      case 6: {  // of another place
        const std::size_t other = place(), n = std::min(length(at), length(other));
        std::copy_n(std::vector<std::byte>(position(other), position(other + n)).begin(), n, position(at));
        break;
      }
      default:  // weights
        for (std::size_t n = 1 + below(64); n > 0; --n)
          bytes_[below(bytes_.size())] ^= static_cast<std::byte>(1U << below(8));
    }
  }

  std::vector<std::byte> bytes_;
  std::mt19937_64 random_;
  std::uint64_t header_ = 0;  // bytes
};

}  // namespace mica::test
