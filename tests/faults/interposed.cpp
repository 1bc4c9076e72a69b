// SPDX-License-Identifier: Apache-2.0
//
// The functions of the C library that can be made to fail. Linux with glibc.

#include "faults/faults.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* at, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* at);
}

namespace mica::test::faults {
namespace {

// Nothing here allocates: malloc asks.
std::atomic<bool> armed{false}, has_struck{false};
std::atomic<std::uint64_t> counted{0};
std::atomic<std::int64_t> blocks{0}, mapped_bytes{0};
Fault fault;  // written while nothing is armed

/// Whether this call fails; errno is set then. A call in which the process shall die does not return, unless
/// it is one of which half shall happen first.
bool strikes(std::uint32_t call, int error) noexcept {
  if (!armed.load(std::memory_order_acquire) || (fault.calls & call) == 0) return false;
  const std::uint64_t number = counted.fetch_add(1) + 1;
  if (number != fault.at && !(fault.for_ever && number > fault.at)) return false;
  has_struck = true;
  if (fault.effect == Effect::kill) ::kill(::getpid(), SIGKILL);
  errno = fault.error != 0 ? fault.error : error;
  return true;
}

/// A function of the C library, found at its first call.
template <class F>
class Real {
 public:
  explicit constexpr Real(const char* name) noexcept : name_(name) {}
  template <class... A>
  auto operator()(A... arguments) noexcept {
    F* function = known_.load(std::memory_order_relaxed);
    if (function == nullptr) {
      function = reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name_));
      known_.store(function, std::memory_order_relaxed);
    }
    return function(arguments...);
  }

 private:
  const char* name_;
  std::atomic<F*> known_{nullptr};
};

/// What is left of a transfer that ends early. Direct ones end at a multiple of the size of a disk's blocks.
std::size_t part_of(std::size_t bytes) noexcept {
  if (fault.effect == Effect::sector) return bytes < 512 ? bytes : 512;
  const std::size_t unit = bytes % 4096 == 0 ? 4096 : 1;
  return bytes - bytes / unit / 2 * unit;
}

/// A read or a write. The arguments are those of the C library, and `bytes` is a reference to one of them.
template <class F>
::ssize_t transfer(std::uint32_t call, int error, std::size_t& bytes, F&& really) noexcept {
  if (!strikes(call, error)) return really();
  if (fault.effect == Effect::error) return -1;
  bytes = part_of(bytes);
  const ::ssize_t done = really();
  if (fault.effect == Effect::kill_inside) ::kill(::getpid(), SIGKILL);
  return done;
}

/// A call that happens whole or not at all.
bool fails(std::uint32_t call, int error) noexcept {
  if (!strikes(call, error)) return false;
  if (fault.effect == Effect::kill_inside) ::kill(::getpid(), SIGKILL);
  return fault.effect == Effect::error;
}

void* counted_block(void* at) noexcept {
  if (at != nullptr) blocks.fetch_add(1, std::memory_order_relaxed);
  return at;
}

bool no_memory() noexcept { return fails(memory, ENOMEM); }

std::uint32_t open_call(int flags) noexcept { return (flags & O_DIRECT) != 0 ? open | direct : open; }

}  // namespace

Armed::Armed(const Fault& wanted) noexcept {
  fault = wanted;
  counted = 0;
  has_struck = false;
  armed.store(true, std::memory_order_release);
}

void Armed::disarm() noexcept { armed = false; }
bool Armed::struck() noexcept { return has_struck; }

Held Held::now() {
  Held held{faults::blocks, faults::mapped_bytes, 0};
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++held.files;
  return held;
}

}  // namespace mica::test::faults

namespace faults = mica::test::faults;

// The C library's functions, in its own words. Those that it calls itself do not come by here.
extern "C" {

void* malloc(std::size_t size) {
  return faults::no_memory() ? nullptr : faults::counted_block(__libc_malloc(size));
}
void* calloc(std::size_t count, std::size_t size) {
  return faults::no_memory() ? nullptr : faults::counted_block(__libc_calloc(count, size));
}
void* realloc(void* at, std::size_t size) {
  if (at == nullptr) return malloc(size);
  return faults::no_memory() ? nullptr : __libc_realloc(at, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  return faults::no_memory() ? nullptr : faults::counted_block(__libc_memalign(alignment, size));
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** at, std::size_t alignment, std::size_t size) {
  void* const got = memalign(alignment, size);
  if (got == nullptr) return ENOMEM;
  *at = got;
  return 0;
}
void free(void* at) {
  if (at != nullptr) faults::blocks.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(at);
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, ::off_t offset) {
  static constinit faults::Real<void*(void*, std::size_t, int, int, int, ::off_t)> really("mmap");
  if (faults::fails((flags & MAP_ANONYMOUS) != 0 ? faults::memory : faults::map, ENOMEM)) return MAP_FAILED;
  void* const got = really(at, bytes, protection, flags, fd, offset);
  if (got != MAP_FAILED && (flags & MAP_FIXED) == 0) faults::mapped_bytes += static_cast<std::int64_t>(bytes);
  return got;
}
int munmap(void* at, std::size_t bytes) {
  static constinit faults::Real<int(void*, std::size_t)> really("munmap");
  faults::mapped_bytes -= static_cast<std::int64_t>(bytes);
  return really(at, bytes);
}
int mlock(const void* at, std::size_t bytes) {
  static constinit faults::Real<int(const void*, std::size_t)> really("mlock");
  return faults::fails(faults::lock, EPERM) ? -1 : really(at, bytes);
}

int open(const char* path, int flags, ...) {
  static constinit faults::Real<int(const char*, int, ...)> really("open");
  std::va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, ::mode_t);
  va_end(rest);
  if (faults::fails(faults::open_call(flags), EMFILE)) return -1;
  return really(path, flags, mode);
}
std::FILE* fopen(const char* path, const char* mode) {
  static constinit faults::Real<std::FILE*(const char*, const char*)> really("fopen");
  return faults::fails(faults::open, EMFILE) ? nullptr : really(path, mode);
}
int mkstemp(char* path) {
  static constinit faults::Real<int(char*)> really("mkstemp");
  return faults::fails(faults::open, EMFILE) ? -1 : really(path);
}

::ssize_t read(int fd, void* to, std::size_t bytes) {
  static constinit faults::Real<::ssize_t(int, void*, std::size_t)> really("read");
  return faults::transfer(faults::read, EIO, bytes, [&] { return really(fd, to, bytes); });
}
::ssize_t pread(int fd, void* to, std::size_t bytes, ::off_t offset) {
  static constinit faults::Real<::ssize_t(int, void*, std::size_t, ::off_t)> really("pread");
  return faults::transfer(faults::read, EIO, bytes, [&] { return really(fd, to, bytes, offset); });
}
::ssize_t write(int fd, const void* from, std::size_t bytes) {
  static constinit faults::Real<::ssize_t(int, const void*, std::size_t)> really("write");
  return faults::transfer(faults::write, ENOSPC, bytes, [&] { return really(fd, from, bytes); });
}
::ssize_t pwrite(int fd, const void* from, std::size_t bytes, ::off_t offset) {
  static constinit faults::Real<::ssize_t(int, const void*, std::size_t, ::off_t)> really("pwrite");
  return faults::transfer(faults::write, ENOSPC, bytes, [&] { return really(fd, from, bytes, offset); });
}
::ssize_t writev(int fd, const ::iovec* parts, int count) {
  static constinit faults::Real<::ssize_t(int, const ::iovec*, int)> really("writev");
  return faults::fails(faults::write, ENOSPC) ? -1 : really(fd, parts, count);
}

int fsync(int fd) {
  static constinit faults::Real<int(int)> really("fsync");
  return faults::fails(faults::sync, EIO) ? -1 : really(fd);
}
int fdatasync(int fd) {
  static constinit faults::Real<int(int)> really("fdatasync");
  return faults::fails(faults::sync, EIO) ? -1 : really(fd);
}
int rename(const char* from, const char* to) noexcept {
  static constinit faults::Real<int(const char*, const char*)> really("rename");
  return faults::fails(faults::name, EACCES) ? -1 : really(from, to);
}
int mkdir(const char* path, ::mode_t mode) noexcept {
  static constinit faults::Real<int(const char*, ::mode_t)> really("mkdir");
  return faults::fails(faults::name, EACCES) ? -1 : really(path, mode);
}
int ftruncate(int fd, ::off_t bytes) noexcept {
  static constinit faults::Real<int(int, ::off_t)> really("ftruncate");
  return faults::fails(faults::size, ENOSPC) ? -1 : really(fd, bytes);
}
int fallocate(int fd, int mode, ::off_t offset, ::off_t bytes) {
  static constinit faults::Real<int(int, int, ::off_t, ::off_t)> really("fallocate");
  return faults::fails(faults::size, ENOSPC) ? -1 : really(fd, mode, offset, bytes);
}

int stat(const char* path, struct ::stat* to) noexcept {
  static constinit faults::Real<int(const char*, struct ::stat*)> really("stat");
  return faults::fails(faults::look, EACCES) ? -1 : really(path, to);
}
int lstat(const char* path, struct ::stat* to) noexcept {
  static constinit faults::Real<int(const char*, struct ::stat*)> really("lstat");
  return faults::fails(faults::look, EACCES) ? -1 : really(path, to);
}
int fstat(int fd, struct ::stat* to) noexcept {
  static constinit faults::Real<int(int, struct ::stat*)> really("fstat");
  return faults::fails(faults::look, EIO) ? -1 : really(fd, to);
}
int flock(int fd, int operation) noexcept {
  static constinit faults::Real<int(int, int)> really("flock");
  return faults::fails(faults::lock, ENOLCK) ? -1 : really(fd, operation);
}

/// Six arguments, which are the most that a request has.
long syscall(long number, ...) noexcept {
  static constinit faults::Real<long(long, ...)> really("syscall");
  std::va_list rest;
  va_start(rest, number);
  std::array<long, 6> arguments{};
  for (long& each : arguments) each = va_arg(rest, long);
  va_end(rest);
  const bool queued = number == SYS_io_setup || number == SYS_io_submit || number == SYS_io_getevents;
  if (queued && faults::fails(faults::queue, EAGAIN)) return -1;
  return really(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

int pthread_create(::pthread_t* thread, const ::pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static constinit faults::Real<int(::pthread_t*, const ::pthread_attr_t*, void* (*)(void*), void*)> really(
      "pthread_create");
  if (faults::fails(faults::thread, EAGAIN)) return EAGAIN;
  return really(thread, attributes, start, argument);
}

}  // extern "C"
