// SPDX-License-Identifier: Apache-2.0
//
// A KV storage of your own: tiles in a file that is mapped into memory. The system keeps frequently read
// pages in memory, so a cache that is larger than memory gets slower and does not fail:
//
//   file and addresses   | tokens 0-255 of all layers and heads | tokens 256-511 | ...      256 tokens at a time
//
// The file has no name and is removed with the cache. Its pages are not booked, since the system can reclaim
// them.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/io/detail/descriptor.hpp"
#include "mica/kv/slab.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>
#include <fcntl.h>
#include <sys/mman.h>

template <mica::Allocator A>
class FileTiles {
 public:
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = FileTiles<B>;
  static constexpr std::string_view name = "file_tiles";

  /// In the folder that TMPDIR names, or in /var/tmp.
  FileTiles(A /*keeps no books here*/, std::span<const mica::kv::LayerShape> layers, std::size_t max_tokens)
      : layout_(layers), max_tokens_((max_tokens + 15) / 16 * 16) {
    for (std::size_t at = 0; at < max_tokens_; at += grain)
      begins_.push_back(begins_.back() + layout_.bytes(places(at / grain)));
  }
  bool reserve(std::size_t tokens) noexcept {
    if (tokens > max_tokens_) return false;
    if (!bytes_ && tokens > 0 && !map()) return false;
    const std::size_t wanted = std::max(taken_, (tokens + grain - 1) / grain);
    if (wanted > taken_ && !take(wanted)) return false;
    taken_ = wanted;
    reached_ = std::max(reached_, tokens);
    return true;
  }
  /// Frees space on the disk.
  void shrink(std::size_t tokens) noexcept {
    if (tokens == 0) reached_ = 0;
    const std::size_t kept = (tokens + grain - 1) / grain;
    if (kept >= taken_) return;
    taken_ = kept;
    if (file_) static_cast<void>(::ftruncate(file_.get(), static_cast<::off_t>(begins_[kept])) == 0);
  }
  std::size_t capacity() const noexcept { return std::min(taken_ * grain, max_tokens_); }
  std::size_t first_tile(std::size_t layer) const noexcept { return layout_.first_tile(layer, reached_); }
  mica::kv::Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const std::size_t place = layout_.place(layer, tile), part = place / (grain / 16);
    return layout_.run(bytes_.get() + begins_[part], places(part), layer, head, place);
  }

 private:
  static constexpr std::size_t grain = 256;  // tokens

  struct Unmap {
    std::size_t bytes = 0;
    void operator()(std::byte* at) const noexcept { ::munmap(at, bytes); }
  };

  /// The tiles of one part of the file.
  mica::kv::Places places(std::size_t part) const noexcept {
    return {part * (grain / 16), std::min(grain, max_tokens_ - part * grain) / 16};
  }
  /// Makes the file, empty, and addresses for its maximum size; neither in a plan, which touches no byte.
  bool map() noexcept {
    const std::size_t bytes = mica::alloc::touchable<A>(begins_.back());
    if (bytes == 0) return true;
    const char* const folder = std::getenv("TMPDIR");
    char path[4096];
    if (std::snprintf(path, sizeof path, "%s/tiles-XXXXXX", folder != nullptr ? folder : "/var/tmp") >=
        static_cast<int>(sizeof path))
      return false;
    file_ = mica::io::detail::Descriptor(::mkstemp(path));
    if (!file_) return false;
    ::unlink(path);
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (at == MAP_FAILED) return false;
    bytes_ = {static_cast<std::byte*>(at), Unmap{bytes}};
    return true;
  }
  /// Reserves space on the disk for `parts` parts: writing to a page without space would end the process.
  bool take(std::size_t parts) noexcept {
    const auto from = static_cast<::off_t>(begins_[taken_]), to = static_cast<::off_t>(begins_[parts]);
    return !file_ || to == from || ::posix_fallocate(file_.get(), from, to - from) == 0;
  }

  mica::kv::SlabLayout layout_;
  std::size_t max_tokens_;
  std::size_t reached_ = 0;                                        // the maximum of tokens since it was empty
  std::size_t taken_ = 0;                                          // parts that have space
  std::vector<std::size_t> begins_ = std::vector<std::size_t>(1);  // of each part in the file, and the end
  mica::io::detail::Descriptor file_;
  std::unique_ptr<std::byte, Unmap> bytes_;
};

static_assert(mica::KvStorage<FileTiles<mica::alloc::Huge>>);
