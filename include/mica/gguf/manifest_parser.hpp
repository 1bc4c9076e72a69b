// SPDX-License-Identifier: Apache-2.0
//
// Reads manifest.json of a packed directory, as hostile as any file: names stay in the directory, shapes and bytes agree, parts lie in
// their files. That the files are there and parts do not overlap is looked at in packed_files.hpp.
#pragma once

#include "mica/base/bits.hpp"
#include "mica/gguf/detail/json_scanner.hpp"
#include "mica/gguf/manifest.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace mica::gguf {

namespace detail {

/// The bytes of a tensor whose dims and format are set; empty when it cannot be.
[[nodiscard]] inline std::optional<std::uint64_t> bytes_of_shape(const TensorInfo& tensor) noexcept {
  std::optional<std::uint64_t> n = tensor.dims[0] / tensor.format.block_size;
  if (tensor.dims[0] % tensor.format.block_size != 0) return std::nullopt;
  for (const std::uint64_t factor :
       {tensor.dims[1], tensor.dims[2], tensor.dims[3], std::uint64_t{tensor.format.block_bytes}}) {
    if (n) n = checked_mul(*n, factor);
  }
  return n;
}

/// Reads the text of Manifest::text() in its order.
class ManifestReader {
 public:
  ManifestReader(const std::string& path, std::string_view text) : in_(path, text), path_(path) {}
  [[nodiscard]] Manifest read();

 private:
  void read_file(Manifest& manifest);
  [[nodiscard]] TensorInfo read_tensor(const Manifest& manifest);
  void read_dims(TensorInfo& tensor);
  void read_place(TensorInfo& tensor, const Manifest& manifest);
  void read_checksums(TensorInfo& tensor);
  [[nodiscard]] bool read_layout();

  JsonScanner in_;
  const std::string& path_;
  std::map<std::string_view, std::uint32_t> files_;  // by name
};

inline Manifest ManifestReader::read() {
  Manifest manifest;
  in_.expect('{');
  in_.key("mica_packed");
  const std::uint64_t version = in_.number();
  MICA_CHECK(version == Manifest::version, unsupported, path_, ": packed in version ", version,
             " of the format; version ", Manifest::version, " is read; pack the model again");
  in_.next_key("layout");
  if (!read_layout()) in_.refuse("'", Manifest::layout, "' is needed");
  in_.next_key("source");
  in_.expect('{');
  in_.key("fingerprint");
  manifest.fingerprint = in_.hex();
  in_.next_key("identity");
  manifest.identity = in_.hex();
  in_.expect('}');
  in_.next_key("metadata_checksum");
  manifest.metadata_checksum = in_.hex();
  in_.next_key("files");
  in_.list([&] { read_file(manifest); });
  in_.next_key("tensors");
  in_.list([&] {
    MICA_CHECK(manifest.tensors.size() < Manifest::max_tensors, limit, path_, ": more than ",
               Manifest::max_tensors, " tensors");
    manifest.tensors.push_back(read_tensor(manifest));
  });
  in_.expect(',');
  return manifest;
}

/// Names have no folders in them and do not begin with a dot, so that no file is outside of the directory.
inline void ManifestReader::read_file(Manifest& manifest) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  Manifest::File file;
  MICA_CHECK(manifest.files.size() < Manifest::max_files, limit, path_, ": more than ", Manifest::max_files,
             " files");
  in_.expect('{');
  in_.key("name");
  const std::string_view name = in_.text();
  const bool good = !name.empty() && name.size() <= 64 && name[0] != '.' &&
                    name.find_first_not_of(allowed) == std::string_view::npos;
  if (!good) in_.refuse("'", escaped(name), "' is no name of a file beside it");
  const auto number = static_cast<std::uint32_t>(manifest.files.size());
  if (!files_.try_emplace(name, number).second) in_.refuse("'", name, "' stands there twice");
  file.name = name;
  in_.next_key("bytes");
  file.bytes = in_.number();
  in_.expect('}');
  manifest.files.push_back(std::move(file));
}

inline TensorInfo ManifestReader::read_tensor(const Manifest& manifest) {
  TensorInfo tensor;
  in_.expect('{');
  in_.key("name");
  tensor.name = in_.text();
  in_.expect(',');
  read_dims(tensor);
  in_.next_key("format");
  const std::string_view format = in_.text();
  const auto known = format::find(format);
  MICA_CHECK(known, unsupported, path_, ": tensor '", tensor.name, "': format '", escaped(format),
             "' is not known");
  tensor.format = *known;
  in_.next_key("layout");
  tensor.packed = read_layout();
  in_.expect(',');
  read_place(tensor, manifest);
  in_.expect(',');
  read_checksums(tensor);
  in_.expect('}');
  return tensor;
}

inline bool ManifestReader::read_layout() {
  const std::string_view layout = in_.text();
  MICA_CHECK(layout == Manifest::layout || layout == "file", unsupported, path_, ": layout '",
             escaped(layout), "' is not known; '", Manifest::layout,
             "' and 'file' are; pack the model again");
  return layout == Manifest::layout;
}

inline void ManifestReader::read_dims(TensorInfo& tensor) {
  std::size_t n = 0;
  in_.key("dims");
  in_.list([&] {
    if (n == TensorInfo::max_dims) in_.refuse("1 to ", TensorInfo::max_dims, " dimensions are needed");
    tensor.dims[n++] = in_.number();
  });
  if (n == 0) in_.refuse("1 to ", TensorInfo::max_dims, " dimensions are needed");
  tensor.n_dims = static_cast<std::uint8_t>(n);
}

/// File, offset, bytes, parts, stride: all parts lie in the file.
inline void ManifestReader::read_place(TensorInfo& tensor, const Manifest& manifest) {
  in_.key("file");
  const std::string_view name = in_.text();
  const auto found = files_.find(name);
  if (found == files_.end()) in_.refuse("'", escaped(name), "' is not among the files");
  tensor.source = found->second;
  const Manifest::File& file = manifest.files[tensor.source];
  in_.next_key("offset");
  tensor.offset = in_.number();
  in_.next_key("bytes");
  tensor.bytes = in_.number();
  const auto needed = bytes_of_shape(tensor);
  if (needed != tensor.bytes)
    in_.refuse("tensor '", tensor.name, "' of shape ", tensor.shape(), " in ", tensor.format.name, " takes ",
               needed ? join(*needed) : std::string("no"), " bytes, not ", tensor.bytes);
  in_.next_key("parts");
  const std::uint64_t parts = in_.number();
  if (parts == 0 || parts > UINT32_MAX || tensor.rows() % parts != 0)
    in_.refuse("tensor '", tensor.name, "' has ", tensor.rows(), " rows, which are not ", parts, " parts");
  tensor.parts = static_cast<std::uint32_t>(parts);
  in_.next_key("stride");
  tensor.stride = in_.number();
  const bool apart = parts == 1 ? tensor.stride == 0 : tensor.stride >= tensor.part_bytes();
  const auto before = checked_mul(parts - 1, tensor.stride);
  const auto end = before ? checked_add(*before, tensor.part_bytes()) : std::nullopt;
  if (!apart || !end || tensor.offset > file.bytes || *end > file.bytes - tensor.offset)
    in_.refuse("tensor '", tensor.name, "': ", parts, " parts of ", tensor.part_bytes(), " bytes from byte ",
               tensor.offset, " on, ", tensor.stride, " apart, do not lie in the ", file.bytes, " bytes of ",
               file.name);
}

inline void ManifestReader::read_checksums(TensorInfo& tensor) {
  in_.key("checksums");
  in_.list([&] { tensor.checksums.push_back(in_.hex()); });
  if (tensor.checksums.size() != tensor.parts)
    in_.refuse("tensor '", tensor.name, "' has ", tensor.parts, " parts and ", tensor.checksums.size(),
               " checksums");
  tensor.checksums.shrink_to_fit();
}

}  // namespace detail

/// Reads a manifest; `path` stands for it in errors. Everything is checked but what only the files can tell.
/// Raises ErrorCode::file with byte and key, unsupported for another version or layout, limit.
[[nodiscard]] inline Manifest parse_manifest(std::string_view text, const std::string& path) {
  MICA_CHECK(text.size() <= Manifest::max_bytes, limit, path, ": ", text.size(),
             " bytes; allowed: ", Manifest::max_bytes);
  const std::size_t end = text.rfind("\"checksum\":");
  MICA_CHECK(end != std::string_view::npos && text.substr(end) == detail::manifest_end(text.substr(0, end)),
             file, path,
             ": damaged: its last line is not the checksum of what stands before; pack the model again");
  return detail::ManifestReader(path, text.substr(0, end)).read();
}

}  // namespace mica::gguf
