// SPDX-License-Identifier: Apache-2.0
//
// A model of which only the header exists: it can be planned, and its weights cannot be read.
#pragma once

#include "mica/gguf/reader.hpp"
#include "mica/gguf/source.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::gguf {

/// A header, and zeros after it.
class HeaderOnly final : public RangeReader {
 public:
  /// header: that of a GGUF file, as Writer::header() returns it.
  explicit HeaderOnly(std::vector<std::byte> header) : header_(std::move(header)) {}

  /// Beyond the header there are zeros, without an end.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const override {
    const auto from =
        std::span(header_).subspan(static_cast<std::size_t>(std::min<std::uint64_t>(offset, header_.size())));
    const std::size_t n = std::min(from.size(), to.size());
    std::fill(std::copy_n(from.begin(), n, to.begin()), to.end(), std::byte{0});
  }

 private:
  std::vector<std::byte> header_;
};

/// The model that a writer would write.
[[nodiscard]] inline Document header_only(std::string name, const Writer& writer) {
  return open(Source(std::move(name), writer.size_bytes(), std::make_unique<HeaderOnly>(writer.header())));
}

}  // namespace mica::gguf
