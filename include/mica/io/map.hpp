// SPDX-License-Identifier: Apache-2.0
//
// A whole file as read-only memory. Pages come from the page cache at the first access, or earlier. Limit: a
// file that is cut while it is mapped ends the process with SIGBUS on the next touch, unless the program has
// a handler (map_fault.hpp names the file); File::read_at() raises an error instead.
#pragma once

#include "mica/base/log.hpp"
#include "mica/io/file.hpp"

#include <sys/mman.h>

namespace mica::io {

/// When the pages of a mapping are read.
enum class MapAdvice : unsigned char {
  lazy,        ///< when touched
  scattered,   ///< at the first access, without read-ahead: for single rows of a large table
  sequential,  ///< at the first access, with much read-ahead: for one pass from front to back
  populate,    ///< all of them now
  locked,      ///< all of them now, and kept; without the permission, as `populate` with a warning
};

/// Read-only memory with a file's bytes.
class Mapping {
 public:
  /// Raises ErrorCode::failed when the system refuses.
  explicit Mapping(const File& file, MapAdvice advice = MapAdvice::lazy, LogSink log = {}) {
    const auto size = static_cast<std::size_t>(file.size());
    if (size == 0) return;  // the system maps no empty ranges
    int flags = MAP_SHARED;
#ifdef MAP_POPULATE
    if (advice == MapAdvice::populate || advice == MapAdvice::locked) flags |= MAP_POPULATE;
#endif
    void* at = ::mmap(nullptr, size, PROT_READ, flags, file.descriptor(), 0);
    MICA_CHECK(at != MAP_FAILED, failed, file.path(), ": mapping ", size,
               " bytes failed: ", detail::errno_text(errno));
    bytes_ = {static_cast<std::byte*>(at), size};
    if (advice == MapAdvice::sequential) ::madvise(at, size, MADV_SEQUENTIAL);
    if (advice == MapAdvice::scattered) ::madvise(at, size, MADV_RANDOM);
#ifndef MAP_POPULATE
    if (advice == MapAdvice::populate) ::madvise(at, size, MADV_WILLNEED);
#endif
    if (advice == MapAdvice::locked) lock(file.path(), log);
  }
  /// Spans stay valid; assignment swaps the mappings.
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }

  /// The file from its first byte to its last.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

  /// Asks the system to begin reading a part of the file; returns at once, and a refusal changes nothing.
  /// Requires offset + count <= bytes().size().
  void prefetch(std::size_t offset, std::size_t count) const noexcept {
    MICA_ASSERT(offset <= bytes_.size() && count <= bytes_.size() - offset);
    if (count == 0) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t start = offset / page * page;
    ::madvise(bytes_.data() + start, offset - start + count, MADV_WILLNEED);
  }
  /// Releases the memory of a range: pages that no other process maps leave the page cache too. The next
  /// access reads them again. `file` is the mapped one. Requires offset + count <= bytes().size().
  void forget(const File& file, std::size_t offset, std::size_t count) const noexcept {
    MICA_ASSERT(offset <= bytes_.size() && count <= bytes_.size() - offset);
    if (count == 0) return;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t start = offset / page * page, end = (offset + count + page - 1) / page * page;
    ::madvise(bytes_.data() + start, std::min(end, bytes_.size()) - start, MADV_DONTNEED);
    file.forget(start, end - start);
  }

 private:
  void lock(const std::string& path, LogSink log) const {
    if (::mlock(bytes_.data(), bytes_.size()) == 0) return;
    log(LogLevel::warning, join(path, ": ", bytes_.size(), " bytes are not locked in memory: ",
                                detail::errno_text(errno), " (ulimit -l)"));
  }

  std::span<std::byte> bytes_;
};

}  // namespace mica::io
