// SPDX-License-Identifier: Apache-2.0
//
// A packed directory whose manifest and files were changed; the manifest then has the checksum of what it is.
// Refused by an error, or files beside the manifest alone, tensors that lie in them and apart, and bytes of
// their checksums.

#include "fuzz/gguf_edits.hpp"
#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica_tools/pack/pack.hpp"
#include "mica_tools/pack/verify.hpp"
#include "model/tiny_model.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mica::fuzz::packed_fuzz {
namespace {

/// The files of a directory that was packed, by name.
std::map<std::string, std::vector<std::byte>> packed_files(const Folder& folder) {
  const test::TinyModel tiny(test::Recipe{
      .layers = 1, .width = 32, .heads = 2, .kv_heads = 1, .head_dim = 16, .ff_width = 32, .n_vocab = 16});
  folder.write("tiny.gguf", text_of_bytes(tiny.bytes()));
  const gguf::Document document = gguf::open(folder.path("tiny.gguf"));
  pack::Plan plan = pack::make_plan(document);
  static_cast<void>(pack::pack(document, plan, folder.path("packed"), alloc::Aligned()));
  std::map<std::string, std::vector<std::byte>> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("packed"))) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = bytes_of_text(text);
    files[entry.path().filename().string()].assign(bytes.begin(), bytes.end());
  }
  return files;
}

void change(std::vector<std::byte>& manifest, Input& input) {
  const gguf::Header header = gguf::detail::parse_header(gguf::Source("manifest", manifest), format::known);
  if (input.below(4) == 3) {
    change_tensor(manifest, header.tensors[input.below(header.tensors.size())], input);
  } else {
    const std::size_t packed_keys = 11,
                      first = header.metadata.size() - std::min(header.metadata.size(), packed_keys);
    const bool own = input.below(4) != 0;
    change_value(manifest, header.metadata,
                 own ? first + input.below(packed_keys) : input.below(header.metadata.size()), input);
  }
}

void check(const gguf::Document& document) {
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    const gguf::Source& source = document.source(tensor);
    require(tensor.parts > 0 &&
                tensor.offset + (tensor.parts - 1) * tensor.stride + tensor.part_bytes() <= source.size(),
            "a tensor lies in its file");
    const std::string name = std::filesystem::path(source.path()).filename().string();
    require(std::filesystem::path(source.path()).parent_path() == document.path(),
            "files are in the directory: " + name);
  }
  const auto parts = gguf::parts_in_order(document.tensors());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    require(parts[i - 1].tensor->source != parts[i].tensor->source ||
                parts[i].offset - parts[i - 1].offset >= parts[i - 1].tensor->part_bytes(),
            "tensors are apart");
  }
  accepted([&] { pack::verify(document, alloc::Aligned()); });
}

void run(Input input) {
  static const Folder folder;
  static const auto files = packed_files(folder);
  auto changed = files;
  std::vector<std::byte>& manifest = changed["manifest.gguf"];
  if (!accepted([&] {
        for (std::size_t n = input.below(5); n > 0; --n) change(manifest, input);
      }))
    return;
  for (std::size_t n = input.below(3); n > 0; --n) {  // other files, or the manifest beside its header
    auto& bytes =
        std::next(changed.begin(), static_cast<std::ptrdiff_t>(input.below(changed.size())))->second;
    if (!bytes.empty())
      bytes[input.below(std::min<std::size_t>(bytes.size(), 1 << 16))] ^=
          static_cast<std::byte>(input.byte());
    if (input.below(8) == 7) bytes.resize(bytes.size() - std::min(bytes.size(), input.below(256)));
  }
  if (manifest.size() > 8 && input.below(16) != 15) {
    const std::uint64_t sum = io::checksum(std::span(manifest).first(manifest.size() - 8));
    std::memcpy(manifest.data() + manifest.size() - 8, &sum, sizeof sum);
  }
  std::size_t size = 0;
  for (const auto& [name, bytes] : changed) {
    folder.write("packed/" + name, text_of_bytes(bytes));
    size += bytes.size();
  }
  accepted_within(size, [&] { check(gguf::open(folder.path("packed"))); });
}

}  // namespace

MICA_FUZZ_TARGET(packed) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::packed_fuzz
