// SPDX-License-Identifier: Apache-2.0
//
// What an accepted GGUF file promises, checked by other means than the reader's.
#pragma once

#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica/gguf/reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::fuzz {

/// Reads each byte.
inline std::size_t letters(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), 'a'));
}

/// Reads a value as every type that it may have; the sum keeps the reads in the program.
inline std::size_t read_all(const gguf::Value& value) {
  std::size_t sum = value.description().size() + value.size();
  const auto numbers = [&]<class T>(T) {
    sum += value.as<T>().has_value();
    if (const auto list = value.as<gguf::Array<T>>()) {
      std::size_t n = 0;
      for (const T each : *list) n += each == T{} || each != T{} ? 1 : 0;
      require(n == list->size(), "an array has as many elements as it says");
    }
  };
  numbers(std::uint8_t{}), numbers(std::int64_t{}), numbers(std::uint64_t{}), numbers(float{}),
      numbers(bool{});
  if (const auto text = value.as<std::string_view>()) sum += letters(*text);
  if (const auto texts = value.as<gguf::Array<std::string_view>>()) {
    for (const std::string_view each : *texts) sum += letters(each);
  }
  return sum;
}

/// Every tensor has the bytes of its shape, lies in the data of a file of `size` bytes and apart from the
/// others, and every key is found.
inline void check_document(const gguf::Document& document, std::uint64_t size) {
  const gguf::Metadata& metadata = document.metadata();
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    static_cast<void>(read_all(metadata.value(i)));
    require(metadata.contains(metadata.key(i)), "a key that is listed is found");
  }
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    unsigned __int128 elements = 1;
    for (const std::uint64_t dim : tensor.dims) elements *= dim;
    require(elements / tensor.format.block_size * tensor.format.block_bytes == tensor.bytes,
            "a tensor has the bytes of its shape");
    if (tensor.bytes == 0) continue;
    require(tensor.offset >= document.data_offset() && tensor.offset <= size &&
                tensor.bytes <= size - tensor.offset,
            "a tensor lies in the data of its file");
    spans.emplace_back(tensor.offset, tensor.bytes);
    require(document.find(tensor.name) == &tensor, "a tensor that is listed is found");
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i)
    require(spans[i].first - spans[i - 1].first >= spans[i - 1].second, "tensors are apart");
}

/// Opens a file in memory, and checks it and the memory that it took.
inline void open_and_check(std::span<const std::byte> bytes) {
  std::optional<gguf::Document> document;
  accepted_within(bytes.size(), [&] { document.emplace(gguf::parse(bytes, "fuzzed.gguf")); });
  if (document) check_document(*document, bytes.size());
}

}  // namespace mica::fuzz
