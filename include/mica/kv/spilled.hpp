// SPDX-License-Identifier: Apache-2.0
//
// A storage larger than memory: recent tokens in memory, older ones in a file, from which they are read layer
// by layer.
//
//   file     | layer 0: page 0 1 2 ... | layer 1: page 0 1 2 ... | ...      pages of 64 tokens
//   memory   | the last pages of all layers | old pages of one layer | those of the next layer, being read |
//
// A page is written when a new one needs its place. Layers with a window, or with a maximum of resident
// tokens, stay in memory.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/io/spill_file.hpp"
#include "mica/kv/segmented.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <vector>

namespace mica::kv {

/// Booked as kv: recent pages; as io_buffers: two layers' old pages. Of kv::Paged instead of an allocator it
/// is another storage, for sequences that share pages: kv/spilled_paged.hpp. Threads: as kv/concept.hpp says.
template <class A = alloc::Huge>
class Spilled {
  static_assert(mica::Allocator<A>, "mica::kv::Spilled: needs a mica::Allocator, or mica::kv::Paged<...>");

 public:
  static constexpr std::size_t page_tokens = 64;  // of a page, which is spilled at once
  static constexpr std::size_t page_tiles = page_tokens / format::tile_tokens;  // of each head

  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Spilled<B>;
  static constexpr std::string_view name = "spilled";

  /// An eighth of the context stays in memory: with both buffers, about a quarter for 16 layers.
  Spilled(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
      : Spilled(allocator, layers, max_tokens, max_tokens / 8) {}
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept {
    failure_.error = 0;
    if (tokens > max_tokens_ || !windows_.reserve(tokens)) return false;
    if (reload_ && !reload()) return false;
    const std::size_t before = end_;
    while (end_ * page_tokens < tokens) {
      if (add_page()) continue;
      while (end_ > std::max(before, begin_)) place(--end_).reset();
      return false;
    }
    return true;
  }
  void shrink(std::size_t tokens) noexcept {
    windows_.shrink(tokens);
    if (tokens >= capacity() && !(tokens == 0)) return;
    const std::size_t end = ceil_div(tokens, page_tokens), half = tokens / page_tokens;
    for (std::size_t page = std::max(end, begin_); page < end_; ++page) place(page).reset();
    end_ = std::min(end_, end);
    if (half < begin_) {
      forget_old();
      reload_ = tokens % page_tokens != 0;
      begin_ = half;
    }
    if (tokens > 0) return;
    for (Old& old : old_) old.bytes.reset();
    reload_ = false;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return std::min(end_ * page_tokens, max_tokens_); }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    const Layer& l = layers_[layer];
    return l.windowed ? windows_.first_tile(l.inner) : 0;
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const Layer& l = layers_[layer];
    if (l.windowed) return windows_.run(l.inner, head, tile);
    const std::size_t page = tile / page_tiles, in_page = tile % page_tiles;
    const bool in_file = page < begin_;
    const Bytes& bytes =
        in_file ? *old_[old_[0].layer == layer ? 0 : 1].bytes : *pages_[page % pages_.size()];
    const std::size_t first = in_file ? page * l.page_bytes : l.offset;
    return {const_cast<std::byte*>(bytes.data()) + first + (head * page_tiles + in_page) * l.tile_bytes,
            page_tiles - in_page};
  }

  // Required by SpillingStorage
  [[nodiscard]] bool fetch(std::size_t layer) noexcept {
    const Layer& l = layers_[layer];
    if (!file_ || l.windowed || begin_ == 0) return true;
    if (!file_->finish_read()) old_[1 - current_].layer = none;
    if (old_[current_].layer == layer) return true;
    current_ = 1 - current_;
    Old& old = old_[current_];
    if (old.layer == layer) return true;
    old.layer = none;
    if (!file_->read(at(layer, 0), old.bytes->span().first(begin_ * l.page_bytes))) return false;
    old.layer = layer;
    return true;
  }
  void prefetch(std::size_t layer) noexcept {
    if (!file_ || layers_[layer].windowed || begin_ == 0) return;
    Old& next = old_[1 - current_];
    if (old_[current_].layer == layer || next.layer == layer) return;
    file_->begin_read(at(layer, 0), next.bytes->span().first(begin_ * layers_[layer].page_bytes));
    next.layer = layer;
  }
  [[nodiscard]] const SpillFailure* spill_failure() const noexcept { return failure_ ? &failure_ : nullptr; }

  // Specific to Spilled
  /// resident: tokens in memory, at least those of a step. folder: io/spill_file.hpp.
  /// Raises ErrorCode::file if a longer context needs a file and none can be made in the folder.
  Spilled(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens, std::size_t resident,
          std::string_view folder = {})
      : allocator_(allocator),
        windows_(allocator, windowed_layers(layers), max_tokens),
        max_tokens_(round_up(max_tokens, format::tile_tokens)),
        max_pages_(ceil_div(max_tokens, page_tokens)),
        failure_{io::SpillFile::folder_of(folder)} {
    std::size_t inner = 0, step = 0;
    for (const LayerShape& layer : layers) {
      const bool windowed = layer.max_resident_tiles() != 0;
      const std::size_t bytes =
          round_up(layer.kv_heads * page_tiles * layer.tile_bytes, io::SpillFile::alignment);
      layers_.push_back({windowed, windowed ? inner++ : 0, layer.tile_bytes, bytes, page_bytes_});
      if (!windowed) page_bytes_ += bytes;
      if (!windowed) max_bytes_ = std::max(max_bytes_, bytes);
      step = std::max(step, layer.step);
    }
    const std::size_t min = ceil_div(step, page_tokens) + 1;  // a step may begin in the middle of a page
    pages_.resize(std::max(resident / page_tokens, min));
    if (alloc::touchable<A>(page_bytes_) == 0 || max_pages_ <= pages_.size()) return;
    int error = 0;
    file_ = io::SpillFile::make(failure_.folder, &error);
    MICA_CHECK(file_, file, text({failure_.folder, error}));
  }
  /// Tokens that are in the file and not in memory.
  [[nodiscard]] std::size_t spilled() const noexcept { return begin_ * page_tokens; }

 private:
  using Bytes = alloc::Buffer<std::byte, A>;
  struct Layer {
    bool windowed;
    std::size_t inner;  // of windows_, where it is there
    std::size_t tile_bytes;
    std::size_t page_bytes;  // of all heads, whole blocks of the file
    std::size_t offset;      // in a page of all layers
  };
  /// A layer's old pages, as far as they were read.
  struct Old {
    std::optional<Bytes> bytes;
    std::size_t layer = none;
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  [[nodiscard]] static std::vector<LayerShape> windowed_layers(std::span<const LayerShape> layers) {
    std::vector<LayerShape> out;
    for (const LayerShape& layer : layers) {
      if (layer.max_resident_tiles() != 0) out.push_back(layer);
    }
    return out;
  }
  [[nodiscard]] std::optional<Bytes>& place(std::size_t page) noexcept {
    return pages_[page % pages_.size()];
  }
  [[nodiscard]] std::uint64_t at(std::size_t layer, std::size_t page) const noexcept {
    return static_cast<std::uint64_t>(max_pages_) * layers_[layer].offset + page * layers_[layer].page_bytes;
  }
  [[nodiscard]] bool make_page(std::size_t page) noexcept {
    std::optional<Bytes>& bytes = place(page);
    if (!bytes) bytes = Bytes::make(allocator_, page_bytes_, io::SpillFile::alignment);
    return bytes.has_value();
  }
  /// Calls f(offset in the file, bytes in memory) for the layers of a page; stops at the first false.
  template <class F>
  [[nodiscard]] bool for_each_layer(std::size_t page, F&& f) noexcept {
    for (std::size_t l = 0; l < layers_.size() && file_; ++l) {
      const Layer& layer = layers_[l];
      if (layer.windowed) continue;
      if (!f(at(l, page), place(page)->span().subspan(layer.offset, layer.page_bytes))) return false;
    }
    return true;
  }
  [[nodiscard]] bool add_page() noexcept {
    if (end_ - begin_ == pages_.size() && !spill()) return false;
    if (!make_page(end_)) return false;
    ++end_;
    return true;
  }
  /// The oldest page leaves memory.
  [[nodiscard]] bool spill() noexcept {
    if (!make_buffers(begin_ + 1)) return false;
    forget_old();
    const bool written = for_each_layer(begin_, [&](std::uint64_t offset, std::span<std::byte> bytes) {
      return file_->write(offset, bytes);
    });
    if (!written) return failure_.error = errno, false;
    ++begin_;
    return true;
  }
  /// Reads page begin_ into memory, to be written from the middle on.
  [[nodiscard]] bool reload() noexcept {
    if (!make_page(begin_)) return false;
    const bool read = for_each_layer(
        begin_, [&](std::uint64_t offset, std::span<std::byte> bytes) { return file_->read(offset, bytes); });
    if (!read) return false;
    end_ = begin_ + 1;
    reload_ = false;
    return true;
  }
  /// Buffers for `pages` old pages of a layer and of the next one; their former content is lost.
  [[nodiscard]] bool make_buffers(std::size_t pages) noexcept {
    const std::size_t bytes = pages * max_bytes_;
    for (Old& old : old_) {
      if (old.bytes && old.bytes->size() >= bytes) continue;
      forget_old();
      const std::size_t all = max_pages_ * max_bytes_, wanted = std::min(all, bytes + bytes / 2);
      const A allocator = allocator_.book_as(budget::Account::io_buffers);
      old.bytes.reset();  // first, so that both are never there at once
      old.bytes = Bytes::make(allocator, wanted, io::SpillFile::alignment);
      if (!old.bytes) old.bytes = Bytes::make(allocator, bytes, io::SpillFile::alignment);
      if (!old.bytes) return false;
    }
    return true;
  }
  void forget_old() noexcept {
    if (file_) static_cast<void>(file_->finish_read());
    for (Old& old : old_) old.layer = none;
  }

  A allocator_;
  std::vector<Layer> layers_;
  Segmented<A> windows_;
  std::size_t max_tokens_;
  std::size_t max_pages_;
  std::size_t page_bytes_ = 0;               // of all layers without a window
  std::size_t max_bytes_ = 0;                // of a layer's page
  std::size_t begin_ = 0;                    // pages before it are in the file
  std::size_t end_ = 0;                      // pages
  bool reload_ = false;                      // page begin_ is in the file, and half of it will be written
  std::vector<std::optional<Bytes>> pages_;  // by page % size
  std::array<Old, 2> old_;
  std::size_t current_ = 0;            // of them, the one that is read; the other one is for the next layer
  SpillFailure failure_;               // why the last reserve() was refused
  std::optional<io::SpillFile> file_;  // none where all pages stay in memory, or in a plan
};

static_assert(KvStorage<Spilled<>> && SpillingStorage<Spilled<>>);

}  // namespace mica::kv
