// SPDX-License-Identifier: Apache-2.0
//
// A model's header: its metadata and the list of its tensors. The numbers of the tensors stay where they are,
// and a Document knows where that is. How one is opened: gguf/reader.hpp.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/gguf/source.hpp"
#include "mica/gguf/tensor_info.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::gguf {

/// What stands before the data of a file.
struct Header {
  std::uint32_t version = 0;        ///< of GGUF: 2 or 3
  std::uint32_t alignment = 32;     ///< of every tensor's first byte
  std::uint64_t bytes = 0;          ///< of the header, without the padding after it
  std::uint64_t data_offset = 0;    ///< where the data begins
  Metadata metadata;                ///< a view of the source's memory, or owner of the bytes that were read
  std::vector<TensorInfo> tensors;  ///< in the order of the file, which need not be that of their bytes
  format::Table formats = format::known;  ///< that the tensors may have
};

/// A model's metadata and tensors, checked. Thread-safe once made; move-only, and views survive a move.
class Document {
 public:
  /// Puts a model together from its files and the header of the whole, whose tensors say which file they lie
  /// in; `folder`: the name of a packed directory. Raises ErrorCode::file when a tensor occurs twice. Users
  /// call open() or parse().
  Document(std::vector<Source> sources, Header header, std::string folder = {})
      : sources_(std::move(sources)),
        folder_(std::move(folder)),
        header_(std::move(header)),
        index_(header_.tensors.size(), names()) {
    MICA_ASSERT(!sources_.empty());
    if (const auto twice = index_.duplicate(names())) {
      const TensorInfo& second = header_.tensors[twice[1]];
      raise(
          ErrorCode::file, source(second).path(), ": tensor '", escaped(second.name), "' appears twice",
          sources_.size() > 1 ? join(", the first time in ", source(header_.tensors[twice[0]]).path()) : "");
    }
  }

  /// The keys and values of the header.
  [[nodiscard]] const Metadata& metadata() const noexcept { return header_.metadata; }
  /// All tensors: of shards in their order, of a packed directory in that of the manifest.
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept {
    return {header_.tensors.data(), header_.tensors.size()};
  }
  /// The numbers of the tensors in the order of their names.
  [[nodiscard]] std::span<const std::uint32_t> order() const noexcept { return index_.order(); }

  /// The tensor of that name; null when there is none. Raises ErrorCode::file when it has no values.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const {
    const auto at = index_.find(name, names());
    if (!at) return nullptr;
    const TensorInfo& found = header_.tensors[*at];
    MICA_CHECK(!found.empty(), file, source(found).path(), ": tensor '", escaped(name),
               "' has no values: its shape is ", found.shape());
    return &found;
  }
  /// Whether there is a tensor of that name.
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    return index_.find(name, names()).has_value();
  }
  /// The tensor of that name. Raises ErrorCode::file when there is none, or it has no values.
  [[nodiscard]] const TensorInfo& tensor(std::string_view name) const {
    const TensorInfo* found = find(name);
    MICA_CHECK(found != nullptr, file, path(), ": tensor '", escaped(name), "' is missing");
    return *found;
  }
  /// Fills `to` with the tensor's bytes. Requires to.size() == tensor.bytes. Raises as io::File::read_at, and
  /// ErrorCode::usage for a tensor that lies packed: gguf/read_plain.hpp reads those too.
  void read(const TensorInfo& tensor, std::span<std::byte> to) const {
    MICA_ASSERT(to.size() == tensor.bytes);
    MICA_CHECK(!tensor.packed, usage, source(tensor).path(), ": tensor '", escaped(tensor.name),
               "' lies packed; read it by gguf::read_plain (gguf/read_plain.hpp)");
    const auto part = static_cast<std::size_t>(tensor.part_bytes());
    for (std::uint32_t i = 0; i < tensor.parts; ++i)
      source(tensor).read_at(tensor.offset + i * tensor.stride, to.subspan(i * part, part));
  }

  /// The first file or the packed directory, which stands for the model in error texts.
  [[nodiscard]] const std::string& path() const noexcept {
    return folder_.empty() ? sources_.front().path() : folder_;
  }
  /// Whether this is a packed directory (docs/pack.md).
  [[nodiscard]] bool packed() const noexcept { return !folder_.empty(); }
  /// The files, by TensorInfo::source: one, the shards in order, or those of the manifest.
  [[nodiscard]] std::span<const Source> sources() const noexcept {
    return {sources_.data(), sources_.size()};
  }
  /// The file that has the data of a tensor of this document.
  [[nodiscard]] const Source& source(const TensorInfo& tensor) const noexcept {
    return sources_[tensor.source];
  }

  /// Bytes of its files; 0 for a model in memory.
  [[nodiscard]] std::uint64_t file_bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const Source& source : sources()) bytes += source.file() == nullptr ? 0 : source.size();
    return bytes;
  }

  /// The formats that its tensors may have.
  [[nodiscard]] format::Table formats() const noexcept { return header_.formats; }
  /// Of the first file.
  [[nodiscard]] std::uint32_t version() const noexcept { return header_.version; }
  [[nodiscard]] std::uint32_t alignment() const noexcept { return header_.alignment; }
  [[nodiscard]] std::uint64_t data_offset() const noexcept { return header_.data_offset; }
  [[nodiscard]] std::uint64_t header_bytes() const noexcept { return header_.bytes; }

  /// Bytes this object keeps in memory, for a ledger.
  [[nodiscard]] std::size_t resident_bytes() const noexcept {
    std::size_t bytes = header_.metadata.resident_bytes() +
                        header_.tensors.capacity() * (sizeof(TensorInfo) + sizeof(std::uint32_t));
    for (const TensorInfo& t : tensors())
      bytes += t.name.capacity() + t.checksums.capacity() * sizeof(std::uint64_t);
    return bytes;
  }

 private:
  [[nodiscard]] detail::NameList names() const noexcept { return detail::names_in(header_.tensors); }

  std::vector<Source> sources_;
  std::string folder_;  // empty: no packed directory
  Header header_;       // of the first file, with the tensors of all
  detail::NameIndex index_;
};

/// The argument type for objects that refer to a Document: a model, its weights, a quantisation job. It
/// converts from a Document; a temporary does not compile, because it would end before its user.
///
///   mica::Transformer<...> model(gguf::open(path), executor);  // refused: name the document first
class DocumentRef {
 public:
  /// Refers to the document, which outlives it.
  DocumentRef(const Document& document) noexcept : document_(&document) {}
  DocumentRef(const Document&& temporary) = delete;  // name the document: it must outlive its user

  /// Valid as long as the document.
  operator const Document&() const noexcept { return *document_; }
  const Document& operator*() const noexcept { return *document_; }
  const Document* operator->() const noexcept { return document_; }

 private:
  const Document* document_;
};

}  // namespace mica::gguf
