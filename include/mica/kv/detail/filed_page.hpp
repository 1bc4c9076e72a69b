// SPDX-License-Identifier: Apache-2.0
//
// Blocks of memory with several owners, in a file while none of them uses them:
//
//   handle: | owners | users | slot | data | -> bytes in memory, or nothing where users is 0
//                                |
//   file:   | slot 0 | slot 1 | slot 2 | ...   all of one size
//
// A page that was written and not changed since is not written again.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/io/spill_file.hpp"
#include "mica/kv/detail/page.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::kv {

/// A page of FiledPages.
struct FiledPage {
  static constexpr std::uint64_t none = static_cast<std::uint64_t>(-1);

  std::size_t owners = 1;
  std::size_t users = 1;  // owners that need it in memory
  std::uint64_t slot = none;
  bool filed = false;         // the slot has the bytes of the page
  std::byte* data = nullptr;  // null: it is in the file alone
};

/// Makes pages of one size and frees them with their last owner. Copies share one file, so pages may be
/// passed between them. Not thread-safe. The file is made with the first page that is written.
template <Allocator A>
class FiledPages {
 public:
  using Allocator = A;
  using Page = FiledPage*;
  [[nodiscard]] static std::byte* data(Page page) noexcept { return page->data; }

  /// bytes > 0; a page takes whole blocks of the file. folder: io/spill_file.hpp.
  FiledPages(A allocator, std::size_t bytes, std::string_view folder = {})
      : allocator_(allocator),
        bytes_(round_up(bytes, io::SpillFile::alignment)),
        file_(std::make_shared<File>(File{std::string(folder), {}, {}, 0})),
        handles_(std::make_shared<Handles>(Handles{allocator})) {}

  /// A page of zeros with one owner that uses it, so that nothing of a former owner is in it; null when the
  /// allocator refuses.
  [[nodiscard]] Page acquire() noexcept {
    const Page page = take();
    if (page != nullptr) std::memset(page->data, 0, alloc::touchable<A>(bytes_));
    return page;
  }
  /// The same with the bytes of another page, which is in memory.
  [[nodiscard]] Page copy(Page from) noexcept {
    const Page page = take();
    if (page != nullptr) std::memcpy(page->data, from->data, alloc::touchable<A>(bytes_));
    return page;
  }
  /// One more owner, who uses it. It is in memory.
  void share(Page page) noexcept {
    ++page->owners;
    ++page->users;
  }
  [[nodiscard]] bool shared(Page page) const noexcept { return page->owners > 1; }
  /// Its only owner is about to write.
  void touch(Page page) noexcept { page->filed = false; }
  /// One owner less, which used it; memory and slot are freed with the last.
  void release(Page page) noexcept {
    MICA_ASSERT(page->owners > 0 && page->users > 0);
    --page->users;
    if (--page->owners > 0) {
      if (page->users == 0 && page->data != nullptr && file(page))
        empty(page);  // where the file is full it stays
      return;
    }
    if (page->slot != FiledPage::none) file_->free.push_back(page->slot);  // has room: see file()
    give_back(page);
  }

  /// Writes the page to the file as well; false, and nothing changed: it cannot be written, or is of a plan.
  [[nodiscard]] bool file(Page page) noexcept {
    if (page->filed) return true;
    if (alloc::touchable<A>(bytes_) == 0) return false;
    if (!file_->file) file_->file = io::SpillFile::make(file_->folder);
    if (!file_->file || !find_slot(page)) return false;
    page->filed = file_->file->write(page->slot * bytes_, {page->data, bytes_});
    return page->filed;
  }
  /// An owner does not need it in memory; a page without users that is in the file leaves memory.
  void leave(Page page) noexcept {
    if (--page->users == 0 && page->filed) empty(page);
  }
  /// Brings it into memory; false, and nothing changed: no memory, or it cannot be read. An owner who then
  /// needs it says use().
  [[nodiscard]] bool load(Page page) noexcept {
    if (page->data != nullptr) return true;
    page->data = allocator_.allocate(bytes_, io::SpillFile::alignment);
    if (page->data == nullptr) return false;
    if (file_->file->read(page->slot * bytes_, {page->data, bytes_})) return true;
    empty(page);
    return false;
  }
  void use(Page page) noexcept { ++page->users; }
  /// Undoes a load() without a use().
  void unload(Page page) noexcept {
    if (page->users == 0 && page->filed && page->data != nullptr) empty(page);
  }

 private:
  /// The shared state of copies.
  struct File {
    std::string folder;
    std::optional<io::SpillFile> file;
    std::vector<std::uint64_t> free;  // slots, with room for all there are
    std::uint64_t slots = 0;
  };
  /// Where handles come from: blocks of many, which are freed when all of them are free. A block begins with
  /// the address of the next.
  struct Handles {
    static constexpr std::size_t bytes = 64, block_bytes = 4096, per_block = block_bytes / bytes - 1;
    static_assert(sizeof(FiledPage) <= bytes);

    A allocator;
    std::byte* blocks = nullptr;
    FiledPage* free = nullptr;  // linked by `data`
    std::size_t room = 0;
    std::size_t live = 0;

    /// Null when the allocator refuses.
    [[nodiscard]] Page take() noexcept {
      if (live == room) {
        std::byte* const block =
            allocate_backed(allocator, block_bytes, alloc::default_alignment, block_bytes);
        if (block == nullptr) return nullptr;
        ::new (block) std::byte*(blocks);
        for (std::size_t i = 1; i <= per_block; ++i) {
          free = ::new (block + i * bytes) FiledPage{.data = reinterpret_cast<std::byte*>(free)};
        }
        blocks = block;
        room += per_block;
      }
      ++live;
      const Page page = free;
      free = reinterpret_cast<FiledPage*>(page->data);
      *page = FiledPage();
      return page;
    }
    void give_back(Page page) noexcept {
      page->data = reinterpret_cast<std::byte*>(free);
      free = page;
      if (--live > 0) return;
      for (; room > 0; room -= per_block) {
        std::byte* const block = blocks;
        blocks = *std::launder(reinterpret_cast<std::byte**>(block));
        deallocate_backed(allocator, block, block_bytes, block_bytes);
      }
      free = nullptr;
    }
  };

  [[nodiscard]] Page take() noexcept {
    const Page page = handles_->take();
    if (page == nullptr) return nullptr;
    page->data = allocator_.allocate(bytes_, io::SpillFile::alignment);
    if (page->data == nullptr) return handles_->give_back(page), nullptr;
    return page;
  }
  void empty(Page page) noexcept { allocator_.deallocate(std::exchange(page->data, nullptr), bytes_); }
  void give_back(Page page) noexcept {
    if (page->data != nullptr) empty(page);
    handles_->give_back(page);
  }
  /// A slot for the page: one that is free, or one more.
  [[nodiscard]] bool find_slot(Page page) noexcept try {
    if (page->slot != FiledPage::none) return true;
    if (!file_->free.empty()) {
      page->slot = file_->free.back();
      file_->free.pop_back();
      return true;
    }
    file_->free.reserve(file_->slots + 1);
    page->slot = file_->slots++;
    return true;
  } catch (...) {  // no memory for the list
    return false;
  }

  A allocator_;
  std::size_t bytes_;
  std::shared_ptr<File> file_;
  std::shared_ptr<Handles> handles_;
};

}  // namespace mica::kv
