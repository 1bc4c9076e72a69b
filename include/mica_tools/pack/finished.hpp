// SPDX-License-Identifier: Apache-2.0
//
// What an earlier run left in a folder, so that packing continues where it ended. A file is kept when the
// manifest in the folder has the places of the plan, and the bytes of the file have its checksums.
#pragma once

#include "mica/gguf/detail/packed_files.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/io/detail/path.hpp"
#include "mica/io/folder_file.hpp"
#include "mica_tools/pack/plan.hpp"
#include "mica_tools/pack/verify.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <unistd.h>

namespace mica::pack::detail {

namespace fs = std::filesystem;

/// Whether a name is one of AtomicFile's for an unfinished file.
[[nodiscard]] inline bool is_leftover(std::string_view name) {
  return name.size() > 6 && name.front() == '.' && name.ends_with(".part");
}

/// Refuses a folder that holds other files than a packed model, and removes files that a killed run left
/// unfinished. A link is refused too: packing would write to what it points to. Requires the folder's lock.
/// Raises ErrorCode::usage, and unsupported for a folder of an earlier version.
inline void clean_folder(const std::string& folder) {
  const bool ours =
      gguf::has_file(folder, gguf::names::manifest) || gguf::has_file(folder, gguf::names::progress);
  if (!ours) gguf::refuse_first_version(folder);
  std::vector<std::string> leftovers;
  const bool is_read = io::detail::for_each_beside(folder + "/", [&](int, std::string_view name) {
    const bool leftover = is_leftover(name);
    std::error_code ignored;
    MICA_CHECK(!fs::is_symlink(fs::symlink_status(io::in_folder(folder, name), ignored)), usage, folder,
               ": holds a link, '", escaped(name),
               "', and what it points to would be overwritten; remove it, or name another folder");
    MICA_CHECK(ours || leftover, usage, folder, ": holds '", escaped(name),
               "' and no packed model; name a folder that is empty, or not there yet");
    if (leftover) leftovers.push_back(io::in_folder(folder, name));
    return true;
  });
  MICA_CHECK(is_read, file, folder, ": the folder cannot be read: ", io::detail::errno_text(errno));
  for (const std::string& path : leftovers) ::unlink(path.c_str());
}

/// The manifest in a folder, finished or not; empty when none can be read.
[[nodiscard]] inline std::optional<gguf::Manifest> earlier_manifest(const std::string& folder,
                                                                    format::Table formats, LogSink log) {
  for (const std::string_view name : {gguf::names::manifest, gguf::names::progress}) {
    if (!gguf::has_file(folder, name)) continue;
    try {
      return gguf::read_manifest(gguf::Source(io::File::open(io::folder_file(folder, name))), formats);
    } catch (const Error& damage) {
      if (damage.code() != ErrorCode::file && damage.code() != ErrorCode::unsupported) throw;
      log(LogLevel::warning, join(damage.message(), "; all files are written again"));
    }
  }
  return std::nullopt;
}

/// Whether two descriptions of a tensor put the same bytes at the same place.
[[nodiscard]] inline bool same_place(const gguf::TensorInfo& a, const gguf::TensorInfo& b) {
  return a.name == b.name && a.dims == b.dims && a.format.id == b.format.id && a.packed == b.packed &&
         a.source == b.source && a.offset == b.offset && a.parts == b.parts && a.stride == b.stride;
}

/// Which files of the plan are there and whole; the checksums of their tensors are set. Raises
/// ErrorCode::usage for the packed model of another source.
template <mica::Allocator A>
[[nodiscard]] std::vector<bool> finished_files(Plan& plan, const std::string& folder, format::Table formats,
                                               A allocator, LogSink log) {
  std::vector<bool> finished(plan.manifest.files.size());
  const auto earlier = earlier_manifest(folder, formats, log);
  if (!earlier) return finished;
  MICA_CHECK(
      earlier->fingerprint == plan.manifest.fingerprint && earlier->identity == plan.manifest.identity, usage,
      folder,
      ": holds a packed model of another file, or of this one before it changed; remove the folder, or "
      "name another one");
  std::vector<gguf::TensorInfo>& tensors = plan.manifest.tensors;
  if (earlier->files != plan.manifest.files ||
      !std::equal(tensors.begin(), tensors.end(), earlier->tensors.begin(), earlier->tensors.end(),
                  same_place))
    return finished;
  for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i].checksums = earlier->tensors[i].checksums;
  Verifier<A> verifier(allocator, log, {});
  for (std::uint32_t i = 1; i < finished.size(); ++i) {
    if (!gguf::has_file(folder, plan.manifest.files[i].name)) continue;
    const gguf::Source file(io::File::open(io::in_folder(folder, plan.manifest.files[i].name)));
    finished[i] = file.size() == plan.manifest.files[i].bytes && !verifier.damage(file, tensors, i);
  }
  return finished;
}

}  // namespace mica::pack::detail
