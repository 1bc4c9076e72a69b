// SPDX-License-Identifier: Apache-2.0
//
// Opens the files of a packed directory (docs/pack.md): the manifest and the metadata are read and checked, of the others the length. Whoever
// reads weights checks their bytes.
#pragma once

#include "mica/gguf/header.hpp"
#include "mica/gguf/manifest_parser.hpp"
#include "mica/io/folder_file.hpp"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::gguf {

/// The files of a packed directory and what is in them, as a Document takes them.
struct PackedFiles {
  Manifest manifest;  // without its tensors, which stand in the headers
  std::vector<Source> sources;
  std::vector<Header> headers;
};

namespace names {

inline constexpr std::string_view manifest = "manifest.json";
inline constexpr std::string_view progress = "progress.json";  // of a directory that is not finished
inline constexpr std::string_view metadata = "metadata.gguf";

}  // namespace names

/// "DIR/name"
[[nodiscard]] inline std::string in_folder(const std::string& folder, std::string_view name) {
  return (std::filesystem::path(folder) / name).string();
}

/// Whether a path is a directory that `mica pack` finished. Raises ErrorCode::file for one that it did not.
[[nodiscard]] inline bool is_packed_folder(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return false;
  if (std::filesystem::exists(in_folder(path, names::manifest), error)) return true;
  MICA_CHECK(!std::filesystem::exists(in_folder(path, names::progress), error), file, path,
             ": packing was not finished; run mica pack with the same source and folder again");
  return false;
}

namespace detail {

/// All bytes of a file that has at most so many.
[[nodiscard]] inline std::string read_small(const io::File& file, std::uint64_t most) {
  MICA_CHECK(file.size() <= most, limit, file.path(), ": ", file.size(), " bytes; allowed: ", most);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

[[nodiscard]] inline std::uint64_t checksum_of(const Source& source) {
  io::Checksum sum;
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < source.size(); at += bytes.size()) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), source.size() - at));
    source.read_at(at, std::span(bytes).first(n));
    sum.add(std::span(bytes).first(n));
  }
  return sum.value();
}

/// A part of a tensor in its file.
struct PlacedPart {
  std::uint64_t offset = 0;
  const TensorInfo* tensor = nullptr;
  std::uint32_t part = 0;
};

/// All parts of the tensors of file number `source`, by place. As many as the manifest has checksums.
[[nodiscard]] inline std::vector<PlacedPart> parts_in_order(std::span<const TensorInfo> tensors,
                                                            std::uint32_t source) {
  std::vector<PlacedPart> parts;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.source != source || tensor.empty()) continue;
    for (std::uint32_t i = 0; i < tensor.parts; ++i)
      parts.push_back({tensor.offset + i * tensor.stride, &tensor, i});
  }
  std::sort(parts.begin(), parts.end(),
            [](const PlacedPart& a, const PlacedPart& b) { return a.offset < b.offset; });
  return parts;
}

inline void refuse_overlapping_parts(const std::vector<PlacedPart>& parts, const Source& source) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const PlacedPart &before = parts[i - 1], &after = parts[i];
    MICA_CHECK(before.tensor->part_bytes() <= after.offset - before.offset, file, source.path(),
               ": tensors '", before.tensor->name, "' and '", after.tensor->name, "' overlap at byte ",
               after.offset, "; the manifest is damaged or was edited: pack the model again");
  }
}

[[nodiscard]] inline Source open_packed_file(const std::string& folder, const Manifest::File& file) {
  Source source(io::File::open(io::folder_file(folder, file.name)));
  MICA_CHECK(source.size() == file.bytes, file, source.path(), ": ", source.size(),
             " bytes; the manifest has ", file.bytes, "; the file was cut or replaced: pack the model again");
  return source;
}

[[nodiscard]] inline Header read_metadata(const Source& source, const Manifest& manifest) {
  MICA_CHECK(checksum_of(source) == manifest.metadata_checksum, file, source.path(),
             ": damaged: its checksum is not that of the manifest; pack the model again");
  Header header = read_header(source);
  MICA_CHECK(header.tensors.empty(), file, source.path(),
             ": holds tensors; the metadata of a packed directory has none");
  return header;
}

}  // namespace detail

/// The manifest of a file, read whole. Raises as io::File::open and parse_manifest.
[[nodiscard]] inline Manifest read_manifest(const std::string& path) {
  return parse_manifest(detail::read_small(io::File::open(path), Manifest::max_bytes), path);
}

/// Opens a directory that is_packed_folder(). Raises ErrorCode::file, unsupported or limit, naming the file; a file that is
/// a link out of the directory is refused (io/folder_file.hpp).
[[nodiscard]] inline PackedFiles open_packed_files(const std::string& folder) {
  const std::string path = io::folder_file(folder, names::manifest);
  PackedFiles out{read_manifest(path), {}, {}};
  Manifest& manifest = out.manifest;
  MICA_CHECK(!manifest.files.empty() && manifest.files[0].name == names::metadata, file, path,
             ": the first of its files must be ", names::metadata);
  for (const Manifest::File& file : manifest.files)
    out.sources.push_back(detail::open_packed_file(folder, file));
  out.headers.resize(manifest.files.size());
  out.headers[0] = detail::read_metadata(out.sources[0], manifest);
  for (TensorInfo& tensor : manifest.tensors) {
    MICA_CHECK(tensor.source != 0, file, path, ": tensor '", tensor.name, "' lies in ", names::metadata);
    out.headers[tensor.source].tensors.push_back(std::move(tensor));
  }
  manifest.tensors.clear();
  for (std::uint32_t i = 1; i < out.headers.size(); ++i)
    detail::refuse_overlapping_parts(detail::parts_in_order(out.headers[i].tensors, i), out.sources[i]);
  return out;
}

}  // namespace mica::gguf
