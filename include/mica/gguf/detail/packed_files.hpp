// SPDX-License-Identifier: Apache-2.0
//
// Opens the files of a packed directory (docs/pack.md): the manifest is read and checked, of the others the
// size. Readers of weights check their bytes.
#pragma once

#include "mica/gguf/manifest.hpp"
#include "mica/io/folder_file.hpp"

#include <string>
#include <vector>

namespace mica::gguf {

namespace names {

inline constexpr std::string_view manifest = "manifest.gguf";
inline constexpr std::string_view progress = "progress.gguf";  // of a directory that is not finished

}  // namespace names

[[nodiscard]] inline bool has_file(const std::string& folder, std::string_view name) {
  return io::exists(io::in_folder(folder, name));
}

/// Raises ErrorCode::unsupported for a directory that a version before 2 packed.
inline void refuse_first_version(const std::string& folder) {
  for (const std::string_view name : {"manifest.json", "progress.json"})
    MICA_CHECK(!has_file(folder, name) || !has_file(folder, "metadata.gguf"), unsupported, folder,
               ": packed by an earlier version of mica, of which ", name,
               " is left, which is no longer read; remove the folder and pack the model again");
}

/// Whether a path is a directory that `mica pack` finished. Raises ErrorCode::file for one that it did not,
/// and unsupported for one of an earlier version.
[[nodiscard]] inline bool is_packed_folder(const std::string& path) {
  if (!io::is_folder(path)) return false;
  if (has_file(path, names::manifest)) return true;
  MICA_CHECK(!has_file(path, names::progress), file, path,
             ": packing was not finished; run mica pack with the same source and folder again");
  refuse_first_version(path);
  return false;
}

/// What a Document of a packed directory is made of: the manifest is the header of all files.
struct PackedFiles {
  std::vector<Source> sources;
  Manifest manifest;
};

/// Opens a directory that is_packed_folder(). Raises ErrorCode::file, unsupported or limit, naming the file;
/// a file that is a link out of the directory is refused (io/folder_file.hpp).
[[nodiscard]] inline PackedFiles open_packed_files(const std::string& folder, format::Table formats) {
  const std::string path = io::folder_file(folder, names::manifest);
  PackedFiles out{{}, read_manifest(Source(io::File::open(path)), formats)};
  const std::vector<Manifest::File>& files = out.manifest.files;
  MICA_CHECK(!files.empty() && files[0].name == names::manifest, file, path,
             ": key 'mica.packed.files': the first name must be ", names::manifest, "; pack the model again");
  for (const Manifest::File& file : files) {
    const std::string name = io::folder_file(folder, file.name);
    MICA_CHECK(io::exists(name), file, name, ": is missing; pack the model again");
    const Source& source = out.sources.emplace_back(io::File::open(name));
    MICA_CHECK(source.size() == file.bytes, file, source.path(), ": ", source.size(),
               " bytes; the manifest has ", file.bytes,
               "; the file was cut or replaced: pack the model again");
  }
  detail::refuse_overlaps(out.manifest.tensors, {out.sources.data(), out.sources.size()},
                          "; pack the model again");
  return out;
}

}  // namespace mica::gguf
