// SPDX-License-Identifier: Apache-2.0
//
// Reads one safetensors file. Its header is taken as a stream of events, so that it costs what it describes;
// the numbers stay in the mapped file.
//
//   | header length u64 | JSON {"name": {"dtype", "shape", "data_offsets": [first, end]}, ...} | data |
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/io/file.hpp"
#include "mica/io/map.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/safetensor.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <sys/mman.h>
#include <unistd.h>

namespace mica::convert {

namespace detail {

/// The header as the events of nlohmann's parser arrive: every event is either one that the format has at
/// that place, or the end. Nothing is kept but the tensors.
class SafetensorsEvents {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  static constexpr std::size_t max_tensors = std::size_t{1} << 20;

  explicit SafetensorsEvents(const std::string& path) : path_(path) {}

  bool start_object(std::size_t) {
    if (place_ == Place::outside) return go(Place::names);
    if (place_ == Place::entry) return go(metadata_ ? Place::metadata : Place::fields);
    unexpected("an object");
  }

  bool key(string_t& name) {
    if (place_ == Place::names) {
      metadata_ = name == "__metadata__";
      begin_entry(std::move(name));
      return go(Place::entry);
    }
    if (place_ == Place::metadata) return true;
    if (place_ != Place::fields) unexpected("a key");
    if (name == "dtype") return go(Place::dtype);
    if (name == "shape") return go(Place::shape);
    if (name == "data_offsets") return go(Place::offsets);
    raise(ErrorCode::file, here(), ": key '", escaped(name), "'; known: dtype, shape, data_offsets");
  }

  bool end_object() {
    if (place_ == Place::names) return go(Place::outside);
    if (place_ == Place::fields) end_entry();
    return go(Place::names);
  }

  bool start_array(std::size_t) {
    if (std::exchange(array_, true) || (place_ != Place::shape && place_ != Place::offsets))
      unexpected("an array");
    return true;
  }

  bool end_array() {
    array_ = false;
    (place_ == Place::shape ? has_shape_ : has_offsets_) = true;
    return go(Place::fields);
  }

  bool number_unsigned(number_unsigned_t value) {
    if (!array_) unexpected("a number");
    auto& numbers = place_ == Place::shape ? tensor_.shape : offsets_;
    const std::size_t max = place_ == Place::shape ? Safetensor::max_dims : 2;
    MICA_CHECK(numbers.size() < max, file, here(), ": more than ", max,
               place_ == Place::shape ? " dimensions" : " data_offsets");
    numbers.push_back(value);
    return true;
  }

  bool string(string_t& value) {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::dtype) unexpected("a string");
    const auto found = find_dtype(value);
    MICA_CHECK(found, unsupported, here(), ": element type '", escaped(value), "' is not known here");
    tensor_.dtype = found->dtype;
    has_dtype_ = true;
    return go(Place::fields);
  }

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("a bool"); }
  bool number_integer(number_integer_t) { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) { unexpected("a fraction"); }
  bool binary(binary_t&) { unexpected("bytes"); }

  bool parse_error(std::size_t byte, const std::string& token, const Json::exception&) {
    raise(ErrorCode::file, here(), ": the header is not JSON: something is wrong before its byte ", byte,
          ", at ", escaped(token, 40));
  }

  [[nodiscard]] std::vector<Safetensor> take() { return std::move(tensors_); }

 private:
  enum class Place : std::uint8_t { outside, names, entry, metadata, fields, dtype, shape, offsets };

  bool go(Place place) {
    place_ = place;
    return true;
  }

  [[nodiscard]] std::string here() const {
    if (place_ == Place::outside || place_ == Place::names) return join(path_, ": header");
    return join(path_, ": tensor '", escaped(tensor_.name), "'");
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    raise(ErrorCode::file, here(), ": ", what, " stands where a safetensors header has none");
  }

  void begin_entry(std::string name) {
    tensor_ = {};
    tensor_.name = std::move(name);
    offsets_.clear();
    has_dtype_ = has_shape_ = has_offsets_ = false;
    MICA_CHECK(names_.insert(tensor_.name).second, file, path_, ": tensor '", escaped(tensor_.name),
               "' appears twice");
    MICA_CHECK(names_.size() <= max_tensors, limit, path_, ": more than ", max_tensors, " tensors");
  }

  void end_entry() {
    MICA_CHECK(has_dtype_ && has_shape_ && has_offsets_ && offsets_.size() == 2, file, here(),
               ": needed are dtype, shape and two data_offsets");
    MICA_CHECK(offsets_[0] <= offsets_[1], file, here(), ": data_offsets ", offsets_[0], " and ", offsets_[1],
               " go backwards");
    tensor_.offset = offsets_[0];
    tensor_.bytes = offsets_[1] - offsets_[0];
    tensors_.push_back(std::move(tensor_));
  }

  const std::string& path_;
  Place place_ = Place::outside;
  bool metadata_ = false;
  bool array_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  Safetensor tensor_;
  std::vector<std::uint64_t> offsets_;
  std::set<std::string> names_;
  std::vector<Safetensor> tensors_;
};

/// The tensors of a header; offsets are those of the data.
[[nodiscard]] inline std::vector<Safetensor> parse_safetensors_header(std::string_view header,
                                                                      const std::string& path) {
  SafetensorsEvents events(path);
  Json::sax_parse(header, &events);
  return events.take();
}

}  // namespace detail

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
  /// In the order of the header.
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
    MICA_CHECK(header_bytes > 0, file, path_, ": the header is empty; a JSON object is needed");
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
               " of the data reach past the end of the file, which has ", data_bytes,
               " bytes of data; it is truncated or damaged");
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
