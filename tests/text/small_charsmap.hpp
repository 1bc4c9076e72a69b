// SPDX-License-Identifier: Apache-2.0
//
// The bytes of tokenizer.ggml.precompiled_charsmap, made in a test from a list of replacements. One node for
// each prefix, 256 units apart: large, but easy to see through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mica::test {

class SmallCharsmap {
 public:
  /// Pairs of a text and its replacement.
  SmallCharsmap(std::initializer_list<std::pair<std::string, std::string>> replacements) {
    for (const auto& [from, to] : replacements) add(from, to);
  }

  [[nodiscard]] std::string bytes() const {
    std::string out;
    append(static_cast<std::uint32_t>(units.size() * 4), out);
    for (const std::uint32_t unit : units) append(unit, out);
    return out + texts;
  }

  std::vector<std::uint32_t> units =
      std::vector<std::uint32_t>(512, none);  // children of the root are in block 1
  std::string texts;

 private:
  static constexpr std::uint32_t none = 0xFF;  // no byte of UTF-8 is a label of this

  /// Children of a node are the units of a block of 256; its number is what has to be added by XOR.
  void add(const std::string& from, const std::string& to) {
    std::size_t block = 1, node = 0;
    units[0] = offset_to(0, 1);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto byte = static_cast<unsigned char>(from[i]);
      node = block * 256 + byte;
      if (!blocks_.contains(node)) {
        blocks_[node] = units.size() / 256;
        units.resize(units.size() + 256, none);
        units[node] = offset_to(node, blocks_[node]) | byte;
      }
      block = blocks_[node];
    }
    units[node] |= 0x100;
    units[block * 256] = 0x8000'0000U | static_cast<std::uint32_t>(texts.size());
    texts += to + '\0';
  }
  /// A long offset, so that node ^ offset is the first unit of the block.
  static std::uint32_t offset_to(std::size_t node, std::size_t block) {
    return static_cast<std::uint32_t>((node ^ block * 256) << 10);
  }
  static void append(std::uint32_t n, std::string& out) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(n >> shift & 0xFF);
  }

  std::map<std::size_t, std::size_t> blocks_;
};

}  // namespace mica::test
