// SPDX-License-Identifier: Apache-2.0
//
// A file on a server, read by ranges as a header reader needs them. Every answer is compared with its request
// and with the first answer, so that two versions of a file are never mixed.
//
//   bytes 0 .. first_bytes    first request: also tells the size, and what the file is recognised by
//   then as they are wanted   pieces of piece_bytes at most; nothing is kept once it was read
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/source.hpp"
#include "mica_tools/remote/client.hpp"
#include "mica_tools/remote/detail/head.hpp"
#include "mica_tools/remote/url.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::remote {

class Ranges final : public gguf::RangeReader {
 public:
  /// Asks for the first bytes. `missing`: the meaning of a missing file; may be empty. Raises as
  /// Client::get(), and failed for an answer that contradicts the question or itself, file for a page,
  /// unsupported for an encoded file or one without a size.
  Ranges(std::shared_ptr<Client> client, Url url, std::string_view missing)
      : client_(std::move(client)), name_(url.shown()), url_(std::move(url)) {
    begin_.resize(static_cast<std::size_t>(client_->options().first_bytes));
    begin_.resize(ask(0, begin_, missing));
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return file_.size; }  // of the file, in bytes

  /// Raises as the constructor, and file when the file changed since the first answer.
  void read_at(std::uint64_t offset, std::span<std::byte> to) const override {
    MICA_CHECK(offset <= size() && to.size() <= size() - offset, file, name_, ": truncated: ", size(),
               " bytes, ", to.size(), " wanted from byte ", offset);
    if (offset == 0 && to.size() >= begin_.size()) {
      std::copy(begin_.begin(), begin_.end(), to.begin());
      offset = begin_.size();
      to = to.subspan(begin_.size());
      begin_ = {};
    }
    const std::uint64_t piece = client_->options().piece_bytes;
    while (!to.empty()) {
      const std::size_t n =
          ask(offset, to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), piece))));
      offset += n;
      to = to.subspan(n);
    }
  }
  /// Three times the bytes read so far, from first_bytes to piece_bytes of the options.
  [[nodiscard]] std::uint64_t next_bytes(std::uint64_t had) const noexcept override {
    return std::min(std::max(3 * had, client_->options().first_bytes), client_->options().piece_bytes);
  }

 private:
  /// Fills `to` up to the end of the file, and returns the number of bytes.
  std::size_t ask(std::uint64_t first, std::span<std::byte> to, std::string_view missing = {}) const {
    detail::Identity file;
    Range range{name_, first, to, file_.condition(), missing, [&](const detail::Head& head) {
                  file = observe(head, first, to.size());
                  check_same(file);
                }};
    const std::size_t got = client_->get(url_, range);
    const std::uint64_t there = std::min<std::uint64_t>(to.size(), file.size - first);
    MICA_CHECK(got == there, failed, name_, ": the answer ends after ", got, " of ", there,
               " bytes, from byte ", first, "; try again later");
    file_ = std::move(file);
    return got;
  }

  /// The values of a header, after a check that it belongs to the requested bytes.
  [[nodiscard]] detail::Identity observe(const detail::Head& head, std::uint64_t first,
                                         std::size_t wanted) const {
    MICA_CHECK(!head.type.starts_with("text/html"), file, name_, ": the server sends a page (",
               escaped(head.type), "), not a file; is the link right?");
    MICA_CHECK(head.encoding.empty() || head.encoding == "identity", unsupported, name_,
               ": the server encodes the file (Content-Encoding: ", escaped(head.encoding),
               "), although the request forbids it; download the file and name that");
    const auto range = detail::ContentRange::parse(head.range);
    MICA_CHECK(range, failed, name_, ": the server sends a part without its place (Content-Range: '",
               escaped(head.range), "'; 'bytes ", first,
               "-LAST/SIZE' is needed); download the file and name that");
    MICA_CHECK(range->size, unsupported, name_,
               ": the server does not say how large the file is (Content-Range: '", escaped(head.range),
               "'); download the file and name that");
    const std::uint64_t last = std::min<std::uint64_t>(first + wanted, *range->size) - 1;
    MICA_CHECK(range->first == first && range->last == last, failed, name_, ": bytes ", first, " to ", last,
               " of ", *range->size, " were requested, the server sends ", range->first, " to ", range->last,
               "; download the file and name that");
    const std::uint64_t promised = last - first + 1;
    MICA_CHECK(head.length.empty() || head.length == std::to_string(promised), failed, name_,
               ": the server sends ", promised, " bytes by its Content-Range and ", escaped(head.length),
               " by its Content-Length; download the file and name that");
    return {*range->size, head.etag, head.modified};
  }
  void check_same(const detail::Identity& file) const {
    if (file_.size == 0) return;
    const auto text = [](const detail::Identity& f) {
      return join(f.size, " bytes, ",
                  f.etag.empty() ? f.modified.empty() ? "no tag" : escaped(f.modified) : escaped(f.etag));
    };
    MICA_CHECK(file.same_as(file_), file, name_, ": changed while it was read (", text(file_), " at first, ",
               text(file), " now); try again");
  }

  std::shared_ptr<Client> client_;
  std::string name_;
  mutable Url url_;                       // where the last bytes came from
  mutable detail::Identity file_;         // of size 0 until the first answer
  mutable std::vector<std::byte> begin_;  // the first bytes, until they were read
};

}  // namespace mica::remote
