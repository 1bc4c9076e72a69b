// SPDX-License-Identifier: Apache-2.0
//
// Writes a model as a packed directory (docs/pack.md): file by file, each of which appears whole, the
// manifest last. If a run ends early, the directory is refused when it is opened, and the next run finishes
// it. A finished directory is not written again.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/gguf/document.hpp"
#include "mica/gguf/read_plain.hpp"
#include "mica/io/atomic_file.hpp"
#include "mica/io/direct.hpp"
#include "mica_tools/pack/finished.hpp"
#include "mica_tools/pack/plan.hpp"
#include "mica_tools/write/disk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <unistd.h>

namespace mica::pack {

/// What a run did.
struct Outcome {
  std::size_t files = 0;    // of the directory, with the manifest
  std::uint64_t bytes = 0;  // of these files
  std::size_t kept = 0;     // of the files: an earlier run had written them
};

namespace detail {

/// Moves tensors from the source's files to files of the folder, in pieces. Not thread-safe.
template <mica::Allocator A>
class Packer {
 public:
  Packer(gguf::DocumentRef document, Plan& plan, const std::string& folder, A allocator, OnBytes on_bytes,
         LogSink log)
      : document_(document),
        plan_(plan),
        folder_(folder),
        on_bytes_(std::move(on_bytes)),
        log_(log),
        memory_(allocator) {
    make_memory(allocator);
  }

  /// Writes all files that are not finished, with their checksums to progress.gguf after each, and the
  /// manifest last. Raises as AtomicFile and DirectReader, and ErrorCode::file when the source changed.
  void write(const std::vector<bool>& finished) {
    const auto tell = [&] { write_manifest(gguf::names::progress, nullptr); };
    std::error_code error;
    if (std::find(finished.begin() + 1, finished.end(), false) != finished.end()) {
      tell();  // from here on, and until the end, this is no model
      fs::remove(io::in_folder(folder_, gguf::names::manifest), error);
    }
    for (std::uint32_t i = 1; i < finished.size(); ++i) {
      if (finished[i]) continue;
      write_file(i);
      tell();
    }
    for (const gguf::Source& source : document_.sources()) {
      if (source.file() != nullptr) source.file()->check_unchanged();
    }
    write_manifest(gguf::names::manifest, &document_.metadata());
    fs::remove(io::in_folder(folder_, gguf::names::progress), error);
  }

 private:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20, bounce_bytes = std::size_t{1} << 20;

  [[nodiscard]] static std::size_t panel_bytes(const gguf::TensorInfo& tensor) {
    return static_cast<std::size_t>(tensor.bytes / tensor.rows() * tensor::Rows16::rows);
  }
  void make_memory(A allocator) {
    for (const gguf::TensorInfo& tensor : plan_.manifest.tensors) {
      if (tensor.packed) piece_ = std::max(piece_, panel_bytes(tensor));
    }
    piece_ = round_up(piece_, io::DirectReader::alignment);
    auto memory =
        alloc::Buffer<std::byte, A>::make(allocator, 2 * piece_ + bounce_bytes, io::DirectReader::alignment);
    MICA_CHECK(memory, budget, "packing: ", 2 * piece_ + bounce_bytes, " bytes of a buffer ",
               alloc::refused(allocator, 2 * piece_ + bounce_bytes));
    memory_ = std::move(*memory);
  }
  /// Writes file i of the plan and sets the checksums of its tensors.
  void write_file(std::uint32_t i) {
    const gguf::Manifest::File& file = plan_.manifest.files[i];
    io::AtomicFile out(io::in_folder(folder_, file.name));
    const std::vector<std::byte> zeros(part_alignment);
    const auto pad = [&](std::uint64_t end) {
      while (out.size() < end)
        out.write(std::span(zeros).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(zeros.size(), end - out.size()))));
    };
    std::vector<gguf::TensorInfo>& tensors = plan_.manifest.tensors;
    for (const auto& [offset, tensor, part] : gguf::parts_in_order(tensors, i)) {
      const auto number = static_cast<std::size_t>(tensor - tensors.data());
      pad(offset);
      tensors[number].checksums[part] = write_part(out, *tensor, *plan_.from[number], part);
    }
    pad(file.bytes);
    out.commit();
  }

  void write_manifest(std::string_view name, const gguf::Metadata* keys) const {
    io::write_atomically(io::in_folder(folder_, name),
                         [&](io::AtomicFile& out) { out.write(manifest_bytes(plan_.manifest, keys)); });
  }
  /// One part, in whole panels where it is packed. Answers the checksum.
  [[nodiscard]] std::uint64_t write_part(io::AtomicFile& out, const gguf::TensorInfo& to,
                                         const gguf::TensorInfo& from, std::uint32_t part) {
    const std::span<std::byte> plain = memory_.span().first(piece_),
                               packed = memory_.span().subspan(piece_, piece_);
    const std::size_t step = to.packed ? piece_ / panel_bytes(to) * panel_bytes(to) : piece_;
    io::Checksum sum;
    for (std::uint64_t done = 0; done < to.part_bytes(); done += step) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(step, to.part_bytes() - done));
      std::span<std::byte> bytes = plain.first(n);
      read(from, part * to.part_bytes() + done, bytes);
      if (to.packed) {
        plan_.packing(to.format.id).pack(bytes, static_cast<std::size_t>(to.width()), packed.data());
        bytes = packed.first(n);
      }
      sum.add(bytes);
      out.write(bytes);
      if (on_bytes_) on_bytes_(n);
    }
    return sum.value();
  }
  /// Past the page cache where the source is a file.
  void read(const gguf::TensorInfo& from, std::uint64_t at, std::span<std::byte> to) {
    const gguf::Source& source = document_.source(from);
    if (source.file() == nullptr) return gguf::read_plain(document_, from, at, to, plan_.packing);
    if (!reader_ || reader_of_ != from.source) {
      reader_.emplace(*source.file(), log_);
      reader_of_ = from.source;
    }
    gguf::read_plain(
        from, at, to,
        [&](std::uint64_t offset, std::span<std::byte> bytes) {
          reader_->read(offset, bytes, memory_.span().subspan(2 * piece_));
        },
        plan_.packing);
  }

  const gguf::Document& document_;
  Plan& plan_;
  const std::string& folder_;
  OnBytes on_bytes_;
  LogSink log_;
  alloc::Buffer<std::byte, A> memory_;  // a piece, the same packed, and what direct reads go through
  std::size_t piece_ = piece_bytes;
  std::optional<io::DirectReader> reader_;
  std::uint32_t reader_of_ = 0;
};

/// Makes a missing folder and its name durable. The destructor removes a folder that it made and that is
/// still empty.
class Folder {
 public:
  explicit Folder(const std::string& folder) : path_(folder) {
    std::error_code error;
    made_ = fs::create_directory(path_, error);
    MICA_CHECK(!error, file, folder, ": the folder cannot be made: ", error.message());
    if (!made_) return;
    const std::string parent = path_.parent_path().string();
    const io::detail::Descriptor fd(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd) ::fsync(fd.get());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code error;
    if (made_) fs::remove(path_, error);  // fails unless it is empty
  }

 private:
  fs::path path_;
  bool made_ = false;
};

/// The files that are not written yet must fit; unfinished files are not there twice.
inline void require_free_space(const Plan& plan, const std::vector<bool>& finished,
                               const std::string& folder) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < finished.size(); ++i) bytes += finished[i] ? 0 : plan.manifest.files[i].bytes;
  const auto free = io::free_space(folder);
  MICA_CHECK(!free || bytes <= *free, failed, folder, ": the files that are not written yet need ", bytes,
             " bytes, and the disk has ", *free, " free");
}

}  // namespace detail

/// Packs a document as planned. The folder is made where it is missing, in one that is there. on_bytes:
/// called with the bytes of tensors done since the last call; may throw, and finished files then stay for the
/// next run. Raises ErrorCode::usage for a folder that holds other things, failed when the disk is full, file
/// when the source changes meanwhile. Cost: one pass over source and outcome; 3 MiB, booked by the allocator,
/// and the manifest.
template <mica::Allocator A>
Outcome pack(const gguf::Document& document, Plan& plan, const std::string& folder, A allocator,
             OnBytes on_bytes = {}, LogSink log = {}) {
  std::error_code error;
  MICA_CHECK(!detail::fs::equivalent(document.path(), folder, error), usage, folder,
             ": is what is read; name another folder");
  const detail::Folder made(folder);
  const io::FolderLock lock(folder);
  detail::clean_folder(folder);
  const std::vector<bool> finished = detail::finished_files(plan, folder, document.formats(), allocator, log);
  const auto kept = static_cast<std::size_t>(std::count(finished.begin(), finished.end(), true));
  detail::Packer<A> packer(document, plan, folder, allocator, std::move(on_bytes), log);
  detail::require_free_space(plan, finished, folder);
  packer.write(finished);
  return {plan.manifest.files.size(), plan.bytes(), kept};
}

}  // namespace mica::pack
