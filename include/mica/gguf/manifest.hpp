// SPDX-License-Identifier: Apache-2.0
//
// The manifest of a packed directory (docs/pack.md): a GGUF header with the keys and tensors of the model,
// and with keys that say where the tensors lie. Behind it stand eight bytes: the checksum of all bytes before
// them.
//
//   mica.packed.version, .layout                 of this format, and of packed rows
//   mica.packed.fingerprint, .identity           of the source
//   mica.packed.files, .file_bytes               names and sizes; the first is the manifest itself
//   mica.packed.tensor_file, _offset, _packed, _parts, _stride      one value for each tensor
//   mica.packed.checksums                        one value for each part of each tensor
#pragma once

#include "mica/base/bits.hpp"
#include "mica/gguf/detail/header.hpp"
#include "mica/io/checksum.hpp"

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::gguf {

/// A header whose tensors lie in the files of a directory: TensorInfo::source is the number of the file.
struct Manifest : Header {
  static constexpr std::uint32_t current_version = 2;    // the one version that is read and written
  static constexpr std::string_view layout = "rows16";   // of packed tensors
  static constexpr std::size_t max_files = 1 << 12;      // a manifest with more is refused
  static constexpr std::size_t max_parts = 1 << 20;      // of all tensors
  static constexpr std::uint64_t tensor_alignment = 64;  // bytes, in its file

  /// A file of the directory.
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    friend bool operator==(const File&, const File&) = default;
  };

  std::uint64_t fingerprint = 0;  // of the source (gguf/fingerprint.hpp)
  std::uint64_t identity = 0;     // of the source's files: sizes and times
  std::vector<File> files = {};   // the first: the manifest itself
};

namespace detail {

inline void check_own_checksum(const Source& source) {
  MICA_CHECK(source.size() <= max_header_bytes, limit, source.path(), ": ", source.size(),
             " bytes; allowed: ", max_header_bytes);
  std::vector<std::byte> manifest(static_cast<std::size_t>(source.size()));
  const std::span bytes(manifest.data(), manifest.size());
  source.read_at(0, bytes);
  std::uint64_t stored = 0;
  const bool whole = bytes.size() > sizeof stored;
  const auto before = bytes.first(whole ? bytes.size() - sizeof stored : 0);
  if (whole) std::memcpy(&stored, before.data() + before.size(), sizeof stored);
  MICA_CHECK(whole && io::checksum(before) == stored, file, source.path(),
             ": damaged: its last 8 bytes are not the checksum of all before them; pack the model again");
}

/// The array of a key, which has n elements.
template <class T>
[[nodiscard]] Array<T> array_of(const Metadata& keys, std::string_view key, std::uint64_t n) {
  const auto array = keys.require<Array<T>>(key);
  MICA_CHECK(array.size() == n, file, keys.file(), ": key '", key, "' has ", array.size(),
             " elements; needed: ", n);
  return array;
}

/// Names have no folders in them and do not begin with a dot, so that every file is in the directory.
inline void read_files(Manifest& manifest) {
  constexpr std::string_view key = "mica.packed.files", allowed = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  const Metadata& keys = manifest.metadata;
  const auto names = keys.require<Array<std::string_view>>(key);
  MICA_CHECK(names.size() <= Manifest::max_files, limit, keys.file(), ": key '", key, "' has ", names.size(),
             " names; allowed: ", Manifest::max_files);
  const auto bytes = array_of<std::uint64_t>(keys, "mica.packed.file_bytes", names.size());
  for (const std::string_view name : names) {
    MICA_CHECK(!name.empty() && name.size() <= 64 && name[0] != '.' &&
                   name.find_first_not_of(allowed) == std::string_view::npos,
               file, keys.file(), ": key '", key, "': '", escaped(name),
               "' is no name of a file beside it; needed: 1 to 64 of ", allowed, ", not a dot first");
    manifest.files.push_back({std::string(name), bytes[manifest.files.size()]});
  }
  const NameList all = names_in(manifest.files);
  const NameIndex index(manifest.files.size(), all);
  const std::uint32_t* const twice = index.duplicate(all);
  MICA_CHECK(twice == nullptr, file, keys.file(), ": key '", key, "': '", all[twice[0]], "' appears twice");
}

/// A tensor's parts are equal, apart, and in its file.
inline void check_place(const TensorInfo& tensor, const Manifest& manifest) {
  const auto check = [&](bool good, const auto&... parts) {
    MICA_CHECK(good, file, manifest.metadata.file(), ": tensor '", escaped(tensor.name), "': ", parts...);
  };
  check(tensor.source > 0 && tensor.source < manifest.files.size(), "key 'mica.packed.tensor_file' is ",
        tensor.source, "; needed: a file from 1 to ", manifest.files.size() - 1);
  check(tensor.parts != 0 && tensor.rows() % tensor.parts == 0, "key 'mica.packed.tensor_parts' is ",
        tensor.parts, "; its ", tensor.rows(), " rows are not that many equal parts");
  const Manifest::File& file = manifest.files[tensor.source];
  const std::uint64_t bytes = tensor.part_bytes();
  const bool apart = tensor.parts == 1 ? tensor.stride == 0 : tensor.stride >= bytes;
  const auto before = checked_mul(tensor.parts - std::uint64_t{1}, tensor.stride);
  const auto end = before ? checked_add(*before, bytes) : std::nullopt;
  check(apart && end && tensor.offset <= file.bytes && *end <= file.bytes - tensor.offset, tensor.parts,
        " parts of ", bytes, " bytes from byte ", tensor.offset, " on, ", tensor.stride,
        " apart, do not lie in the ", file.bytes, " bytes of ", file.name);
  check((tensor.offset | tensor.stride) % Manifest::tensor_alignment == 0, "offset ", tensor.offset,
        " and stride ", tensor.stride, " are not multiples of ", Manifest::tensor_alignment);
}

inline void read_places(Manifest& manifest) {
  const Metadata& keys = manifest.metadata;
  const std::size_t n = manifest.tensors.size();
  const auto files = array_of<std::uint32_t>(keys, "mica.packed.tensor_file", n),
             parts = array_of<std::uint32_t>(keys, "mica.packed.tensor_parts", n);
  const auto offsets = array_of<std::uint64_t>(keys, "mica.packed.tensor_offset", n),
             strides = array_of<std::uint64_t>(keys, "mica.packed.tensor_stride", n);
  const auto packed = array_of<bool>(keys, "mica.packed.tensor_packed", n);
  std::uint64_t all_parts = 0;
  for (std::size_t i = 0; i < n; ++i) {
    TensorInfo& tensor = manifest.tensors[i];
    tensor.source = files[i];
    tensor.offset = offsets[i];
    tensor.packed = packed[i];
    tensor.parts = parts[i];
    tensor.stride = strides[i];
    check_place(tensor, manifest);
    all_parts += tensor.parts;
  }
  MICA_CHECK(all_parts <= Manifest::max_parts, limit, keys.file(), ": tensors of ", all_parts,
             " parts; allowed: ", Manifest::max_parts);
  auto checksum = array_of<std::uint64_t>(keys, "mica.packed.checksums", all_parts).begin();
  for (TensorInfo& tensor : manifest.tensors) {
    tensor.checksums.reserve(tensor.parts);
    while (tensor.checksums.size() < tensor.parts) tensor.checksums.push_back(*checksum++);
  }
}

}  // namespace detail

/// Reads a manifest, without the keys of its own among the metadata; its tensors have formats of that table.
/// The files that it names are not opened.
/// Raises ErrorCode::file with key or tensor, unsupported for another version or layout, limit.
[[nodiscard]] inline Manifest read_manifest(const Source& source, format::Table formats) {
  detail::check_own_checksum(source);
  try {
    Manifest out{detail::parse_header(source, formats)};
    const Metadata& keys = out.metadata;
    const auto version = keys.require<std::uint32_t>(packed_version_key);
    MICA_CHECK(version == Manifest::current_version, unsupported, source.path(), ": key '",
               packed_version_key, "' is ", version, "; needed: ", Manifest::current_version);
    const auto layout = keys.require<std::string_view>("mica.packed.layout");
    MICA_CHECK(layout == Manifest::layout, unsupported, source.path(), ": key 'mica.packed.layout' is '",
               escaped(layout), "'; needed: '", Manifest::layout, "'");
    out.fingerprint = keys.require<std::uint64_t>("mica.packed.fingerprint");
    out.identity = keys.require<std::uint64_t>("mica.packed.identity");
    detail::read_files(out);
    detail::read_places(out);
    out.metadata.remove("mica.packed.");
    return out;
  } catch (const Error& error) {
    raise(error.code(), error.message(), "; pack the model again");
  }
}

}  // namespace mica::gguf
