// SPDX-License-Identifier: Apache-2.0
//
// Reads one safetensors file. Its header is taken as a stream of events, so that it costs what it describes;
// the numbers stay in the mapped file.
//
//   | header length u64 | JSON {"name": {"dtype", "shape", "data_offsets": [first, end]}, ...} | data |
#pragma once

#include "mica/base/bits.hpp"
#include "mica/io/file.hpp"
#include "mica/io/map.hpp"
#include "mica_tools/convert/detail/safetensors_events.hpp"
#include "mica_tools/convert/safetensor.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::convert {

/// An open file with its tensors, in the order of their names' first appearance. Thread-safe, move-only.
class Safetensors {
 public:
  static constexpr std::uint64_t max_header_bytes = 100'000'000;  // the format's own limit

  /// Maps the file and checks the whole header: types, shapes against sizes, places inside the file, no
  /// overlaps. Raises ErrorCode::file or limit, naming file and tensor.
  [[nodiscard]] static Safetensors open(const std::string& path) {
    const io::File file = io::File::open(path);
    Safetensors out(path, file);
    out.read_header();
    return out;
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::vector<Safetensor>& tensors() const noexcept { return tensors_; }
  /// The bytes of one of tensors().
  [[nodiscard]] std::span<const std::byte> bytes(const Safetensor& tensor) const noexcept {
    return mapping_.bytes().subspan(static_cast<std::size_t>(tensor.offset),
                                    static_cast<std::size_t>(tensor.bytes));
  }
  /// Releases the tensor's pages; the next access reads them again.
  void release(const Safetensor& tensor) const noexcept {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(bytes(tensor).data()) / page * page;
    const auto last = reinterpret_cast<std::uintptr_t>(bytes(tensor).data()) + tensor.bytes;
    // Clean pages of a file: nothing is lost.
    ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }

 private:
  Safetensors(std::string path, const io::File& file) : path_(std::move(path)), mapping_(file) {}

  void read_header() {
    const auto all = mapping_.bytes();
    MICA_CHECK(all.size() >= 8, file, path_, ": ", all.size(), " bytes; a safetensors file begins with 8");
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, all.data(), 8);
    MICA_CHECK(header_bytes <= max_header_bytes, limit, path_, ": a header of ", header_bytes,
               " bytes; allowed: ", max_header_bytes);
    MICA_CHECK(header_bytes <= all.size() - 8, file, path_, ": truncated: a header of ", header_bytes,
               " bytes in a file of ", all.size());
    const std::string_view header(reinterpret_cast<const char*>(all.data()) + 8,
                                  static_cast<std::size_t>(header_bytes));
    tensors_ = detail::parse_safetensors_header(header, path_);
    for (Safetensor& tensor : tensors_) place(tensor, 8 + header_bytes);
    refuse_overlaps();
  }

  void place(Safetensor& tensor, std::uint64_t data_offset) const {
    const auto named = [&](const auto&... parts) {
      return join(path_, ": tensor '", escaped(tensor.name), "': ", parts...);
    };
    std::optional<std::uint64_t> bytes = info(tensor.dtype).bytes;
    for (const std::uint64_t dim : tensor.shape) {
      if (bytes) bytes = checked_mul(*bytes, dim);
    }
    MICA_CHECK(bytes == tensor.bytes, file,
               named("shape ", tensor.shape_text(), " of ", info(tensor.dtype).name), " does not take the ",
               tensor.bytes, " bytes that the header gives it");
    const std::uint64_t data_bytes = mapping_.bytes().size() - data_offset;
    MICA_CHECK(tensor.offset <= data_bytes && tensor.bytes <= data_bytes - tensor.offset, file,
               named(tensor.bytes, " bytes at ", tensor.offset),
               " of the data reach past the end of the file, "
               "which has ",
               data_bytes, " bytes of data; it is truncated or damaged");
    tensor.offset += data_offset;
  }

  void refuse_overlaps() const {
    std::vector<const Safetensor*> order;
    for (const Safetensor& tensor : tensors_) {
      if (tensor.bytes > 0) order.push_back(&tensor);
    }
    std::sort(order.begin(), order.end(),
              [](const Safetensor* a, const Safetensor* b) { return a->offset < b->offset; });
    for (std::size_t i = 1; i < order.size(); ++i) {
      MICA_CHECK(order[i - 1]->bytes <= order[i]->offset - order[i - 1]->offset, file, path_, ": tensors '",
                 escaped(order[i - 1]->name), "' and '", escaped(order[i]->name), "' overlap");
    }
  }

  std::string path_;
  io::Mapping mapping_;
  std::vector<Safetensor> tensors_;
};

}  // namespace mica::convert
