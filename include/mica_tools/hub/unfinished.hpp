// SPDX-License-Identifier: Apache-2.0
//
// Unfinished downloads of the cache, whether or not a process continues them now. Those of other tools are
// not listed; their files have other names.
#pragma once

#include "mica/budget/size.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/partial_file.hpp"
#include "mica_tools/hub/variant.hpp"
#include "mica_tools/remote/detail/head.hpp"
#include "mica_tools/remote/token.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <sys/file.h>

namespace mica::hub {

/// An unfinished download.
struct Unfinished {
  std::string sha256;        // of the whole file, by the hub
  std::string path = {};     // in the repository; empty: not known
  std::uint64_t bytes = 0;   // on the disk
  std::uint64_t of = 0;      // 0: not known
  bool in_progress = false;  // a process continues it now

  /// Whether it is a file of a variant, or would be one.
  [[nodiscard]] bool is_of(const Variant& variant) const {
    return !path.empty() && detail::is_shard_of(path, variant);
  }
  /// "1.2 MiB of 5.4 MiB of m-Q8_0.gguf"
  [[nodiscard]] std::string text() const {
    const auto part = [](const std::string& text) { return text.empty() ? text : " of " + text; };
    return join(budget::size_text(bytes), part(of == 0 ? std::string() : budget::size_text(of)),
                part(escaped(path, 200)));
  }
};

namespace detail {

/// The lock of a download; empty if another process has it. If the lock file is missing, or the file system
/// has no locks, the download counts as free, and nothing is locked.
[[nodiscard]] inline std::optional<io::detail::Descriptor> free_lock(const std::string& path) {
  io::detail::Descriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return std::nullopt;
  return fd;
}

/// Sets size and path from the first line of the .mica.pieces file; changes neither if the line is damaged.
inline void read_first_line(const std::string& notes, Unfinished& to) {
  const std::string text = remote::detail::small_file(notes);
  std::string_view line(text);
  constexpr std::string_view begin = "mica pieces 2 ";
  if (!line.starts_with(begin) || line.find('\n') == line.npos) return;
  line = line.substr(begin.size(), line.find('\n') - begin.size());
  const std::size_t first = std::min(line.find(' '), line.size());
  const std::size_t second = std::min(line.find(' ', first + 1), line.size());
  const auto all = remote::detail::whole_number(line.substr(0, first));
  const std::string_view path = line.substr(std::min(second + 1, line.size()));
  if (all && is_safe_path(path)) {
    to.of = *all;
    to.path = path;
  }
}

}  // namespace detail

/// The unfinished downloads of a repository, sorted by SHA-256.
[[nodiscard]] inline std::vector<Unfinished> unfinished(const Cache& cache, std::string_view repo) {
  std::vector<Unfinished> found;
  for (const std::string& name : io::detail::names_in(cache.repo_folder(repo) + "/blobs")) {
    if (!name.ends_with(incomplete_suffix)) continue;
    Unfinished each{name.substr(0, name.size() - incomplete_suffix.size())};
    each.bytes = detail::allocated_bytes(cache.blob(repo, name));
    each.in_progress = !detail::free_lock(cache.lock(repo, each.sha256));
    detail::read_first_line(join(cache.blob(repo, each.sha256), pieces_suffix), each);
    found.push_back(std::move(each));
  }
  return found;
}

/// Finished files, and those of unfinished downloads whose path is known.
[[nodiscard]] inline std::vector<File> with_unfinished(std::vector<File> files,
                                                       std::span<const Unfinished> downloads) {
  for (const Unfinished& each : downloads) {
    const auto is_it = [&](const File& file) { return file.path == each.path; };
    if (!each.path.empty() && std::none_of(files.begin(), files.end(), is_it))
      files.push_back({each.path, each.of, each.sha256});
  }
  return files;
}

/// The variant that a name means among the finished files and the unfinished downloads of a repository. The
/// rules and the error are those of find_variant(), by which `pull` chooses.
[[nodiscard]] inline std::optional<Variant> find_variant_here(std::vector<File> files,
                                                              std::span<const Unfinished> downloads,
                                                              const Name& name) {
  const std::vector<Variant> variants = all_variants_of(with_unfinished(std::move(files), downloads));
  const Variant* const found = find_variant(variants, name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

/// Removes an unfinished download. False, and nothing is removed, if a process continues it now.
inline bool remove_unfinished(const Cache& cache, std::string_view repo, const Unfinished& download) {
  const auto lock = detail::free_lock(cache.lock(repo, download.sha256));
  if (!lock) return false;
  const std::string blob = cache.blob(repo, download.sha256);
  std::remove(join(blob, incomplete_suffix).c_str());
  std::remove(join(blob, pieces_suffix).c_str());
  return true;
}

}  // namespace mica::hub
