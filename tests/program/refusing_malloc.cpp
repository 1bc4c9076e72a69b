// SPDX-License-Identifier: Apache-2.0
//
// A malloc for LD_PRELOAD that refuses memory: the request number MICA_TEST_REFUSED of the
// program, its static initialisers included, and with MICA_TEST_REFUSED_ON all that follow. For programs that
// are linked to glibc.

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* at, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

std::atomic<long> left{-1};  // requests until the refused one; negative: none is
std::atomic<bool> on{false};

bool refused() {
  if (left < 0) return false;
  if (left == 0) return true;  // and so on
  if (left.fetch_sub(1) != 1) return false;
  if (!on) left = -1;
  return true;
}

void* refuse() {
  errno = ENOMEM;
  return nullptr;
}

/// Runs before the initialisers of the program and after those of the C++ library.
[[gnu::constructor]] void begin() {
  const char* const at = std::getenv("MICA_TEST_REFUSED");
  on = std::getenv("MICA_TEST_REFUSED_ON") != nullptr;
  left = at == nullptr ? -1 : std::atol(at);
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) { return refused() ? refuse() : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) {
  return refused() ? refuse() : __libc_calloc(count, size);
}
void* realloc(void* at, std::size_t size) { return refused() ? refuse() : __libc_realloc(at, size); }
void* memalign(std::size_t alignment, std::size_t size) {
  return refused() ? refuse() : __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** at, std::size_t alignment, std::size_t size) {
  void* const got = memalign(alignment, size);
  if (got == nullptr) return ENOMEM;
  *at = got;
  return 0;
}
}
