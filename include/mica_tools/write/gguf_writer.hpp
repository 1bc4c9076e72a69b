// SPDX-License-Identifier: Apache-2.0
//
// Writes GGUF files of version 3. Metadata is kept in memory until then; the numbers of tensors are not: they
// are spans of the caller's, or come from a function that hands them over piece by piece.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/gguf/tensor_info.hpp"
#include "mica/io/atomic_file.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::gguf {

/// Takes the next bytes of a file.
using Sink = std::function<void(std::span<const std::byte>)>;
/// Hands all bytes of a tensor to a sink, in order, in as many pieces as it likes.
using Fill = std::function<void(const Sink&)>;

namespace detail {

/// The value type that a C++ number is written as.
template <Number T>
[[nodiscard]] constexpr ValueType value_type_of() noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return ValueType::boolean;
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) <= 8, "mica::gguf::Writer: GGUF has no floating-point type wider than double");
    return sizeof(T) == 4 ? ValueType::f32 : ValueType::f64;
  } else {
    constexpr ValueType wholes[2][4] = {{ValueType::u8, ValueType::u16, ValueType::u32, ValueType::u64},
                                        {ValueType::i8, ValueType::i16, ValueType::i32, ValueType::i64}};
    return wholes[std::is_signed_v<T> ? 1 : 0][std::countr_zero(sizeof(T))];
  }
}

inline void append_type(std::vector<std::byte>& out, ValueType type) {
  append_number(out, static_cast<std::uint32_t>(type));
}

}  // namespace detail

/// A GGUF file in the making: pairs and tensors in the order in which they are added. Not thread-safe.
class Writer {
 public:
  /// Requires a power of two from 8. One that is not the format's usual 32 is written as general.alignment.
  explicit Writer(std::uint32_t alignment = 32) : Writer(format::known, alignment) {}
  /// For tensors in the formats of that table.
  explicit Writer(format::Table formats, std::uint32_t alignment = 32)
      : formats_(formats), alignment_(alignment) {
    MICA_CHECK(std::has_single_bit(alignment) && alignment >= 8, usage, "alignment ", alignment,
               "; a power of two from 8 is needed");
    if (alignment == 32) return;
    std::vector<std::byte> value;
    detail::append_type(value, ValueType::u32);
    append_number(value, alignment);
    pairs_.push_back({"general.alignment", std::move(value)});
  }

  /// Sets a key to a number, bool or string, in the type it has here; a key set again keeps its place.
  /// Raises ErrorCode::usage for general.alignment, which is the constructor's, and for a key longer than
  /// 65,535 bytes.
  template <Number T>
  void set(std::string_view key, T value) {
    std::vector<std::byte> bytes;
    detail::append_type(bytes, detail::value_type_of<T>());
    append_number(bytes, value);
    put(key, std::move(bytes));
  }
  void set(std::string_view key, std::string_view value) {
    std::vector<std::byte> bytes;
    detail::append_type(bytes, ValueType::string);
    append_text(bytes, value);
    put(key, std::move(bytes));
  }
  /// The same for an array: any sized range of numbers, bools or strings.
  template <class Range>
  void set_array(std::string_view key, const Range& values) {
    using T = std::iter_value_t<decltype(std::begin(values))>;
    constexpr bool texts = std::is_convertible_v<T, std::string_view>;
    std::vector<std::byte> bytes;
    detail::append_type(bytes, ValueType::array);
    if constexpr (texts) {
      detail::append_type(bytes, ValueType::string);
    } else {
      detail::append_type(bytes, detail::value_type_of<T>());
    }
    append_number(bytes, static_cast<std::uint64_t>(std::size(values)));
    for (const auto& value : values) {
      if constexpr (texts) {
        append_text(bytes, value);
      } else {
        append_number(bytes, static_cast<T>(value));
      }
    }
    put(key, std::move(bytes));
  }
  /// Copies a value, or everything but general.alignment, from another file.
  void copy(std::string_view key, const Value& value) {
    std::vector<std::byte> bytes;
    detail::append_type(bytes, value.type());
    bytes.insert(bytes.end(), value.bytes().begin(), value.bytes().end());
    put(key, std::move(bytes));
  }
  void copy(const Metadata& metadata) {
    for (std::size_t i = 0; i < metadata.size(); ++i) {
      if (metadata.key(i) != "general.alignment") copy(metadata.key(i), metadata.value(i));
    }
  }

  /// Adds a tensor whose bytes stay where they are until the file is written. The first of `dims` varies
  /// fastest.
  /// Raises ErrorCode::usage when there are not 1..4 dimensions, rows are no multiple of a block, or the size
  /// is wrong.
  void add(std::string name, format::Id format, std::span<const std::uint64_t> dims,
           std::span<const std::byte> bytes) {
    TensorInfo info = describe(std::move(name), format, dims);
    MICA_CHECK(bytes.size() == info.bytes, usage, "tensor '", escaped(info.name), "' of shape ", info.shape(),
               " takes ", info.bytes, " bytes; ", bytes.size(), " were given");
    append(std::move(info), [bytes](const Sink& sink) { sink(bytes); });
  }
  /// Adds a tensor whose bytes come from a function, called once for each time the file is written.
  void add(std::string name, format::Id format, std::span<const std::uint64_t> dims, Fill fill) {
    append(describe(std::move(name), format, dims), std::move(fill));
  }
  void add(std::string name, format::Id format, std::initializer_list<std::uint64_t> dims, auto&& data) {
    add(std::move(name), format, std::span(dims.begin(), dims.size()), std::forward<decltype(data)>(data));
  }

  /// Writes the file whole or not at all. Raises ErrorCode::usage when a tensor was added twice or a function
  /// handed over the wrong number of bytes, ErrorCode::file or failed as io::AtomicFile does.
  void write(std::string path) const {
    io::write_atomically(std::move(path), [this](io::AtomicFile& out) {
      emit([&out](std::span<const std::byte> bytes) { out.write(bytes); });
    });
  }
  /// The same file in memory.
  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> out;
    emit([&out](std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); });
    return out;
  }
  /// What stands before the data.
  [[nodiscard]] std::vector<std::byte> header() const {
    std::vector<std::byte> out;
    for (const char c : {'G', 'G', 'U', 'F'}) append_number(out, c);
    append_number(out, std::uint32_t{3});
    append_number(out, std::uint64_t{tensors_.size()});
    append_number(out, std::uint64_t{pairs_.size()});
    for (const Pair& pair : pairs_) {
      append_text(out, pair.key);
      out.insert(out.end(), pair.value.begin(), pair.value.end());
    }
    for (const auto& [info, fill] : tensors_) {
      append_text(out, info.name);
      append_number(out, std::uint32_t{info.n_dims});
      for (std::size_t d = 0; d < info.n_dims; ++d) append_number(out, info.dims[d]);
      append_number(out, info.format.id.value);
      append_number(out, info.offset);
    }
    out.resize(round_up(out.size(), std::size_t{alignment_}));
    return out;
  }
  /// How large it is.
  [[nodiscard]] std::uint64_t size_bytes() const { return header().size() + data_bytes_; }

 private:
  struct Pair {
    std::string key;
    std::vector<std::byte> value;  // type and value, as in the file
  };
  struct Tensor {
    TensorInfo info;
    Fill fill;
  };

  void put(std::string_view key, std::vector<std::byte> value) {
    MICA_CHECK(key != "general.alignment", usage,
               "key 'general.alignment' is set by the constructor of gguf::Writer");
    MICA_CHECK(key.size() <= UINT16_MAX, usage, "key '", escaped(key), "' is ", key.size(), " bytes long; ",
               UINT16_MAX, " are allowed");
    const auto at =
        std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.key == key; });
    if (at == pairs_.end()) {
      pairs_.push_back({std::string(key), std::move(value)});
    } else {
      at->value = std::move(value);
    }
  }

  [[nodiscard]] TensorInfo describe(std::string name, format::Id format,
                                    std::span<const std::uint64_t> dims) const {
    const auto check = [&](bool good, const auto&... parts) {
      MICA_CHECK(good, usage, "tensor '", escaped(name), "': ", parts...);
    };
    check(!dims.empty() && dims.size() <= TensorInfo::max_dims, dims.size(),
          " dimensions; 1 to 4 are allowed");
    TensorInfo info;
    const format::Info* const known = formats_.find(format);
    check(known != nullptr, "format ", format.text(), " is not known; known: ", formats_.names());
    info.format = *known;
    info.n_dims = static_cast<std::uint8_t>(dims.size());
    std::copy(dims.begin(), dims.end(), info.dims.begin());
    check(info.width() % info.format.block_size == 0, "rows of ", info.width(),
          " values are not a multiple of ", info.format.name, "'s block of ", info.format.block_size);
    std::optional<std::uint64_t> bytes = info.width() / info.format.block_size;
    for (const std::uint64_t factor :
         {std::uint64_t{info.format.block_bytes}, info.dims[1], info.dims[2], info.dims[3]}) {
      if (bytes) bytes = checked_mul(*bytes, factor);
    }
    check(bytes && *bytes < UINT64_MAX / 4 - data_bytes_, "shape ", info.shape(), " is larger than any file");
    info.bytes = *bytes;
    info.name = std::move(name);
    return info;
  }
  void append(TensorInfo info, Fill fill) {
    info.offset = data_bytes_;
    data_bytes_ = round_up(data_bytes_ + info.bytes, std::uint64_t{alignment_});
    tensors_.push_back({std::move(info), std::move(fill)});
  }
  void refuse_duplicates() const {
    const detail::NameList names{&tensors_, [](const void* list, std::size_t i) -> std::string_view {
                                   return (*static_cast<const decltype(tensors_)*>(list))[i].info.name;
                                 }};
    const detail::NameIndex index(tensors_.size(), names);
    const std::uint32_t* const twice = index.duplicate(names);
    MICA_CHECK(twice == nullptr, usage, "tensor '", escaped(names[twice[0]]), "' was added twice");
  }
  void emit(const Sink& sink) const {
    refuse_duplicates();
    sink(header());
    const std::vector<std::byte> padding(alignment_);
    for (const auto& [info, fill] : tensors_) {
      std::uint64_t given = 0;
      fill([&](std::span<const std::byte> bytes) {
        given += bytes.size();
        sink(bytes);
      });
      MICA_CHECK(given == info.bytes, usage, "tensor '", escaped(info.name), "' of shape ", info.shape(),
                 " takes ", info.bytes, " bytes; ", given, " were handed over");
      sink(std::span(padding).first(round_up(given, std::uint64_t{alignment_}) - given));
    }
  }

  format::Table formats_;
  std::uint32_t alignment_;
  std::vector<Pair> pairs_;
  std::vector<Tensor> tensors_;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace mica::gguf
