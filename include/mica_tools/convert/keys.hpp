// SPDX-License-Identifier: Apache-2.0
//
// Writes `ARCH.KEY` pairs in the types that GGUF readers expect: counts as u32, reals as f32.
#pragma once

#include "mica_tools/write/gguf_writer.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

/// The keys of one architecture. Refers to a writer, which must outlive it.
class Keys {
 public:
  /// arch: stands before each name, with a dot.
  Keys(gguf::Writer& writer, std::string_view arch) : writer_(writer), prefix_(join(arch, ".")) {}

  /// Written as u32. Raises ErrorCode::file for a larger value.
  void count(std::string_view name, std::uint64_t value) {
    MICA_CHECK(value <= UINT32_MAX, file, "key '", prefix_, name, "' would be ", value, "; allowed: 32 bits");
    writer_.set(prefix_ + std::string(name), static_cast<std::uint32_t>(value));
  }
  /// One number when all are the same, else an array.
  void counts(std::string_view name, const std::vector<std::uint64_t>& values) {
    bool equal = true;
    for (const std::uint64_t value : values) equal = equal && value == values.front();
    if (equal && !values.empty()) return count(name, values.front());
    array(name, values);
  }
  /// An array of i32; a number as f32; arrays of f32 and of bools; a text, a bool; an array of texts.
  void array(std::string_view name, const std::vector<std::uint64_t>& values) {
    writer_.set_array(prefix_ + std::string(name), std::vector<std::int32_t>(values.begin(), values.end()));
  }
  void real(std::string_view name, double value) {
    writer_.set(prefix_ + std::string(name), static_cast<float>(value));
  }
  void reals(std::string_view name, const std::vector<float>& values) {
    writer_.set_array(prefix_ + std::string(name), values);
  }
  void flags(std::string_view name, const std::vector<bool>& values) {
    writer_.set_array(prefix_ + std::string(name), values);
  }
  void text(std::string_view name, std::string_view value) {
    writer_.set(prefix_ + std::string(name), value);
  }
  void flag(std::string_view name, bool value) { writer_.set(prefix_ + std::string(name), value); }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    writer_.set_array(prefix_ + std::string(name), values);
  }

 private:
  gguf::Writer& writer_;
  std::string prefix_;
};

}  // namespace mica::convert
