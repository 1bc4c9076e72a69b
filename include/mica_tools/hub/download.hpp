// SPDX-License-Identifier: Apache-2.0
//
// Downloads files of a repository into the cache: several ranges of a file at a time, each on a connection of
// its own. After any interruption the next run continues. A file gets its name when its SHA-256 is that of
// the hub. The calling thread computes the sum while the connections read, so no second pass is needed.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/fetch.hpp"
#include "mica_tools/hub/partial_file.hpp"
#include "mica_tools/hub/resolve_url.hpp"
#include "mica_tools/hub/sha256.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/remote/client.hpp"
#include "mica_tools/remote/token.hpp"
#include "mica_tools/write/disk.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <sys/file.h>

namespace mica::hub {

/// How a download asks for bytes, and when it gives up.
struct DownloadOptions {
  std::uint64_t piece_bytes = std::uint64_t{4} << 20;  ///< bytes of a request; each connection has one buffer
  std::size_t patience = 6;  ///< failures in a row, simultaneous ones counted once; one more is an error
  std::chrono::milliseconds pause{
      1000};  ///< of all failed connections, after the first failure; then it doubles
  std::chrono::milliseconds look{100};   ///< between two calls of Watch::stop
  remote::Options remote = slow_line();  ///< token and stop are set by the download

  /// A slow line needs minutes for a piece, and a hub may ask for a minute's pause.
  [[nodiscard]] static remote::Options slow_line() {
    remote::Options options;
    options.answer = std::chrono::minutes(20);
    options.silence = std::chrono::seconds(30);
    options.longest_pause = std::chrono::seconds(60);
    return options;
  }
};

namespace detail {

/// The server's file has another size than the listing has, so its bytes are useless.
class OtherSize : public Error {
 public:
  OtherSize(std::string_view name, std::uint64_t listed, std::uint64_t found)
      : Error(ErrorCode::file, join(name, ": the hub lists ", listed, " bytes, and the server has ", found,
                                    "; the download was removed, try again")) {}
};

}  // namespace detail

/// One file that is being downloaded. Requires that this process has its lock (Cache::lock); fetch() takes
/// it.
class Download {
 public:
  /// blob: the path that the bytes get. Opens what an earlier run left; raises as PartialFile.
  Download(const remote::Url& from, std::string blob, const File& file, std::size_t connections,
           const DownloadOptions& options)
      : from_(from),
        file_(file),
        name_(from.shown()),
        connections_(connections),
        options_(options),
        partial_(std::move(blob), file.bytes, options.piece_bytes, file.path) {
    for (std::size_t piece = 0; piece < partial_.pieces(); ++piece) {
      if (partial_.is_finished(piece)) done_ += partial_.piece_size(piece);
    }
    options_.remote.stop = &stop_;
    options_.remote.token = remote::token_for(from);
  }

  /// Bytes that are on the disk.
  [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
  /// False when `watch` stopped it; finished pieces stay for the next run. Raises as remote::Client::get(),
  /// `failed` when bytes cannot be written, `file` when size or sum differ from the listing; the file is then
  /// removed. progress: called with the bytes of this file.
  [[nodiscard]] bool run(const Watch& watch, const std::function<void(std::uint64_t)>& progress);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  /// The loop of one connection, until there is no piece left.
  void work() noexcept;
  void read_pieces();
  void read_piece(remote::Client& client, remote::Url& url, std::size_t piece, std::span<std::byte> to) const;
  [[nodiscard]] std::optional<std::size_t> take();
  void finish(std::size_t piece, std::span<const std::byte> bytes);
  /// Returns a piece whose request failed, and waits; throws the error, which is being handled, again after
  /// `patience` failures in a row. A request that began before the last pause ended failed with the others,
  /// and is not counted again. fresh: the address is that of the hub.
  void put_back(std::size_t piece, const Error& error, bool fresh, Clock::time_point began);
  void end_with(std::exception_ptr error) noexcept;
  /// Adds finished pieces to the sum, in order; false when the next one is not finished.
  [[nodiscard]] bool add_to_sum();

  remote::Url from_;
  File file_;
  std::string name_;
  std::size_t connections_;
  DownloadOptions options_;
  PartialFile partial_;
  Sha256 sum_;
  std::size_t summed_ = 0;  // pieces
  std::vector<std::byte> buffer_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> returned_;  // pieces to try again
  std::size_t next_ = 0;               // the first piece that no connection took
  std::size_t working_ = 0;            // connections
  std::size_t failures_ = 0;           // in a row
  Clock::time_point pause_end_;        // after the last one
  std::exception_ptr error_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> stop_{false};
};

/// Downloads all files of a request, one after the other, and gives them their names in the cache. Files that
/// are there are not read again. If another process downloads the same file, waits for it. False when
/// `watch` stopped it. Raises as Download::run(), and failed when the disk is too small for all of them.
[[nodiscard]] bool fetch(const Fetch& request, const Watch& watch, const DownloadOptions& options = {});

inline std::optional<std::size_t> Download::take() {
  const Lock lock(mutex_);
  if (stop_) return std::nullopt;
  if (!returned_.empty()) {
    const std::size_t piece = returned_.back();
    returned_.pop_back();
    return piece;
  }
  while (next_ < partial_.pieces() && partial_.is_finished(next_)) ++next_;
  return next_ < partial_.pieces() ? std::optional(next_++) : std::nullopt;
}

inline void Download::finish(std::size_t piece, std::span<const std::byte> bytes) {
  partial_.write(piece, bytes);
  const Lock lock(mutex_);
  partial_.note(piece);
  done_ += bytes.size();
  failures_ = 0;
  changed_.notify_all();
}

inline void Download::put_back(std::size_t piece, const Error& error, bool fresh, Clock::time_point began) {
  Lock lock(mutex_);
  returned_.push_back(piece);
  if (!fresh) return;  // an address that the hub gave earlier may have expired; that of the hub does not
  if (error.code() != ErrorCode::failed) throw;
  if (began >= pause_end_) {
    if (++failures_ > options_.patience) throw;
    pause_end_ = Clock::now() + options_.pause * (1u << std::min<std::size_t>(failures_ - 1, 6));
  }
  changed_.wait_until(lock, pause_end_, [this] { return stop_.load(); });
}

inline void Download::end_with(std::exception_ptr error) noexcept {
  const Lock lock(mutex_);
  if (!error_ && !stop_) error_ = std::move(error);
  stop_ = true;
  changed_.notify_all();
}

inline void Download::read_piece(remote::Client& client, remote::Url& url, std::size_t piece,
                                 std::span<std::byte> to) const {
  const std::uint64_t first = partial_.first_byte(piece), last = first + to.size() - 1;
  remote::Range range{name_, first, to, {}, {}, [&](const remote::detail::Head& head) {
                        const auto sent = remote::detail::ContentRange::parse(head.range);
                        MICA_CHECK(head.encoding.empty() || head.encoding == "identity", unsupported, name_,
                                   ": the server encodes the file (", escaped(head.encoding),
                                   "), although the request forbids it");
                        MICA_CHECK(sent && sent->first == first && sent->last == last, failed, name_,
                                   ": bytes ", first, " to ", last, " were requested, the server sends '",
                                   escaped(head.range), "'");
                        if (sent->size && *sent->size != file_.bytes)
                          throw detail::OtherSize(name_, file_.bytes, *sent->size);
                      }};
  const std::size_t got = client.get(url, range);
  MICA_CHECK(got == to.size(), failed, name_, ": an answer ends after ", got, " of ", to.size(),
             " bytes, from byte ", first);
}

inline void Download::read_pieces() {
  remote::Client client(from_, options_.remote);
  remote::Url url = from_;
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(options_.piece_bytes, file_.bytes)));
  while (const auto piece = take()) {
    const bool fresh = url.target() == from_.target() && url.origin() == from_.origin();
    const std::span<std::byte> bytes = std::span(buffer).first(partial_.piece_size(*piece));
    const Clock::time_point began = Clock::now();
    try {
      read_piece(client, url, *piece, bytes);
    } catch (const Error& error) {
      url = from_;
      client.hang_up();
      put_back(*piece, error, fresh, began);
      continue;
    }
    finish(*piece, bytes);
  }
}

inline void Download::work() noexcept {
  try {
    read_pieces();
  } catch (...) {
    end_with(std::current_exception());
  }
  const Lock lock(mutex_);
  --working_;
  changed_.notify_all();
}

inline bool Download::add_to_sum() {
  {
    const Lock lock(mutex_);
    if (summed_ == partial_.pieces() || !partial_.is_finished(summed_)) return false;
  }
  buffer_.resize(partial_.piece_size(summed_));
  partial_.read_at(partial_.first_byte(summed_), buffer_);
  sum_.add(buffer_);
  ++summed_;
  return true;
}

inline bool Download::run(const Watch& watch, const std::function<void(std::uint64_t)>& progress) {
  std::vector<std::thread> threads;
  const std::size_t wanted = std::max<std::size_t>(1, std::min(connections_, partial_.pieces()));
  threads.reserve(wanted);
  working_ = wanted;
  try {
    while (threads.size() < wanted) threads.emplace_back([this] { work(); });
  } catch (...) {  // no thread could be started, or no memory was left
    const Lock lock(mutex_);
    working_ -= wanted - threads.size();
    if (threads.empty()) error_ = std::current_exception();
  }
  try {
    for (bool working = true; working && !stop_;) {
      const bool added = add_to_sum();
      progress(done_);
      if (watch.stop && watch.stop()) stop_ = true;
      Lock lock(mutex_);
      working = working_ != 0;
      if (!added && working && !stop_) changed_.wait_for(lock, options_.look);
    }
  } catch (...) {
    end_with(std::current_exception());
  }
  {
    const Lock lock(mutex_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  if ((error_ || stop_) && done_ == 0) partial_.discard();
  try {
    if (error_) std::rethrow_exception(error_);
  } catch (const detail::OtherSize&) {
    partial_.discard();
    throw;
  }
  if (stop_) return false;
  while (add_to_sum()) {
    progress(done_);
    if (watch.stop && watch.stop()) return false;
  }
  MICA_CHECK(summed_ == partial_.pieces(), failed, name_, ": ", summed_, " of ", partial_.pieces(),
             " pieces came; try again");
  const std::string sum = sum_.digits();
  if (sum != file_.sha256) {
    partial_.discard();
    raise(ErrorCode::file, name_, ": the bytes have the SHA-256 ", sum, ", and the hub lists ", file_.sha256,
          "; the download was removed, try again");
  }
  partial_.commit();
  return true;
}

namespace detail {

/// Takes the lock of a download, as Hugging Face's tools do. Empty when `watch` stopped the wait.
[[nodiscard]] inline std::optional<io::detail::Descriptor> locked(const std::string& path, const Watch& watch,
                                                                  std::chrono::milliseconds look) {
  make_folders(std::filesystem::path(path).parent_path());
  io::detail::Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd) raise(code_of(errno), path, ": cannot be written: ", io::detail::errno_text(errno), other_folder);
  for (bool said = false; ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; said = true) {
    if (!said && watch.note) watch.note("another process downloads the same file; waiting for it");
    if (watch.stop && watch.stop()) return std::nullopt;
    std::this_thread::sleep_for(look);
  }
  return fd;
}

}  // namespace detail

inline bool fetch(const Fetch& request, const Watch& watch, const DownloadOptions& options) {
  const Cache cache(request.cache);
  const std::string& repo = request.name.repo;
  detail::make_folders(cache.repo_folder(repo) + "/blobs");
  std::uint64_t missing = 0;
  for (const File& file : request.files) {
    if (cache.has(repo, file)) continue;
    const std::string partial = join(cache.blob(repo, file.sha256), incomplete_suffix);
    missing += file.bytes - std::min(file.bytes, detail::allocated_bytes(partial));
  }
  io::require_free_space(cache.repo_folder(repo) + "/blobs/files", missing);
  std::uint64_t before = 0;
  for (const File& file : request.files) {
    if (!cache.has(repo, file)) {
      const auto lock = detail::locked(cache.lock(repo, file.sha256), watch, options.look);
      if (!lock) return false;
      if (!cache.has(repo, file)) {
        Download download(resolve_url(repo, request.commit, file.path), cache.blob(repo, file.sha256), file,
                          request.connections, options);
        const auto progress = [&](std::uint64_t done) {
          if (watch.progress) watch.progress(before + done);
        };
        if (!download.run(watch, progress)) return false;
      }
    }
    before += file.bytes;
    cache.add(repo, request.commit, file);
    for (const Unfinished& each : unfinished(cache, repo)) {  // of another version
      if (each.path == file.path) remove_unfinished(cache, repo, each);
    }
  }
  cache.set_commit(repo, request.name.revision, request.commit);
  return true;
}

}  // namespace mica::hub
