// SPDX-License-Identifier: Apache-2.0
//
// Reads every byte of a packed directory: tensors are compared with their checksums, bytes between them with
// 0.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/io/checksum.hpp"
#include "mica/io/direct.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace mica::pack {

/// Called with the number of bytes done since the last call; may throw, which ends the work.
using OnBytes = std::function<void(std::uint64_t)>;

/// Reads files in pieces through memory of its own.
template <mica::Allocator A>
class Verifier {
 public:
  static constexpr std::size_t piece_bytes = std::size_t{1} << 20;  // of a read

  /// Raises ErrorCode::budget.
  Verifier(A allocator, LogSink log, OnBytes on_bytes)
      : memory_(allocator), log_(log), on_bytes_(std::move(on_bytes)) {
    auto memory = alloc::Buffer<std::byte, A>::make(
        allocator, 2 * piece_bytes + io::DirectReader::min_bounce_bytes, io::DirectReader::alignment);
    constexpr std::size_t bytes = 2 * piece_bytes + io::DirectReader::min_bounce_bytes;
    MICA_CHECK(memory, budget, "checking a packed directory: ", bytes, " bytes of a buffer ",
               alloc::refused(allocator, bytes));
    memory_ = std::move(*memory);
  }

  /// The damage of the file with number `source`; empty when there is none. Raises when it cannot be read.
  [[nodiscard]] std::optional<std::string> damage(const gguf::Source& file,
                                                  std::span<const gguf::TensorInfo> tensors,
                                                  std::uint32_t source) {
    const io::DirectReader reader(*file.file(), log_);
    std::uint64_t done = 0;
    bool zero = true;
    const auto between = [&](std::uint64_t end) {
      for_each_piece(reader, done, end, [&](std::span<const std::byte> bytes) {
        zero = zero && std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
      });
      done = end;
      return zero;
    };
    const auto not_zero = [&](const std::string& where) {
      return join(file.path(), ": damaged: bytes ", where, " are not zero; pack the model again");
    };
    for (const gguf::PlacedTensor& part : gguf::parts_in_order(tensors, source)) {
      if (!between(part.offset)) return not_zero(join("before tensor '", escaped(part.tensor->name), "'"));
      io::Checksum sum;
      done = part.offset + part.tensor->part_bytes();
      for_each_piece(reader, part.offset, done, [&](std::span<const std::byte> bytes) { sum.add(bytes); });
      if (sum.value() != part.tensor->checksums[part.part]) return part.damage_text(file.path());
    }
    if (!between(file.size())) return not_zero("at its end");
    return std::nullopt;
  }

 private:
  /// Calls f(bytes) for each piece of [begin, end).
  template <class F>
  void for_each_piece(const io::DirectReader& reader, std::uint64_t begin, std::uint64_t end, F&& f) {
    const std::span<std::byte> memory = memory_.span();
    for (std::uint64_t at = begin; at < end; at += piece_bytes) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, end - at));
      reader.read(at, memory.first(n), memory.subspan(piece_bytes));
      f(std::span<const std::byte>(memory.first(n)));
      if (on_bytes_) on_bytes_(n);
    }
  }

  alloc::Buffer<std::byte, A> memory_;
  LogSink log_;
  OnBytes on_bytes_;
};

/// Reads all files of an open packed directory; opening has compared manifest and sizes. Raises
/// ErrorCode::file for the first damage, naming file and tensor; usage for another document. Cost: one pass
/// over the files, 2 MiB.
template <mica::Allocator A>
void verify(const gguf::Document& document, A allocator, OnBytes on_bytes = {}, LogSink log = {}) {
  MICA_CHECK(document.packed(), usage, document.path(),
             ": is no packed directory; only those have checksums");
  Verifier<A> verifier(allocator, log, std::move(on_bytes));
  for (std::uint32_t i = 1; i < document.sources().size(); ++i) {
    const auto damage = verifier.damage(document.sources()[i], document.tensors(), i);
    MICA_CHECK(!damage, file, *damage);
  }
}

}  // namespace mica::pack
