// SPDX-License-Identifier: Apache-2.0
//
// What manifest.json of a packed directory says: which file holds what, with checksums (manifest_parser.hpp reads it). The same text says of an unfinished directory
// (progress.json) what is finished. It is JSON in one order of keys, and ends with a checksum of all that stands before.
//
//   {"mica_packed":1,"layout":"rows16","source":{"fingerprint":"...","identity":"..."},"metadata_checksum":"...",
//    "files":[{"name":"layer-000.bin","bytes":N}, ...],
//    "tensors":[{"name":"...","dims":[...],"format":"Q4_K","layout":"rows16","file":"layer-000.bin","offset":N,"bytes":N,
//                "parts":1,"stride":0,"checksums":["..."]}, ...],
//    "checksum":"..."}
#pragma once

#include "mica/gguf/tensor_info.hpp"
#include "mica/io/checksum.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::gguf {

/// What a manifest says, tensors with the number of their file as `source`.
struct Manifest {
  static constexpr std::uint64_t version = 1;
  static constexpr std::string_view layout = "rows16";  // of packed tensors
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;
  static constexpr std::size_t max_files = 1 << 12;
  static constexpr std::size_t max_tensors = 1 << 16;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    friend bool operator==(const File&, const File&) = default;
  };

  std::uint64_t fingerprint = 0;  // of the source (gguf/fingerprint.hpp)
  std::uint64_t identity = 0;     // of the source's files: sizes and times
  std::uint64_t metadata_checksum = 0;
  std::vector<File> files;  // the first: metadata.gguf
  std::vector<TensorInfo> tensors;

  /// The text. Requires names of printable ASCII without quotes and backslashes (name_fits).
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static bool name_fits(std::string_view name) noexcept {
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
  }
};

namespace detail {

[[nodiscard]] inline std::string hex_text(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "\"%016llx\"", static_cast<unsigned long long>(value));
  return text.data();
}

/// What stands behind the part that the checksum is of.
[[nodiscard]] inline std::string manifest_end(std::string_view before) {
  return join("\"checksum\":", hex_text(io::checksum(std::as_bytes(std::span(before)))), "}\n");
}

}  // namespace detail

inline std::string Manifest::text() const {
  using detail::hex_text;
  std::string out =
      join("{\"mica_packed\":", version, ",\"layout\":\"", layout,
           "\",\"source\":{\"fingerprint\":", hex_text(fingerprint), ",\"identity\":", hex_text(identity),
           "},\n\"metadata_checksum\":", hex_text(metadata_checksum), ",\n\"files\":[");
  const char* before = "\n";
  for (const File& file : files) {
    out += join(before, "{\"name\":\"", file.name, "\",\"bytes\":", file.bytes, "}");
    before = ",\n";
  }
  out += "],\n\"tensors\":[";
  before = "\n";
  for (const TensorInfo& tensor : tensors) {
    out += join(before, "{\"name\":\"", tensor.name, "\",\"dims\":[");
    for (std::size_t d = 0; d < tensor.n_dims; ++d) out += join(d == 0 ? "" : ",", tensor.dims[d]);
    out += join("],\"format\":\"", tensor.format.name, "\",\"layout\":\"", tensor.packed ? layout : "file",
                "\",\"file\":\"", files[tensor.source].name, "\",\"offset\":", tensor.offset,
                ",\"bytes\":", tensor.bytes, ",\"parts\":", tensor.parts, ",\"stride\":", tensor.stride,
                ",\"checksums\":[");
    for (std::size_t i = 0; i < tensor.checksums.size(); ++i)
      out += join(i == 0 ? "" : ",", hex_text(tensor.checksums[i]));
    out += "]}";
    before = ",\n";
  }
  out += "],\n";
  return out + detail::manifest_end(out);
}

}  // namespace mica::gguf
