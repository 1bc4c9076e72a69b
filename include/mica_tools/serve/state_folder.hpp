// SPDX-License-Identifier: Apache-2.0
//
// Prefixes of one model on the disk, so that they survive a restart: each is a session file, whole or not
// there, and an index in memory has the tokens of each. Not here: when they are written.
//
//   DIR / MODEL / 8f3a...session    the name is a checksum of the tokens, MODEL is file_name_of(id)
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/detail/path.hpp"
#include "mica/io/folder_file.hpp"
#include "mica/runtime/session.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mica::serve {

/// A file name that no other id has: characters that are not common in names are %XX.
[[nodiscard]] inline std::string file_name_of(std::string_view id) {
  const bool hidden = id.starts_with('.');
  return (hidden ? "%2E" : "") + remote::detail::percent_encoded(id.substr(hidden ? 1 : 0), ".-_");
}

/// Makes a folder where it is not there, readable by its owner only. Raises ErrorCode::file where it cannot
/// be made or written to.
inline void make_folder(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::create_directories(folder, error))
    std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
  MICA_CHECK(!error, file, folder, ": the folder cannot be made: ", error.message());
  static_cast<void>(io::AtomicFile(folder + "/.writable", io::Access::owner));  // removed at once
}

/// One thread at a time.
class StateFolder {
 public:
  /// Reads the descriptions of the files that are there; files that are damaged, or no sessions, are left
  /// alone and not used. max_bytes: of all files; the oldest are removed for new ones. Raises ErrorCode::file
  /// for a folder that cannot be made or written to.
  StateFolder(std::string folder, std::uint64_t max_bytes)
      : folder_(std::move(folder)), max_bytes_(max_bytes) {
    make_folder(folder_);
    std::error_code error;
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all, error);  // it has conversations
    for (const std::string& name : io::detail::names_in(folder_)) {
      if (!name.ends_with(".session")) continue;
      try {
        add(io::in_folder(folder_, name));
      } catch (const Error&) {
      }
    }
    std::sort(files_.begin(), files_.end(), [](const File& a, const File& b) { return a.time < b.time; });
  }

  /// A file and what it has of a prompt.
  struct Match {
    std::string path;        // empty: no file
    std::size_t tokens = 0;  // in common
  };
  /// The file whose text has most first tokens in common with these, if they are more than `more_than`.
  [[nodiscard]] Match find(std::span<const TokenId> tokens, std::size_t more_than) const {
    Match best{{}, more_than};
    for (const File& file : files_) {
      const std::size_t n = common(file, tokens);
      if (n > best.tokens) best = {file.path, n};
    }
    return best;
  }
  /// Whether a file has all of these tokens at its beginning.
  [[nodiscard]] bool has(std::span<const TokenId> tokens) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const File& file) { return common(file, tokens) == tokens.size(); });
  }
  /// Writes a session; files that it begins with are removed, and the oldest ones where there are too many
  /// bytes. Raises as Session::save().
  template <class Model>
  void save(Session<Model>& session) {
    const std::span<const TokenId> tokens = session.tokens();
    char name[24];
    std::snprintf(name, sizeof name, "%016llx",
                  static_cast<unsigned long long>(io::checksum(std::as_bytes(tokens))));
    const std::string path = folder_ + "/" + name + ".session";
    session.save(path);
    const std::vector<TokenId> whole(tokens.begin(), tokens.end());
    std::erase_if(files_, [&](const File& file) {
      if (file.path != path && common(file, whole) < file.tokens.size()) return false;
      if (file.path != path) remove(file);
      return true;
    });
    add(path);
    while (files_.size() > 1 && bytes() > max_bytes_) forget(files_.front().path);
  }
  /// Removes a file, as one that could not be read.
  void forget(const std::string& path) {
    std::erase_if(files_, [&](const File& file) {
      if (file.path == path) remove(file);
      return file.path == path;
    });
  }

  [[nodiscard]] std::size_t size() const noexcept { return files_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const File& file : files_) sum += file.bytes;
    return sum;
  }

 private:
  struct File {
    std::string path;
    std::vector<TokenId> tokens;  // with keys and values
    std::uint64_t bytes;
    std::filesystem::file_time_type time;
  };

  [[nodiscard]] static std::size_t common(const File& file, std::span<const TokenId> tokens) {
    const auto differs =
        std::mismatch(file.tokens.begin(), file.tokens.end(), tokens.begin(), tokens.end()).first;
    return static_cast<std::size_t>(differs - file.tokens.begin());
  }
  static void remove(const File& file) {
    std::error_code error;
    std::filesystem::remove(file.path, error);
  }
  void add(const std::string& path) {
    const kv::SnapshotReader reader(path);
    std::vector<TokenId> tokens = reader.info().tokens;
    tokens.resize(std::min<std::size_t>(tokens.size(), reader.info().cached));
    std::error_code error;
    files_.push_back({path, std::move(tokens), std::filesystem::file_size(path, error),
                      std::filesystem::last_write_time(path, error)});
  }

  std::string folder_;
  std::uint64_t max_bytes_;
  std::vector<File> files_;  // the oldest first
};

}  // namespace mica::serve
