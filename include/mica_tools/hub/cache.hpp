// SPDX-License-Identifier: Apache-2.0
//
// The folder of downloaded models, in the layout that Hugging Face's own tools share, so that a file is
// downloaded once for all of them:
//
//   models--ORG--REPO/blobs/SHA256                     the bytes
//   models--ORG--REPO/refs/main                        a commit
//   models--ORG--REPO/snapshots/COMMIT/FILE.gguf  ->   ../../blobs/SHA256
//   .locks/models--ORG--REPO/SHA256.lock               of a download, by flock()
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/detail/path.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/partial_file.hpp"
#include "mica_tools/remote/token.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::hub {

/// A snapshot of a repository: those of its files at one commit that are on this machine.
struct Snapshot {
  std::string commit;       ///< the name of its folder
  std::vector<File> files;  ///< GGUF files, by path
};

/// Other processes may change the folder at any time, so a result may be outdated as soon as it is returned.
class Cache {
 public:
  /// The folder need not exist; then the cache is empty.
  explicit Cache(std::string folder) : folder_(std::move(folder)) {}

  /// HF_HUB_CACHE, else `hub` in the folder of Hugging Face's tools. Raises ErrorCode::usage when the
  /// environment names neither.
  [[nodiscard]] static Cache of_environment() {
    if (std::string chosen = remote::detail::path_variable("HF_HUB_CACHE"); !chosen.empty())
      return Cache(std::move(chosen));
    const std::string home = remote::hugging_face_home();
    MICA_CHECK(!home.empty(), usage,
               "no folder for models: neither HF_HUB_CACHE nor HF_HOME nor HOME is set; set the first");
    return Cache(home + "/hub");
  }

  /// Paths of the cache, of a repository, of a blob, and of its lock. They need not exist.
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  [[nodiscard]] std::string repo_folder(std::string_view repo) const {
    return join(folder_, "/", folder_name(repo));
  }
  [[nodiscard]] std::string blob(std::string_view repo, std::string_view sha256) const {
    return join(repo_folder(repo), "/blobs/", sha256);
  }
  [[nodiscard]] std::string lock(std::string_view repo, std::string_view sha256) const {
    return join(folder_, "/.locks/", folder_name(repo), "/", sha256, ".lock");
  }
  /// The path of a file of a snapshot.
  [[nodiscard]] std::string path(std::string_view repo, std::string_view commit,
                                 std::string_view file) const {
    return join(repo_folder(repo), "/snapshots/", commit, "/", file);
  }

  /// "ORG/REPO" of each repository, sorted; none if there is no folder. Raises ErrorCode::file for a folder
  /// that cannot be read.
  [[nodiscard]] std::vector<std::string> repositories() const;
  /// The name of a repository as the folder spells it, which may differ in case; the given name if it is not
  /// there.
  [[nodiscard]] std::string spelled(const std::string& repo) const {
    for (const std::string& each : repositories()) {
      if (remote::detail::lower(each) == remote::detail::lower(repo)) return each;
    }
    return repo;
  }
  /// The snapshots of a repository that have a file; that of the revision first, then the others, the
  /// newest first.
  [[nodiscard]] std::vector<Snapshot> snapshots(std::string_view repo, std::string_view revision) const;
  /// The commit of a revision; empty when it is not known here.
  [[nodiscard]] std::string commit_of(std::string_view repo, std::string_view revision) const {
    if (is_commit(revision)) return std::string(revision);
    const std::string commit = remote::detail::small_file(join(repo_folder(repo), "/refs/", revision));
    return is_commit(commit) ? commit : std::string();
  }
  /// Whether the whole blob of a file is here.
  [[nodiscard]] bool has(std::string_view repo, const File& file) const {
    std::error_code error;
    return std::filesystem::file_size(blob(repo, file.sha256), error) == file.bytes && !error;
  }

  /// Gives the blob of a file its name in a snapshot. On a file system without links the blob itself moves
  /// there. Raises ErrorCode::file when this fails, failed for a full disk.
  void add(std::string_view repo, std::string_view commit, const File& file) const;
  /// Stores the commit of a revision. Raises as io::AtomicFile.
  void set_commit(std::string_view repo, std::string_view revision, std::string_view commit) const;
  /// Removes files of all snapshots, blobs that no snapshot has any more, and folders that become empty.
  /// Returns the bytes of removed files. Raises ErrorCode::file when one cannot be removed, or is behind a
  /// folder that is a link, which may lead out of the cache; then nothing is removed.
  std::uint64_t remove(std::string_view repo,
                       const std::function<bool(const std::string& path)>& chosen) const;

 private:
  [[nodiscard]] static std::string folder_name(std::string_view repo) {
    const std::size_t slash = repo.find('/');
    return join("models--", repo.substr(0, slash), "--", repo.substr(slash + 1));
  }
  void remove_traces(std::string_view repo) const;

  std::string folder_;
};

namespace detail {

namespace fs = std::filesystem;

/// Calls f(entry, path below the folder) for all files below a folder, links included; eight folders deep.
template <class F>
void for_each_file(const fs::path& folder, F&& f) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    if (entry.depth() > 8) entry.disable_recursion_pending();
    std::error_code ignored;
    if (!fs::is_directory(entry->symlink_status(ignored)))
      f(*entry, entry->path().lexically_relative(folder).generic_string());
  }
}

[[nodiscard]] inline bool is_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(fs::symlink_status(path, ignored));
}

/// Removes the empty folders below a folder, and itself once it is empty. Files and links stay.
inline void remove_empty_folders(const fs::path& folder) {
  if (is_link(folder)) return;
  std::vector<std::string> folders{folder.string()};
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (fs::is_directory(entry->symlink_status(ignored))) folders.push_back(entry->path().string());
  }
  for (std::size_t i = folders.size(); i > 0; --i) ::rmdir(folders[i - 1].c_str());  // inner ones first
}

/// Bytes of a file on the disk: of one with holes, less than its size.
[[nodiscard]] inline std::uint64_t allocated_bytes(const std::string& path) {
  struct ::stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

inline constexpr std::string_view other_folder = "; HF_HUB_CACHE names another folder for models";

/// Creates a folder and those above it. Raises ErrorCode::file with the reason, failed for a full disk.
inline void make_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    raise(code_of(error.value()), folder.string(), ": the folder cannot be made: ", error.message(),
          other_folder);
}

}  // namespace detail

inline std::vector<std::string> Cache::repositories() const {
  std::vector<std::string> repos;
  const bool readable = ::access(join(folder_, "/").c_str(), R_OK | X_OK) == 0;
  MICA_CHECK(readable || errno == ENOENT, file, folder_,
             ": the folder of models cannot be read: ", io::detail::errno_text(errno), detail::other_folder);
  for (const std::string& name : io::detail::names_in(folder_)) {
    constexpr std::string_view prefix = "models--";
    if (!name.starts_with(prefix)) continue;
    std::string repo = name.substr(prefix.size());
    const std::size_t middle = repo.find("--");
    if (middle == repo.npos) continue;  // a repository without an owner, from the first years of the hub
    repo.replace(middle, 2, "/");
    repos.push_back(std::move(repo));
  }
  return repos;
}

inline std::vector<Snapshot> Cache::snapshots(std::string_view repo, std::string_view revision) const {
  namespace fs = std::filesystem;
  std::vector<std::pair<fs::file_time_type, Snapshot>> found;
  const std::string folder = repo_folder(repo) + "/snapshots";
  for (const std::string& commit : io::detail::names_in(folder)) {
    Snapshot snapshot{commit, {}};
    detail::for_each_file(fs::path(folder) / commit, [&](const fs::directory_entry& entry, std::string path) {
      std::error_code error;
      const std::uint64_t bytes = entry.file_size(error);
      if (error || !remote::detail::lower(path).ends_with(".gguf")) return;  // a link to a removed blob
      const fs::path target = fs::read_symlink(entry.path(), error);
      snapshot.files.push_back({std::move(path), bytes, error ? "" : target.filename().string()});
    });
    std::sort(snapshot.files.begin(), snapshot.files.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
    std::error_code error;
    const auto time = fs::last_write_time(fs::path(folder) / commit, error);
    if (!snapshot.files.empty()) found.emplace_back(time, std::move(snapshot));
  }
  const std::string first = commit_of(repo, revision);
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
    const bool a_is_first = a.second.commit == first, b_is_first = b.second.commit == first;
    return a_is_first != b_is_first ? a_is_first : a.first > b.first;
  });
  std::vector<Snapshot> snapshots;
  for (auto& [time, snapshot] : found) snapshots.push_back(std::move(snapshot));
  return snapshots;
}

inline void Cache::add(std::string_view repo, std::string_view commit, const File& file) const {
  namespace fs = std::filesystem;
  const fs::path link = path(repo, commit, file.path);
  detail::make_folders(link.parent_path());
  std::string up = "../..";  // from snapshots/COMMIT; one more for each folder of the file
  for (const char c : file.path) {
    if (c == '/') up += "/..";
  }
  const fs::path target = join(up, "/blobs/", file.sha256);
  std::error_code error;
  if (fs::read_symlink(link, error) == target && !error) return;
  // Made under another name first, so that at any time the old file or the new one is there.
  const fs::path other = join(link.string(), ".", ::getpid(), ".new");
  fs::remove(other, error);
  fs::create_symlink(target, other, error);
  const bool lacks_links = error == std::errc::operation_not_permitted || error == std::errc::not_supported ||
                           error == std::errc::function_not_supported;
  if (lacks_links) {
    fs::rename(blob(repo, file.sha256), link, error);
  } else if (!error) {
    fs::rename(other, link, error);
  }
  if (error) raise(code_of(error.value()), link.string(), ": cannot be written: ", error.message());
}

inline void Cache::set_commit(std::string_view repo, std::string_view revision,
                              std::string_view commit) const {
  if (is_commit(revision) || commit_of(repo, revision) == commit) return;
  const std::string path = join(repo_folder(repo), "/refs/", revision);
  detail::make_folders(std::filesystem::path(path).parent_path());
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) std::filesystem::remove(path, error);  // such as a pipe
  io::write_atomically(path, [&](io::AtomicFile& out) { out.write(std::as_bytes(std::span(commit))); });
}

inline std::uint64_t Cache::remove(std::string_view repo,
                                   const std::function<bool(const std::string& path)>& chosen) const {
  namespace fs = std::filesystem;
  const std::string snapshots = repo_folder(repo) + "/snapshots";
  std::vector<fs::path> files, blobs, kept;
  const bool all_linked = detail::is_link(snapshots);
  for (const std::string& commit : io::detail::names_in(snapshots)) {
    const fs::path folder = all_linked ? fs::path(snapshots) : fs::path(snapshots) / commit;
    const bool is_linked = detail::is_link(folder);
    detail::for_each_file(fs::path(snapshots) / commit, [&](const fs::directory_entry& entry,
                                                            const std::string& path) {
      std::error_code error;
      const fs::path target = fs::read_symlink(entry.path(), error);
      const bool is_link = !error, is_chosen = chosen(path);
      MICA_CHECK(!is_chosen || !is_linked, file, entry.path().string(), ": is not removed, since its folder ",
                 folder.string(), " is a link, which may lead out of the cache; remove the link first");
      if (is_chosen) files.push_back(entry.path());
      if (is_link) (is_chosen ? blobs : kept).push_back(target.filename());
    });
  }
  std::uint64_t bytes = 0;
  const auto remove_file = [&](const fs::path& path) {
    std::error_code error;
    const bool is_link = fs::is_symlink(fs::symlink_status(path, error));
    const std::uint64_t size = is_link ? 0 : fs::file_size(path, error);
    if (error) return;
    fs::remove(path, error);
    MICA_CHECK(!error, file, path.string(), ": cannot be removed: ", error.message());
    bytes += size;
  };
  for (const fs::path& file : files) {
    remove_file(file);
    std::error_code not_empty;
    fs::remove(file.parent_path(), not_empty);
  }
  for (const fs::path& name : blobs) {
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) remove_file(blob(repo, name.string()));
  }
  remove_traces(repo);
  return bytes;
}

/// Removes empty folders of snapshots, references to them, and a repository without snapshots and blobs. No
/// files are removed but references and locks.
inline void Cache::remove_traces(std::string_view repo) const {
  namespace fs = std::filesystem;
  const fs::path folder = repo_folder(repo), snapshots = folder / "snapshots", refs = folder / "refs";
  if (!detail::is_link(snapshots)) {
    for (const std::string& commit : io::detail::names_in(snapshots.string()))
      detail::remove_empty_folders(snapshots / commit);
  }
  std::vector<fs::path> dead;
  detail::for_each_file(refs, [&](const fs::directory_entry& entry, const std::string&) {
    const std::string commit = remote::detail::small_file(entry.path().string());
    std::error_code ignored;
    if (is_commit(commit) && !fs::exists(fs::symlink_status(snapshots / commit, ignored)))
      dead.push_back(entry.path());
  });
  std::error_code error;
  if (!detail::is_link(refs)) {
    for (const fs::path& ref : dead) fs::remove(ref, error);
  }
  const auto is_empty = [&](const char* name) {
    return io::detail::names_in((folder / name).string()).empty();
  };
  if (!is_empty("snapshots") || !is_empty("blobs")) return;
  detail::remove_empty_folders(folder);
  if (fs::exists(fs::symlink_status(folder, error))) return;
  const fs::path locks = join(folder_, "/.locks/", folder_name(repo));
  if (detail::is_link(locks)) return;
  for (const std::string& name : io::detail::names_in(locks.string())) {
    const fs::path lock = locks / name;
    const bool is_lock = name.ends_with(".lock") && fs::is_regular_file(fs::symlink_status(lock, error));
    if (is_lock && fs::file_size(lock, error) == 0) fs::remove(lock, error);
  }
  ::rmdir(locks.c_str());
}

}  // namespace mica::hub
