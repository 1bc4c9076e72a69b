// SPDX-License-Identifier: Apache-2.0
//
// A file that is downloaded in pieces, in any order, over several runs:
//
//   blobs/SHA256.mica.incomplete   as large as the file, with holes
//   blobs/SHA256.mica.pieces       "mica pieces 2 BYTES PIECE_BYTES PATH", PATH in the repository; then the
//                                  number of each finished piece
//
// A piece is on the disk before its number is noted, so a power failure costs only the pieces in flight.
// Unfinished files of other tools have other names (SHA256.incomplete) and are not touched.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/remote/detail/head.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mica::hub {

/// The suffixes of both files, after the path of the blob.
inline constexpr std::string_view incomplete_suffix = ".mica.incomplete";
inline constexpr std::string_view pieces_suffix = ".mica.pieces";

/// The code for an errno of the file system: failed for a full disk, else file.
[[nodiscard]] inline ErrorCode code_of(int error) noexcept {
  return error == ENOSPC || error == EDQUOT || error == EFBIG ? ErrorCode::failed : ErrorCode::file;
}

/// Requires that only one process at a time opens it (Cache::lock). Different threads may write different
/// pieces.
class PartialFile {
 public:
  /// Opens the files that an earlier run left, or creates them. path: the file's path in its repository.
  /// Raises ErrorCode::file when they cannot be opened or created, failed for a full disk.
  PartialFile(std::string blob, std::uint64_t bytes, std::uint64_t piece_bytes, std::string path)
      : blob_(std::move(blob)), path_(std::move(path)), bytes_(bytes), piece_bytes_(piece_bytes) {
    finished_.resize(static_cast<std::size_t>((bytes + piece_bytes - 1) / piece_bytes));
    data_ = opened(incomplete_path());
    notes_ = opened(pieces_path());
    if (!read_notes()) begin();
  }

  /// The paths of both files.
  [[nodiscard]] std::string incomplete_path() const { return join(blob_, incomplete_suffix); }
  [[nodiscard]] std::string pieces_path() const { return join(blob_, pieces_suffix); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // of the whole file
  /// The number of pieces; whether a piece is noted as written; its first byte in the file, and its size.
  [[nodiscard]] std::size_t pieces() const noexcept { return finished_.size(); }
  [[nodiscard]] bool is_finished(std::size_t piece) const { return finished_[piece]; }
  [[nodiscard]] std::uint64_t first_byte(std::size_t piece) const noexcept { return piece * piece_bytes_; }
  [[nodiscard]] std::size_t piece_size(std::size_t piece) const noexcept {
    return static_cast<std::size_t>(std::min(piece_bytes_, bytes_ - first_byte(piece)));
  }

  /// Writes a piece, and returns when it is on the disk. Thread-safe for different pieces. Raises
  /// ErrorCode::failed when it cannot be written.
  void write(std::size_t piece, std::span<const std::byte> from) {
    write_whole(data_, incomplete_path(), first_byte(piece), from);
#ifdef __linux__
    const int synced = ::fdatasync(data_.get());
#else
    const int synced = ::fsync(data_.get());
#endif
    MICA_CHECK(synced == 0, failed, incomplete_path(), ": fsync failed: ", io::detail::errno_text(errno));
  }
  /// Notes that a piece is written. Not thread-safe.
  void note(std::size_t piece) {
    const std::string line = join(piece, "\n");
    const ::ssize_t written = ::write(notes_.get(), line.data(), line.size());
    MICA_CHECK(written == static_cast<::ssize_t>(line.size()), failed, pieces_path(),
               ": writing failed: ", io::detail::errno_text(errno));
    finished_[piece] = true;
  }
  /// Reads bytes of finished pieces. Raises ErrorCode::failed when they cannot be read.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const {
    const std::size_t got = data_.read_at(offset, to);
    MICA_CHECK(got == to.size(), failed, incomplete_path(), ": reading failed at byte ", offset + got, ": ",
               errno == 0 ? "the file has become shorter" : io::detail::errno_text(errno));
  }
  /// Gives the file its name. Raises ErrorCode::failed when this fails.
  void commit() {
    MICA_CHECK(::fsync(data_.get()) == 0, failed, incomplete_path(),
               ": fsync failed: ", io::detail::errno_text(errno));
    MICA_CHECK(std::rename(incomplete_path().c_str(), blob_.c_str()) == 0, failed, incomplete_path(),
               ": renaming failed: ", io::detail::errno_text(errno));
    std::remove(pieces_path().c_str());
  }
  /// Removes both files.
  void discard() noexcept {
    std::remove(incomplete_path().c_str());
    std::remove(pieces_path().c_str());
  }

 private:
  [[nodiscard]] static io::detail::Descriptor opened(const std::string& path) {
    io::detail::Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd) raise(code_of(errno), path, ": cannot be written: ", io::detail::errno_text(errno));
    return fd;
  }
  static void write_whole(const io::detail::Descriptor& fd, const std::string& path, std::uint64_t offset,
                          std::span<const std::byte> from) {
    const std::size_t written = fd.write_at(offset, from);
    MICA_CHECK(written == from.size(), failed, path, ": writing failed at byte ", offset + written, ": ",
               io::detail::errno_text(errno));
  }
  /// The first line of the notes without the path, which may differ: two files may have the same bytes.
  [[nodiscard]] std::string header() const { return join("mica pieces 2 ", bytes_, " ", piece_bytes_, " "); }

  /// False when the notes belong to another file. A last line without a line feed was not written completely,
  /// and is not used.
  [[nodiscard]] bool read_notes() {
    struct ::stat data {
    }, notes{};
    const bool known = ::fstat(data_.get(), &data) == 0 && ::fstat(notes_.get(), &notes) == 0;
    const std::uint64_t max_notes = header().size() + max_path_bytes + 22 * std::uint64_t{finished_.size()};
    if (!known || static_cast<std::uint64_t>(data.st_size) != bytes_ ||
        static_cast<std::uint64_t>(notes.st_size) > max_notes)
      return false;
    std::string text(static_cast<std::size_t>(notes.st_size), '\0');
    const std::size_t got = notes_.read_at(0, std::as_writable_bytes(std::span(text)));
    const std::size_t first_line = text.find('\n');
    if (got != text.size() || !text.starts_with(header()) || first_line == text.npos) return false;
    std::size_t at = first_line + 1;
    for (std::size_t end = text.find('\n', at); end != text.npos; end = text.find('\n', at)) {
      const auto piece = remote::detail::whole_number(std::string_view(text).substr(at, end - at));
      if (!piece || *piece >= finished_.size()) break;
      finished_[static_cast<std::size_t>(*piece)] = true;
      at = end + 1;
    }
    return ::ftruncate(notes_.get(), static_cast<::off_t>(at)) == 0 &&
           ::lseek(notes_.get(), 0, SEEK_END) >= 0;
  }
  void begin() {
    std::fill(finished_.begin(), finished_.end(), false);
    const auto size = static_cast<::off_t>(bytes_);
    MICA_CHECK(::ftruncate(notes_.get(), 0) == 0 && ::ftruncate(data_.get(), 0) == 0 &&
                   ::ftruncate(data_.get(), size) == 0,
               failed, incomplete_path(), ": a file of ", bytes_,
               " bytes cannot be made here: ", io::detail::errno_text(errno));
    const std::string text = join(header(), path_, "\n");
    write_whole(notes_, pieces_path(), 0, std::as_bytes(std::span(text)));
    MICA_CHECK(::lseek(notes_.get(), 0, SEEK_END) >= 0, failed, pieces_path(),
               ": cannot be written: ", io::detail::errno_text(errno));
  }

  std::string blob_, path_;
  std::uint64_t bytes_;
  std::uint64_t piece_bytes_;
  std::vector<bool> finished_;
  io::detail::Descriptor data_;
  io::detail::Descriptor notes_;
};

}  // namespace mica::hub
