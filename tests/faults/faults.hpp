// SPDX-License-Identifier: Apache-2.0
//
// Calls of the system that fail when a test wants it. This program defines the functions of the C library
// that take memory, files, locks and threads (interposed.cpp), and each of them asks here first. So
// nothing in the library knows of it, and what other libraries call for it fails as well.

#pragma once

#include <cstdint>

namespace mica::test::faults {

/// What a function asks the system for. The sum of several is a set.
enum Call : std::uint32_t {
  memory = 1 << 0,   // malloc and its kin, mmap of memory
  map = 1 << 1,      // mmap of a file
  open = 1 << 2,     // a file or a folder
  direct = 1 << 3,   // open with O_DIRECT
  read = 1 << 4,     // read, pread
  write = 1 << 5,    // write, pwrite, writev
  sync = 1 << 6,     // fsync, fdatasync
  name = 1 << 7,     // rename, mkdir
  size = 1 << 8,     // ftruncate, fallocate
  look = 1 << 9,     // stat and its kin
  lock = 1 << 10,    // mlock, flock
  queue = 1 << 11,   // io_setup, io_submit, io_getevents
  thread = 1 << 12,  // pthread_create
};
inline constexpr std::uint32_t files = map | open | direct | read | write | sync | name | size | look | queue;
inline constexpr std::uint32_t changes = write | sync | name | size;

/// What happens to a call.
enum class Effect : std::uint8_t {
  error,       ///< it fails
  part,        ///< half of the bytes are read or written, and whole pages of whole pages
  sector,      ///< the same with 512 bytes
  kill,        ///< the process ends as by kill -9, and the call has not happened
  kill_inside  ///< the same, when half of the bytes are written
};

struct Fault {
  std::uint32_t calls = 0;  // a set of Call
  std::uint64_t at = 1;     // the number of the call among those of the set; 1: the first one
  bool for_ever = false;    // and all that follow
  Effect effect = Effect::error;
  int error = 0;  // errno; 0: one that such a call has (no memory, a full disk)
};

/// While it lives, calls of this process, of any thread, are counted and fail. One at a time.
class Armed {
 public:
  explicit Armed(const Fault& fault) noexcept;
  Armed(const Armed&) = delete;
  Armed& operator=(const Armed&) = delete;
  ~Armed() { disarm(); }

  /// Calls are as always again.
  static void disarm() noexcept;
  /// Whether a call has failed since the last one was armed.
  [[nodiscard]] static bool struck() noexcept;
};

/// What the process holds. Of two equal works the second one adds nothing.
struct Held {
  std::int64_t blocks = 0;        // of malloc
  std::int64_t mapped_bytes = 0;  // by mmap
  std::int64_t files = 0;         // descriptors

  [[nodiscard]] static Held now();
  [[nodiscard]] bool more_than(const Held& other) const noexcept {
    return blocks > other.blocks || mapped_bytes > other.mapped_bytes || files > other.files;
  }
};

}  // namespace mica::test::faults
