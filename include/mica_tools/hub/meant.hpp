// SPDX-License-Identifier: Apache-2.0
//
// The files and unfinished downloads of a repository that a name means, and the name that means one
// unfinished download and nothing else.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/hub/variant.hpp"

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace mica::hub {

/// The files and unfinished downloads that a name means in the cache.
struct Meant {
  std::set<std::string> paths;         // of files, in all snapshots
  std::vector<Unfinished> unfinished;  // downloads that did not end
};

/// The files of a repository, of all snapshots; each path once.
[[nodiscard]] inline std::vector<File> files_here(const Cache& cache, const std::string& repo) {
  std::vector<File> files;
  std::set<std::string> seen;
  for (const Snapshot& snapshot : cache.snapshots(repo, "main")) {
    for (const File& file : snapshot.files) {
      if (seen.insert(file.path).second) files.push_back(file);
    }
  }
  return files;
}

inline constexpr std::size_t sum_digits = 12;  // of a SHA-256 that name an unfinished download

/// The meaning of a name with a quantisation or a file. In place of a quantisation, the first 12 or more
/// digits of its SHA-256 name an unfinished download. Raises as find_variant(), and usage for digits of
/// several.
[[nodiscard]] inline Meant meant_here(std::span<const File> files, std::span<const Unfinished> downloads,
                                      const Name& name) {
  Meant meant;
  if (const auto one = find_variant_here({files.begin(), files.end()}, downloads, name)) {
    for (const File& file : files) {
      if (detail::is_shard_of(file.path, *one)) meant.paths.insert(file.path);
    }
    for (const Unfinished& each : downloads) {
      if (each.is_of(*one)) meant.unfinished.push_back(each);
    }
    return meant;
  }
  if (name.quant.size() < sum_digits) return meant;
  for (const Unfinished& each : downloads) {
    if (each.sha256.starts_with(remote::detail::lower(name.quant))) meant.unfinished.push_back(each);
  }
  MICA_CHECK(meant.unfinished.size() <= 1, usage, name.text(), ": ", meant.unfinished.size(),
             " unfinished downloads have a SHA-256 that begins so; write more of its 64 digits");
  return meant;
}

/// A name that means an unfinished download and nothing else: by its quantisation, else by its path, else by
/// digits of its SHA-256.
[[nodiscard]] inline Name name_of(const std::string& repo, const Unfinished& download,
                                  std::span<const File> files, std::span<const Unfinished> downloads) {
  const auto means_it_alone = [&](const Name& name) {
    try {
      const Meant meant = meant_here(files, downloads, name);
      return meant.paths.empty() && meant.unfinished.size() == 1 &&
             meant.unfinished.front().sha256 == download.sha256;
    } catch (const Error&) {  // it means several
      return false;
    }
  };
  if (!download.path.empty()) {
    const Name by_quant{repo, detail::quant_of(download.path)}, by_path{repo, {}, download.path};
    if (is_revision(by_quant.quant) && means_it_alone(by_quant)) return by_quant;
    if (remote::detail::lower(download.path).ends_with(".gguf") && means_it_alone(by_path)) return by_path;
  }
  const Name by_digits{repo, download.sha256.substr(0, sum_digits)};
  return means_it_alone(by_digits) ? by_digits : Name{repo, download.sha256};
}

}  // namespace mica::hub
