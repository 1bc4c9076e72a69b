// SPDX-License-Identifier: Apache-2.0
//
// GGUF files made for tests: random ones of every value type and many shapes, and the least header to damage
// by hand.

#pragma once

#include "io/temporary_folder.hpp"
#include "mica/base/rng.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <array>
#include <string>
#include <vector>

namespace mica::test {

/// Numbers below a bound, in a fixed order for a seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : rng_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return rng_.next() % bound; }
  std::string text(std::size_t max) {
    std::string text(below(max + 1), '\0');
    for (char& c : text) c = static_cast<char>(below(256));
    return text;
  }

 private:
  CounterRng rng_;
};

template <class T>
std::vector<T> some_numbers(Dice& dice) {
  std::vector<T> numbers(dice.below(20));
  for (T& n : numbers) n = static_cast<T>(static_cast<std::int64_t>(dice.below(200)) - 100);
  return numbers;
}

template <class T>
void set_some(gguf::Writer& writer, Dice& dice, const std::string& name) {
  writer.set(name, static_cast<T>(dice.below(100)));
  writer.set_array(name + ".array", some_numbers<T>(dice));
}

/// A valid file: metadata of every type, up to twelve tensors with data, alignments of 8 to 256.
inline gguf::Writer random_file(std::uint64_t seed) {
  Dice dice(seed);
  gguf::Writer writer(8u << dice.below(6));
  set_some<std::uint8_t>(writer, dice, "a.u8");
  set_some<std::int8_t>(writer, dice, "a.i8");
  set_some<std::uint16_t>(writer, dice, "a.u16");
  set_some<std::int16_t>(writer, dice, "a.i16");
  set_some<std::uint32_t>(writer, dice, "a.u32");
  set_some<std::int32_t>(writer, dice, "a.i32");
  set_some<std::uint64_t>(writer, dice, "a.u64");
  set_some<std::int64_t>(writer, dice, "a.i64");
  set_some<float>(writer, dice, "a.f32");
  set_some<double>(writer, dice, "a.f64");
  writer.set("a.bool", dice.below(2) == 1);
  writer.set_array("a.bool.array", std::array{true, false, true});
  writer.set("a.string", dice.text(100));
  std::vector<std::string> texts(dice.below(10));
  for (std::string& text : texts) text = dice.text(12);
  writer.set_array("a.string.array", texts);
  const std::uint64_t tensors = dice.below(13);
  for (std::uint64_t i = 0; i < tensors; ++i) {
    const format::Info format = format::known.begin()[dice.below(format::known.size())];
    std::vector<std::uint64_t> dims{format.block_size * (1 + dice.below(3))};
    for (std::uint64_t d = dice.below(4); d > 0; --d) dims.push_back(1 + dice.below(4));
    std::uint64_t bytes = dims[0] / format.block_size * format.block_bytes;
    for (std::size_t d = 1; d < dims.size(); ++d) bytes *= dims[d];
    const gguf::Fill fill = [bytes, i](const gguf::Sink& sink) {
      const std::vector<std::byte> data(bytes, static_cast<std::byte>(i + 1));
      sink(std::span(data).first(bytes / 2));
      sink(std::span(data).subspan(bytes / 2));
    };
    writer.add(join("blk.", i, ".weight"), format.id, dims, fill);
  }
  return writer;
}

/// A header written value by value, for what a Writer would refuse to write.
class RawHeader {
 public:
  explicit RawHeader(std::uint64_t tensors, std::uint64_t pairs, std::uint32_t version = 3) {
    text_ = "GGUF";
    number(version).number(tensors).number(pairs);
  }
  template <gguf::Number T>
  RawHeader& number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  RawHeader& text(std::string_view value) {
    number(std::uint64_t{value.size()});
    text_ += value;
    return *this;
  }
  RawHeader& type(gguf::ValueType value) { return number(static_cast<std::uint32_t>(value)); }
  RawHeader& pair(std::string_view key, std::uint32_t value) {
    return text(key).type(gguf::ValueType::u32).number(value);
  }
  RawHeader& tensor(std::string_view name, std::vector<std::uint64_t> dims, std::uint32_t type,
                    std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  /// Pads to 32 bytes and appends data.
  RawHeader& data(std::size_t bytes) {
    text_.resize((text_.size() + 31) / 32 * 32 + bytes);
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text_)); }

 private:
  std::string text_;
};

}  // namespace mica::test
