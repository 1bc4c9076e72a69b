// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a safetensors file. The first byte chooses whether the length of the header is that of the
// input or the right one, so that searches come past it: the header then ends at the first line end.

#include "fuzz/input.hpp"
#include "mica_tools/convert/safetensors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mica::fuzz::safetensors_fuzz {
namespace {

std::string file_of(Input input) {
  if (!input.flag()) return std::string(input.rest());
  const std::uint64_t header = std::min(input.rest().find('\n'), input.rest().size());
  std::string out(reinterpret_cast<const char*>(&header), sizeof header);
  return out.append(input.rest());
}

void check(const convert::Safetensors& file, std::size_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> spans;
  for (const convert::Safetensor& tensor : file.tensors()) {
    require(tensor.offset >= 8 && tensor.offset <= size && tensor.bytes <= size - tensor.offset,
            "a tensor lies in its file");
    unsigned __int128 bytes = convert::info(tensor.dtype).bytes;
    bool empty = false;
    for (const std::uint64_t dim : tensor.shape) empty = empty || dim == 0;
    for (const std::uint64_t dim : tensor.shape) bytes *= empty ? 0 : dim;
    require(bytes == tensor.bytes, "a tensor has the bytes of its shape");
    const auto data = file.bytes(tensor);
    if (!data.empty()) spans.emplace_back(tensor.offset, tensor.bytes);
    static_cast<void>(std::count(data.begin(), data.end(), std::byte{0}));
    if (!data.empty()) file.release(tensor);
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i)
    require(spans[i].first - spans[i - 1].first >= spans[i - 1].second, "tensors are apart");
}

}  // namespace

MICA_FUZZ_TARGET(safetensors) {
  static const Folder folder;
  const std::string bytes = file_of(Input(data, size));
  const std::string path = folder.write("model.safetensors", bytes);
  accepted([&] { check(convert::Safetensors::open(path), bytes.size()); });
  return 0;
}

}  // namespace mica::fuzz::safetensors_fuzz
