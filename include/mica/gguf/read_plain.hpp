// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a tensor as a GGUF file has them, wherever they lie: parts of a packed directory are joined,
// packed rows are unpacked. For code that converts rows; pagers take bytes as they lie.
#pragma once

#include "mica/format/lists.hpp"
#include "mica/gguf/document.hpp"
#include "mica/tensor/packing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace mica::gguf {

namespace detail {

/// Bytes [at, at + to.size()) of a packed part from byte `begin` of its file on, some panels at a time.
template <class Read>
void read_unpacked(const TensorInfo& tensor, std::uint64_t begin, std::uint64_t at, std::span<std::byte> to,
                   const Read& read, const tensor::Packing& packing) {
  constexpr std::uint64_t at_once = std::uint64_t{1} << 20;
  const std::uint64_t row = tensor.bytes / tensor.rows(), panel = row * tensor::Rows16::rows;
  const std::uint64_t step = std::max(panel, at_once / panel * panel);
  const std::uint64_t last = std::min(tensor.part_bytes(), round_up(at + to.size(), panel));
  std::vector<std::byte> packed(static_cast<std::size_t>(std::min(step, last))), plain(packed.size());
  for (std::uint64_t done = at / panel * panel; done < last; done += step) {
    const auto n = static_cast<std::size_t>(std::min(step, last - done));
    const std::span<std::byte> panels(packed.data(), n);
    read(begin + done, panels);
    packing.unpack(panels, static_cast<std::size_t>(tensor.width()), plain.data());
    const std::uint64_t from = std::max(at, done), end = std::min(at + to.size(), done + n);
    std::memcpy(to.data() + (from - at), plain.data() + (from - done), static_cast<std::size_t>(end - from));
  }
}

}  // namespace detail

/// Fills `to` with the tensor's bytes from byte `at` on; read(offset, span) reads from its file. Requires at
/// + to.size() <= tensor.bytes. `find` knows the formats that may lie packed. Raises ErrorCode::file for a
/// manifest that packs what cannot be packed. Cost: as reading, and for packed rows whole panels in pieces of
/// a mebibyte.
template <class Read>
void read_plain(const TensorInfo& tensor, std::uint64_t at, std::span<std::byte> to, const Read& read,
                tensor::FindPacking find = tensor::packing_in<format::All>) {
  const tensor::Packing packing = tensor.packed ? find(tensor.format.id) : tensor::Packing{};
  MICA_CHECK(!tensor.packed || packing.can_pack(tensor.part_rows()), file, "tensor '", escaped(tensor.name),
             "' of ", tensor.format.name, " ", tensor.shape(),
             " lies packed, which it cannot; pack the model again");
  while (!to.empty()) {
    const std::uint64_t part = at / tensor.part_bytes(), inside = at % tensor.part_bytes();
    const std::uint64_t begin = tensor.offset + part * tensor.stride;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), tensor.part_bytes() - inside));
    if (tensor.packed) {
      detail::read_unpacked(tensor, begin, inside, to.first(n), read, packing);
    } else {
      read(begin + inside, to.first(n));
    }
    at += n;
    to = to.subspan(n);
  }
}

/// The same from the document's files.
inline void read_plain(const Document& document, const TensorInfo& tensor, std::uint64_t at,
                       std::span<std::byte> to, tensor::FindPacking find = tensor::packing_in<format::All>) {
  const Source& source = document.source(tensor);
  read_plain(
      tensor, at, to,
      [&](std::uint64_t offset, std::span<std::byte> bytes) { source.read_at(offset, bytes); }, find);
}

}  // namespace mica::gguf
