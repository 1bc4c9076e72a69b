// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an input are a program that builds a nearly valid GGUF file: its parts are whole, and their
// numbers are wrong now and then. One byte chooses the next part.
//
//   key      a name, a type, a value of that type       tensor   a name, dimensions, a format, an offset
//   lie      changes the counts of the header           end      the data, of a size that follows

#include "fuzz/gguf_checks.hpp"
#include "fuzz/input.hpp"
#include "mica/gguf/detail/append.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace mica::fuzz::gguf_structure_fuzz {
namespace {

class FileProgram {
 public:
  explicit FileProgram(Input input) : input_(input) {}

  [[nodiscard]] std::vector<std::byte> run() {
    bool ends = false;
    while (!ends && !input_.empty()) {
      switch (input_.below(8)) {
        case 0:
        case 1:
        case 2:
          add_key();
          break;
        case 3:
        case 4:
        case 5:
          add_tensor();
          break;
        case 6:
          (input_.flag() ? keys_ : tensors_) += static_cast<std::uint64_t>(input_.number<std::int8_t>());
          break;
        default:
          ends = true;
      }
    }
    return file();
  }

 private:
  static constexpr std::array<std::string_view, 8> key_names = {"general.alignment",
                                                                "split.count",
                                                                "split.no",
                                                                "split.tensors.count",
                                                                "a",
                                                                "mica.packed.version",
                                                                "b",
                                                                "tokenizer.ggml.tokens"};

  void add_key() {
    const std::size_t name = input_.below(key_names.size() + 1);
    gguf::append_text(key_bytes_, name < key_names.size() ? key_names[name] : input_.text());
    add_typed_value(0);
    ++keys_;
  }

  void add_typed_value(int depth) {
    const std::uint32_t type = static_cast<std::uint32_t>(input_.below(14));  // 13 is none
    gguf::append_number(key_bytes_, type);
    add_value(type, depth);
  }

  void add_value(std::uint32_t type, int depth) {
    static constexpr std::array<std::size_t, 13> bytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == 8) return gguf::append_text(key_bytes_, input_.text());
    if (type == 9) return add_array(depth);
    const std::size_t n = type < bytes.size() ? bytes[type] : 4;
    const auto value = input_.flag() ? std::uint64_t{input_.byte()} : input_.number<std::uint64_t>();
    const auto all = std::as_bytes(std::span(&value, 1));
    key_bytes_.insert(key_bytes_.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n));
  }

  void add_array(int depth) {
    const std::uint32_t type = depth < 12 ? static_cast<std::uint32_t>(input_.below(14)) : 0;
    const std::size_t count = input_.below(type == 9 ? 3 : 20);
    gguf::append_number(key_bytes_, type);
    gguf::append_number(key_bytes_, announced(count));
    for (std::size_t i = 0; i < count; ++i) add_value(type, depth + 1);
  }

  /// The number, or rarely another one.
  [[nodiscard]] std::uint64_t announced(std::uint64_t truth) {
    return input_.below(32) == 31 ? input_.number<std::uint64_t>() : truth;
  }

  void add_tensor() {
    gguf::append_text(tensor_bytes_,
                      input_.flag() ? join("t", input_.below(20)) : std::string(input_.text()));
    const auto format = *(format::known.begin() + input_.below(format::known.size()));
    const std::uint32_t n_dims = static_cast<std::uint32_t>(1 + input_.below(5));
    gguf::append_number(tensor_bytes_, n_dims);
    std::uint64_t bytes = input_.below(4) / format.block_size * format.block_bytes;
    for (std::uint32_t d = 0; d < n_dims; ++d) {
      const std::uint64_t dim = announced((d == 0 ? format.block_size : 1) * input_.below(4));
      gguf::append_number(tensor_bytes_, dim);
      bytes = d == 0 ? dim / format.block_size * format.block_bytes : bytes * dim;
    }
    gguf::append_number(tensor_bytes_, static_cast<std::uint32_t>(announced(format.id.value)));
    gguf::append_number(tensor_bytes_, announced(data_));
    data_ = (data_ + bytes + 31) / 32 * 32;
    ++tensors_;
  }

  [[nodiscard]] std::vector<std::byte> file() {
    std::vector<std::byte> out;
    for (const char c : std::string_view("GGUF")) out.push_back(static_cast<std::byte>(c));
    gguf::append_number(out, std::uint32_t{3});
    gguf::append_number(out, tensors_);
    gguf::append_number(out, keys_);
    out.insert(out.end(), key_bytes_.begin(), key_bytes_.end());
    out.insert(out.end(), tensor_bytes_.begin(), tensor_bytes_.end());
    out.resize((out.size() + 31) / 32 * 32 + std::min<std::uint64_t>(data_, 1 << 16));
    out.resize(out.size() - std::min(out.size(), input_.below(256)));
    return out;
  }

  Input input_;
  std::vector<std::byte> key_bytes_, tensor_bytes_;
  std::uint64_t keys_ = 0, tensors_ = 0, data_ = 0;
};

}  // namespace

MICA_FUZZ_TARGET(gguf_structure) {
  const auto file = FileProgram(Input(data, size)).run();
  open_and_check({file.data(), file.size()});
  return 0;
}

}  // namespace mica::fuzz::gguf_structure_fuzz
