// SPDX-License-Identifier: Apache-2.0
//
// Reads a snapshot: its description when it is opened, blocks on demand. If a byte is damaged, the read is
// refused, and the message names the block.
#pragma once

#include "mica/base/bytes.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/file.hpp"
#include "mica/kv/elements.hpp"
#include "mica/kv/snapshot.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::kv {

namespace detail {

[[nodiscard]] inline SnapshotInfo read_info(gguf::SpanReader& reader) {
  SnapshotInfo info;
  const auto number = [&](std::string_view what) { return reader.read<std::uint64_t>(what); };
  info.arch = reader.text("the family");
  info.model = number("the model");
  info.positions = number("the frequencies");
  info.keys = reader.text("the element of keys");
  info.values = reader.text("the element of values");
  info.tokens = reader.list<TokenId>("tokens");
  info.cached = number("the number of tokens cached");
  info.layers.resize(reader.count(sizeof(SnapshotInfo::Layer), "layers"));
  for (SnapshotInfo::Layer& layer : info.layers) {
    for (std::uint64_t* const value :
         {&layer.kv_heads, &layer.tile_bytes, &layer.window, &layer.first_tile}) {
      *value = number("a layer");
    }
  }
  info.state_floats = number("the size of the state");
  info.copies = reader.list<std::uint64_t>("copies");
  info.note = reader.text("the note");
  return info;
}

}  // namespace detail

/// A snapshot in a file. One thread at a time.
class SnapshotReader {
 public:
  /// Reads the description and the checksums. Raises ErrorCode::file when the file is missing, cut, damaged
  /// or no snapshot; unsupported for a version that is not known, and without xxHash. Allocates no more than
  /// the file has bytes.
  explicit SnapshotReader(std::string path) : path_(std::move(path)), file_(io::File::open(path_)) {
    read_description(read_prelude());
    read_sums();
  }
  /// Of a rank that gets its keys and values from rank 0: the description, as detail::describe() writes it.
  /// It has no file, and nothing is read from it. Raises ErrorCode::file.
  SnapshotReader(std::string name, std::span<const std::byte> description) : path_(std::move(name)) {
    read_description(description, std::numeric_limits<std::uint64_t>::max() - 1);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// As the file says; whether it fits a model is not checked here.
  [[nodiscard]] const SnapshotInfo& info() const noexcept { return info_; }
  [[nodiscard]] const SnapshotLayout& layout() const noexcept { return layout_; }

  /// Whether `own` is true on all ranks: there is one.
  [[nodiscard]] static constexpr bool everywhere(bool own) noexcept { return own; }

  /// Reads a state: copy 0 is the state itself, copy i that of info().copies[i - 1]. to.size() ==
  /// info().state_floats. Raises ErrorCode::file when it is damaged.
  void read_state(std::size_t copy, std::span<float> to) const {
    auto bytes = std::as_writable_bytes(to);
    for (std::size_t part = 0; part < layout_.parts(); ++part) {
      const SnapshotLayout::Block at = layout_.state(copy, part);
      Block block(*this, at);
      block.read(bytes.first(at.bytes));
      block.check();
      bytes = bytes.subspan(at.bytes);
    }
  }

  /// Reads a block in pieces: read(span) until it is whole, then check().
  class Block {
   public:
    /// Reads the next bytes of the block.
    void read(std::span<std::byte> to) {
      from_.file_->read_at(from_.first_block_ + block_.offset + done_, to);
      done_ += to.size();
      sum_.add(to);
    }
    /// Raises ErrorCode::file, naming the block, when one of its bytes is damaged.
    void check() const {
      MICA_ASSERT(done_ == block_.bytes);
      MICA_CHECK(sum_.value() == from_.sums_[block_.index], file, from_.path(), ": ",
                 from_.layout().name(block_.index), " are damaged (block ", block_.index, " at byte ",
                 from_.first_block_ + block_.offset, "); delete the file");
    }

   private:
    friend class SnapshotReader;
    Block(const SnapshotReader& from, const SnapshotLayout::Block& block) : from_(from), block_(block) {}

    const SnapshotReader& from_;
    SnapshotLayout::Block block_;
    std::size_t done_ = 0;
    io::Checksum sum_;
  };
  /// The tiles of a page of a layer, head by head.
  [[nodiscard]] Block page(std::size_t layer, std::size_t page) const {
    return {*this, layout_.page(layer, page)};
  }

 private:
  [[nodiscard]] detail::SnapshotPrelude read_prelude() const {
    detail::SnapshotPrelude prelude;
    MICA_CHECK(file_->size() >= sizeof prelude, file, this->path(), ": ", file_->size(),
               " bytes are no saved session, which has ", sizeof prelude, " at least");
    const auto bytes = writable_bytes_of(&prelude, 1);
    file_->read_at(0, bytes);
    MICA_CHECK(prelude.magic == detail::snapshot_magic, file, this->path(),
               ": not a saved session (it begins with other bytes); name another file");
    MICA_CHECK(prelude.prelude == io::checksum(bytes.first(sizeof prelude - sizeof prelude.prelude)), file,
               this->path(), ": the first ", sizeof prelude, " bytes are damaged; delete the file");
    MICA_CHECK(prelude.version == detail::snapshot_version && prelude.zero == 0, unsupported, this->path(),
               ": a saved session of version ", prelude.version, "; this program reads version ",
               detail::snapshot_version, "; delete the file and save again");
    MICA_CHECK(prelude.file_bytes == file_->size(), file, this->path(), ": has ", file_->size(), " bytes, ",
               prelude.file_bytes, " were written; it is truncated or damaged; delete it");
    return prelude;
  }
  void read_description(const detail::SnapshotPrelude& prelude) {
    MICA_CHECK(prelude.description_bytes <= file_->size() - sizeof prelude, file, path(),
               ": a description of ", prelude.description_bytes, " bytes does not fit into ", file_->size());
    std::vector<std::byte> description(static_cast<std::size_t>(prelude.description_bytes));
    const std::span bytes(description.data(), description.size());
    file_->read_at(sizeof prelude, bytes);
    MICA_CHECK(prelude.description == io::checksum(bytes), file, path(),
               ": the description (model, tokens) is damaged; delete the file");
    read_description(bytes, file_->size());
    first_block_ = sizeof prelude + prelude.description_bytes;
  }
  /// most: bytes that keys, values and states may have.
  void read_description(std::span<const std::byte> bytes, std::uint64_t most) {
    gguf::SpanReader reader(path(), bytes);
    reader.enter("description");
    info_ = detail::read_info(reader);
    if (reader.remaining() != 0) reader.refuse(ErrorCode::file, reader.remaining(), " bytes are left over");
    MICA_CHECK(info_.cached <= info_.tokens.size() && SnapshotLayout::bytes_of(info_) <= most, file, path(),
               ": ", info_.cached, " cached tokens of ", info_.tokens.size(),
               " and their bytes do not fit into ", most);
    layout_ = SnapshotLayout(info_);
  }
  void read_sums() {
    constexpr std::size_t each = sizeof(std::uint64_t);
    const std::uint64_t after = file_->size() - first_block_;
    MICA_CHECK(layout_.blocks() < after / each && layout_.bytes() == after - (layout_.blocks() + 1) * each,
               file, path(), ": ", after, " bytes after the description; ", layout_.blocks(), " blocks take ",
               layout_.bytes(), " and their checksums");
    sums_.resize(layout_.blocks() + 1);
    const auto bytes = writable_bytes_of(sums_.data(), sums_.size());
    file_->read_at(first_block_ + layout_.bytes(), bytes);
    MICA_CHECK(sums_.back() == io::checksum(bytes.first(bytes.size() - each)), file, path(),
               ": the list of checksums is damaged; delete the file");
  }

  std::string path_;
  std::optional<io::File> file_;
  SnapshotInfo info_;
  SnapshotLayout layout_;
  std::uint64_t first_block_ = 0;    // where in the file
  std::vector<std::uint64_t> sums_;  // by block
};

/// Raises ErrorCode::usage where a snapshot is not of the model and the elements of `own`, the description of
/// an empty cache, saying what differs.
inline void check_saved(const SnapshotReader& in, const SnapshotInfo& own) {
  const SnapshotInfo& saved = in.info();
  const auto same = [&](std::string_view what, const auto& found, const auto& needed,
                        std::string_view way_out) {
    MICA_CHECK(found == needed, usage, in.path(), ": ", what, " ", escaped(join(found)), "; this one has ",
               needed, "; ", way_out);
  };
  same("was saved with a model of the family", saved.arch, own.arch, "use that model, or another file");
  same("was saved with keys in", saved_name(saved.keys), own.keys, "use -ctk with that, or another file");
  same("was saved with values in", saved_name(saved.values), own.values,
       "use -ctv with that, or another file");
  MICA_CHECK(saved.model == own.model, usage, in.path(), ": was saved with another model of the family ",
             own.arch, ", which has other tensors; use that model, or another file");
  same("was saved with rotations of checksum", saved.positions, own.positions,
       "use -c as when it was saved, or another file");
  same("has a recurrent state of", saved.state_floats, own.state_floats, "the file is of another model");
  bool alike = saved.layers.size() == own.layers.size();
  for (std::size_t l = 0; alike && l < own.layers.size(); ++l) {
    SnapshotInfo::Layer layer = saved.layers[l];
    layer.first_tile = 0;
    alike = layer == own.layers[l];
  }
  MICA_CHECK(
      alike, usage, in.path(),
      ": was saved with other layers; use --cache-recent and -c as when it was saved, or another file");
}

}  // namespace mica::kv
