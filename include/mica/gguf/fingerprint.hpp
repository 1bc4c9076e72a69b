// SPDX-License-Identifier: Apache-2.0
//
// A number that tells models apart: of tensors' names, shapes and types, of the family's keys, and of samples
// of the data. It is the same for a file, its shards and a packed directory, for any order of tensors and
// keys, and for files that differ in descriptions alone (a name, a licence). Limit: models that differ in
// tensors or parts of tensors that are not sampled have one fingerprint.
#pragma once

#include "mica/base/bytes.hpp"
#include "mica/gguf/document.hpp"
#include "mica/gguf/read_plain.hpp"
#include "mica/io/checksum.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::gguf {

namespace detail {

inline constexpr std::size_t sampled_tensors = 32;
inline constexpr std::size_t sample_bytes = 4096;

inline void add_text(io::Checksum& sum, std::string_view text) {
  const std::uint64_t size = text.size();
  sum.add(bytes_of(&size, 1));
  sum.add(bytes_of(text.data(), text.size()));
}

/// The middle of a tensor's data.
inline void add_sample(io::Checksum& sum, const Document& document, const TensorInfo& tensor,
                       tensor::FindPacking find) {
  std::array<std::byte, sample_bytes> bytes;
  const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(tensor.bytes, sample_bytes));
  read_plain(document, tensor, (tensor.bytes - n) / 2, std::span(bytes).first(n), find);
  sum.add(std::span(bytes).first(n));
}

/// Keys that begin with the name of the family, in the order of their names.
inline void add_family_keys(io::Checksum& sum, const Metadata& metadata) {
  const std::string prefix =
      join(metadata.get<std::string_view>("general.architecture").value_or(std::string_view()), ".");
  for (const std::uint32_t i : metadata.order()) {
    if (!metadata.key(i).starts_with(prefix)) continue;
    add_text(sum, metadata.key(i));
    sum.add(metadata.value(i).bytes());
  }
}

}  // namespace detail

/// Raises as Document::read, and ErrorCode::unsupported without xxHash. `find` knows the formats that may lie
/// packed. Cost: 32 reads of 4 KiB, spread over the file.
[[nodiscard]] inline std::uint64_t fingerprint(const Document& document,
                                               tensor::FindPacking find = tensor::packing_in<format::All>) {
  io::Checksum sum;
  detail::add_family_keys(sum, document.metadata());
  const std::span<const std::uint32_t> order = document.order();
  for (const std::uint32_t i : order) {
    const TensorInfo& tensor = document.tensors()[i];
    detail::add_text(sum, tensor.name);
    sum.add(bytes_of(tensor.dims.data(), tensor.dims.size()));
    detail::add_text(sum, tensor.format.name);
  }
  const std::size_t samples = std::min(order.size(), detail::sampled_tensors);
  for (std::size_t i = 0; i < samples; ++i) {
    detail::add_sample(sum, document, document.tensors()[order[i * order.size() / samples]], find);
  }
  return sum.value();
}

}  // namespace mica::gguf
