// SPDX-License-Identifier: Apache-2.0
//
// Writes a snapshot from its first byte to its last. The file appears when it is complete, or not at all.
// Since it contains the text of a user, a new file can be read by its owner only.
#pragma once

#include "mica/base/bytes.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/checksum.hpp"
#include "mica/kv/snapshot.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::kv {

namespace detail {

/// The description as read_info() reads it.
[[nodiscard]] inline std::vector<std::byte> describe(const SnapshotInfo& info) {
  std::vector<std::byte> out;
  const auto number = [&](std::uint64_t value) { gguf::append_number(out, value); };
  gguf::append_text(out, info.arch);
  number(info.model);
  number(info.positions);
  gguf::append_text(out, info.keys);
  gguf::append_text(out, info.values);
  gguf::append_list(out, info.tokens);
  number(info.cached);
  number(info.layers.size());
  for (const SnapshotInfo::Layer& layer : info.layers) {
    for (const std::uint64_t value : {layer.kv_heads, layer.tile_bytes, layer.window, layer.first_tile})
      number(value);
  }
  number(info.state_floats);
  gguf::append_list(out, info.copies);
  gguf::append_text(out, info.note);
  return out;
}

}  // namespace detail

/// Blocks are written in the order of SnapshotLayout. One thread at a time.
class SnapshotWriter {
 public:
  /// Of a rank whose keys and values rank 0 writes: it has no file, and nothing is written to it.
  explicit SnapshotWriter(const SnapshotInfo& info) : layout_(info) {}
  /// Begins the file. Raises as io::AtomicFile, and ErrorCode::unsupported without xxHash.
  SnapshotWriter(std::string path, const SnapshotInfo& info)
      : layout_(info), file_(std::in_place, std::move(path), io::Access::owner) {
    const std::vector<std::byte> description = detail::describe(info);
    detail::SnapshotPrelude prelude;
    prelude.description_bytes = description.size();
    prelude.description = io::checksum(bytes_of(description.data(), description.size()));
    prelude.file_bytes = sizeof prelude + description.size() + layout_.bytes() +
                         (layout_.blocks() + 1) * sizeof(std::uint64_t);
    const auto bytes = bytes_of(&prelude, 1);
    prelude.prelude = io::checksum(bytes.first(sizeof prelude - sizeof prelude.prelude));
    file_->write(bytes);
    file_->write(bytes_of(description.data(), description.size()));
    sums_.reserve(layout_.blocks() + 1);
    end_ = prelude.file_bytes;
  }

  /// A whole state, in as many blocks as it takes.
  void write_state(std::span<const float> state) {
    auto bytes = std::as_bytes(state);
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), SnapshotLayout::state_bytes));
      write(part);
      end_block();
      bytes = bytes.subspan(part.size());
    }
  }
  /// The next bytes of a block. Raises ErrorCode::failed when the system cannot take them.
  void write(std::span<const std::byte> bytes) {
    sum_.add(bytes);
    file_->write(bytes);
  }
  /// Ends a block; its bytes must be those of layout().
  void end_block() {
    sums_.push_back(sum_.value());
    sum_.clear();
  }

  [[nodiscard]] const SnapshotLayout& layout() const noexcept { return layout_; }  // the blocks to write

  /// Ends the file and gives it its name. All blocks have been written.
  void commit() {
    MICA_ASSERT(sums_.size() == layout_.blocks());
    sums_.push_back(io::checksum(bytes_of(sums_.data(), sums_.size())));
    file_->write(bytes_of(sums_.data(), sums_.size()));
    MICA_ASSERT(file_->size() == end_);
    file_->commit();
  }

 private:
  SnapshotLayout layout_;
  std::optional<io::AtomicFile> file_;
  io::Checksum sum_;
  std::vector<std::uint64_t> sums_;
  std::uint64_t end_ = 0;  // bytes of the file
};

}  // namespace mica::kv
