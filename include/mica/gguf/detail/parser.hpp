// SPDX-License-Identifier: Apache-2.0
//
// The grammar of a GGUF header. Reads every pair and every tensor entry, checks what can be checked without
// looking at another one, and keeps places instead of copies. What entries say about each other is checked in
// header.hpp.
//
//   "GGUF" | version u32 | tensors u64 | pairs u64 | pair... | tensor entry... | padding | data
//   pair          key string | type u32 | value
//   tensor entry  name string | n_dims u32 | dims u64... | type u32 | offset u64 (in the data)
#pragma once

#include "mica/base/bits.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/gguf/span_reader.hpp"
#include "mica/gguf/tensor_info.hpp"

#include <vector>

namespace mica::gguf::detail {

/// More than any header that is honest: the largest vocabularies make headers of some 30 MB.
inline constexpr std::uint64_t max_header_bytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t max_pairs = 1 << 18;
inline constexpr std::uint64_t max_tensors = 1 << 16;
inline constexpr int max_nesting = 8;  // of arrays in arrays
inline constexpr std::size_t max_tensor_name =
    1024;  // bytes; the format's own limit is 64, some writers pass it

/// What a parser found. Tensor offsets still count from the beginning of the data.
struct Parsed {
  std::uint32_t version = 0;
  std::vector<MetadataEntry> entries;
  std::vector<TensorInfo> tensors;
};

class Parser {
 public:
  Parser(SpanReader& reader, format::Table formats) : reader_(reader), formats_(formats) {}

  /// Reads the header from its first byte to the last tensor entry. Raises; see Document.
  [[nodiscard]] Parsed parse() {
    Parsed parsed;
    parsed.version = version();
    const std::uint64_t tensors = count("tensors", 32, max_tensors);
    const std::uint64_t pairs = count("key-value pairs", 13, max_pairs);
    for (std::uint64_t i = 0; i < pairs; ++i) parsed.entries.push_back(pair());
    for (std::uint64_t i = 0; i < tensors; ++i) parsed.tensors.push_back(tensor());
    return parsed;
  }

 private:
  /// What to do about a file of another kind.
  static std::string_view remedy(std::string_view magic) {
    if (magic == "vers") return "if it is a pointer of Git LFS, fetch the file with git lfs pull";
    if (magic == "<!DO" || magic == "<!do" || magic == "<htm")
      return "this looks like a web page; download the model file itself";
    if (magic.starts_with("{\""))
      return "this looks like JSON, such as an error of a server; download the model file itself";
    if (magic == "lmgg" || magic == "tjgg" || magic == "fmgg")
      return "it is a file from before GGUF; convert the model again";
    return "of a folder with safetensors files mica convert makes a GGUF file";
  }
  std::uint32_t version() {
    const auto magic = reader_.take(4, "the magic number");
    const std::string_view text(reinterpret_cast<const char*>(magic.data()), magic.size());
    if (text != "GGUF") {
      reader_.refuse(ErrorCode::file, "not a GGUF file: the magic number is '", escaped(text),
                     "', expected 'GGUF'; ", remedy(text));
    }
    const auto version = reader_.read<std::uint32_t>("the version");
    if (version != 0 && (version & 0xFFFFu) == 0) {
      reader_.refuse(ErrorCode::unsupported, "a big-endian GGUF file (version ", version >> 24,
                     " in big-endian bytes); only little-endian files are read");
    }
    if (version != 2 && version != 3) {
      reader_.refuse(ErrorCode::unsupported, "GGUF version ", version, "; versions 2 and 3 are read",
                     version == 1 ? "; convert the model again to get a newer file" : "");
    }
    return version;
  }
  std::uint64_t count(std::string_view what, std::uint64_t min_bytes, std::uint64_t allowed) {
    const auto n = reader_.read<std::uint64_t>(what);
    if (n > reader_.remaining() / min_bytes) {
      reader_.refuse(ErrorCode::file, "truncated or damaged: the header announces ", n, " ", what, ", of ",
                     min_bytes, " bytes or more each, and ", reader_.remaining(), " bytes remain");
    }
    if (n > allowed) reader_.refuse(ErrorCode::limit, n, " ", what, "; ", allowed, " are allowed");
    return n;
  }
  MetadataEntry pair() {
    reader_.enter("");
    const std::string_view key = reader_.text("a key");
    const auto key_at = reader_.offset() - key.size();
    const std::size_t key_bytes = key.size();
    if (key_bytes == 0)
      reader_.refuse(ErrorCode::file, "a key is empty; 1 to ", UINT16_MAX, " bytes are allowed");
    reader_.enter(join("key '", escaped(key), "'"));
    if (key_bytes > UINT16_MAX) {
      reader_.refuse(ErrorCode::file, "the key is ", key_bytes, " bytes long; ", UINT16_MAX, " are allowed");
    }
    const ValueType type = value_type();
    const std::uint64_t value_at = reader_.offset();
    skip_value(type, 0);
    if (reader_.offset() > max_header_bytes) {
      reader_.refuse(ErrorCode::limit, "the header has more than ", max_header_bytes, " bytes, the maximum");
    }
    return {static_cast<std::uint32_t>(key_at), static_cast<std::uint32_t>(value_at),
            static_cast<std::uint32_t>(reader_.offset() - value_at), static_cast<std::uint16_t>(key_bytes),
            type};
  }
  ValueType value_type() {
    const auto type = reader_.read<std::uint32_t>("the type of the value");
    if (type >= value_types) {
      reader_.refuse(ErrorCode::file, "the value is of type ", type, "; types 0 to ", value_types - 1,
                     " are known");
    }
    return static_cast<ValueType>(type);
  }
  void skip_value(ValueType type, int depth) {
    if (type == ValueType::string) {
      static_cast<void>(reader_.text("a string"));
    } else if (type == ValueType::array) {
      skip_array(depth);
    } else {
      const auto bytes = reader_.take(scalar_bytes(type), "the value");
      if (type == ValueType::boolean) check_bools(bytes);
    }
  }
  void skip_array(int depth) {
    if (depth >= max_nesting) {
      reader_.refuse(ErrorCode::limit, "arrays in arrays go more than ", max_nesting, " levels deep");
    }
    const ValueType type = value_type();
    const auto count = reader_.read<std::uint64_t>("the size of an array");
    const std::uint64_t min_bytes = type == ValueType::string  ? 8
                                    : type == ValueType::array ? 12
                                                               : scalar_bytes(type);
    if (count > reader_.remaining() / min_bytes) {
      reader_.refuse(ErrorCode::file, "truncated or damaged: an array of ", count, " ", name(type),
                     " reaches past the end of ", "the file, ", reader_.remaining(), " bytes remain");
    }
    if (scalar_bytes(type) != 0) {
      const auto bytes = reader_.take(count * min_bytes, "an array");
      if (type == ValueType::boolean) check_bools(bytes);
      return;
    }
    for (std::uint64_t i = 0; i < count; ++i) skip_value(type, depth + 1);
  }
  void check_bools(std::span<const std::byte> bytes) const {
    for (const std::byte b : bytes) {
      if (b > std::byte{1})
        reader_.refuse(ErrorCode::file, "a bool is ", static_cast<int>(b), "; 0 and 1 are allowed");
    }
  }
  TensorInfo tensor() {
    reader_.enter("");
    TensorInfo tensor;
    tensor.name = reader_.text("the name of a tensor");
    reader_.enter(join("tensor '", escaped(tensor.name), "'"));
    if (tensor.name.size() > max_tensor_name) {
      reader_.refuse(ErrorCode::file, "the name is ", tensor.name.size(), " bytes long; ", max_tensor_name,
                     " are allowed");
    }
    read_shape(tensor);
    const format::Id type{reader_.read<std::uint32_t>("the type")};
    const format::Info* const format = formats_.find(type);
    if (format == nullptr)
      reader_.refuse(ErrorCode::unsupported, "type ", type.text(),
                     " is not known; known: ", formats_.names());
    tensor.format = *format;
    tensor.offset = reader_.read<std::uint64_t>("the offset");
    size_up(tensor);
    return tensor;
  }
  void read_shape(TensorInfo& tensor) {
    const auto n_dims = reader_.read<std::uint32_t>("the number of dimensions");
    if (n_dims < 1 || n_dims > TensorInfo::max_dims) {
      reader_.refuse(ErrorCode::file, n_dims, " dimensions; 1 to ", TensorInfo::max_dims, " are allowed");
    }
    tensor.n_dims = static_cast<std::uint8_t>(n_dims);
    std::uint64_t elements = 1;
    for (std::size_t d = 0; d < n_dims; ++d) tensor.dims[d] = reader_.read<std::uint64_t>("a dimension");
    for (const std::uint64_t dim : tensor.dims) {
      const auto product = checked_mul(elements, dim);
      if (!product)
        reader_.refuse(ErrorCode::file, "the shape ", tensor.shape(), " has more values than 64 bits count");
      elements = *product;
    }
  }
  /// Sets the bytes of a tensor whose shape and format are set; 0 when a dimension is 0.
  void size_up(TensorInfo& tensor) const {
    const format::Info& format = tensor.format;
    if (tensor.width() % format.block_size != 0) {
      reader_.refuse(ErrorCode::file, "shape ", tensor.shape(), ": a row of ", tensor.width(),
                     " values is not a multiple of ", format.name, "'s block of ", format.block_size);
    }
    const auto bytes = checked_mul(tensor.elements() / format.block_size, format.block_bytes);
    if (!bytes)
      reader_.refuse(ErrorCode::file, "shape ", tensor.shape(), " takes more bytes than 64 bits count");
    tensor.bytes = *bytes;
  }

  SpanReader& reader_;
  format::Table formats_;
};

}  // namespace mica::gguf::detail
