// SPDX-License-Identifier: Apache-2.0
//
// A manifest as its file has it (gguf/manifest.hpp reads it). Its size does not depend on the checksums, so
// it is known before anything is packed.
#pragma once

#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/manifest.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace mica::pack {

/// The bytes of a manifest of these tensors, with the keys of the model where `keys` is not null.
[[nodiscard]] inline std::vector<std::byte> manifest_bytes(const gguf::Manifest& manifest,
                                                           const gguf::Metadata* keys) {
  gguf::Writer writer(manifest.formats);
  for (std::size_t i = 0; keys != nullptr && i < keys->size(); ++i) {
    const std::string_view key = keys->key(i);  // a packed directory has no shards
    if (key != "general.alignment" && !key.starts_with("split.")) writer.copy(key, keys->value(i));
  }
  writer.set(gguf::packed_version_key, gguf::Manifest::current_version);
  writer.set("mica.packed.layout", gguf::Manifest::layout);
  writer.set("mica.packed.fingerprint", manifest.fingerprint);
  writer.set("mica.packed.identity", manifest.identity);
  const auto set_each = [&](std::string_view key, const auto& list, auto member) {
    std::vector<std::remove_cvref_t<decltype(list[0].*member)>> values;
    for (const auto& element : list) values.push_back(element.*member);
    writer.set_array(key, values);
  };
  set_each("mica.packed.files", manifest.files, &gguf::Manifest::File::name);
  set_each("mica.packed.file_bytes", manifest.files, &gguf::Manifest::File::bytes);
  set_each("mica.packed.tensor_file", manifest.tensors, &gguf::TensorInfo::source);
  set_each("mica.packed.tensor_offset", manifest.tensors, &gguf::TensorInfo::offset);
  set_each("mica.packed.tensor_packed", manifest.tensors, &gguf::TensorInfo::packed);
  set_each("mica.packed.tensor_parts", manifest.tensors, &gguf::TensorInfo::parts);
  set_each("mica.packed.tensor_stride", manifest.tensors, &gguf::TensorInfo::stride);
  std::vector<std::uint64_t> checksums;
  for (const gguf::TensorInfo& tensor : manifest.tensors) {
    checksums.insert(checksums.end(), tensor.checksums.begin(), tensor.checksums.end());
    writer.add(tensor.name, tensor.format.id, std::span(tensor.dims).first(tensor.n_dims), gguf::Fill());
  }
  writer.set_array("mica.packed.checksums", checksums);
  std::vector<std::byte> bytes = writer.header();
  gguf::append_number(bytes, io::checksum(bytes));
  return bytes;
}

}  // namespace mica::pack
