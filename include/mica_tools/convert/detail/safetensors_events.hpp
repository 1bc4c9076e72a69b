// SPDX-License-Identifier: Apache-2.0
//
// The header of a safetensors file as its JSON events arrive: every event is either one that the format has
// at that place, or the end. Nothing is kept but the tensors.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/safetensor.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert::detail {

/// Takes the events of nlohmann's parser.
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

}  // namespace mica::convert::detail
