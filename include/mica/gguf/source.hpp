// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a GGUF file are: in a file, or in memory (a model that is part of the program).
#pragma once

#include "mica/io/file.hpp"

#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace mica::gguf {

/// One file of a model. Thread-safe; move-only.
class Source {
 public:
  explicit Source(io::File file) : name_(file.path()), size_(file.size()), file_(std::move(file)) {}
  /// Requires that the memory outlives the Source.
  Source(std::string name, std::span<const std::byte> memory)
      : name_(std::move(name)), size_(memory.size()), memory_(memory) {}

  /// The path, or the name that was given to the memory.
  [[nodiscard]] const std::string& path() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// The open file; null when the bytes are in memory.
  [[nodiscard]] const io::File* file() const noexcept { return file_ ? &*file_ : nullptr; }
  /// The bytes in memory; empty when they are in a file.
  [[nodiscard]] std::span<const std::byte> memory() const noexcept { return memory_; }

  /// Fills `to` with the bytes from `offset` on, wherever they are. Raises as io::File::read_at.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const {
    if (file_) return file_->read_at(offset, to);
    MICA_CHECK(offset <= size_ && to.size() <= size_ - offset, file, name_, ": truncated: ", size_,
               " bytes, ", to.size(), " wanted from byte ", offset);
    if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
  }

 private:
  std::string name_;
  std::uint64_t size_ = 0;
  std::optional<io::File> file_;
  std::span<const std::byte> memory_;
};

}  // namespace mica::gguf
