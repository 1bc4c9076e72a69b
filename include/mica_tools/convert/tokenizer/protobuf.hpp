// SPDX-License-Identifier: Apache-2.0
//
// Reads the wire format of protocol buffers: fields with a number, one after the other. No schema, no
// writing.
#pragma once

#include "mica/base/assert.hpp"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace mica::convert {

/// One field of a message; which member holds its value depends on the wire type.
struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t whole = 0;                ///< varint and fixed-size numbers
  std::optional<std::string_view> bytes;  ///< text, bytes or a message

  /// Of a 32-bit field.
  [[nodiscard]] float real() const noexcept {
    const auto bits = static_cast<std::uint32_t>(whole);
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

/// The fields of a message in order. A view of the bytes.
class ProtobufReader {
 public:
  /// `file` stands for the bytes in error texts, and outlives the reader.
  ProtobufReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  /// Empty at the end. Raises ErrorCode::file for bytes that are no fields.
  [[nodiscard]] std::optional<ProtobufField> next() {
    if (bytes_.empty()) return std::nullopt;
    const std::uint64_t tag = varint();
    ProtobufField field;
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0:
        field.whole = varint();
        break;
      case 1:
        field.whole = fixed(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.whole = fixed(4);
        break;
      default:
        raise(ErrorCode::file, file_, ": is not a protocol buffer: field ", field.number, " has wire type ",
              tag & 7);
    }
    return field;
  }

 private:
  [[nodiscard]] std::string_view take(std::uint64_t n) {
    MICA_CHECK(n <= bytes_.size(), file, file_, ": truncated or no protocol buffer: a field of ", n,
               " bytes, ", bytes_.size(), " are left");
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(n));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  [[nodiscard]] std::uint64_t fixed(std::size_t n) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(n).data(), n);
    return value;
  }
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    raise(ErrorCode::file, file_, ": is not a protocol buffer: a number longer than ten bytes");
  }

  std::string_view bytes_;
  const std::string& file_;
};

}  // namespace mica::convert
