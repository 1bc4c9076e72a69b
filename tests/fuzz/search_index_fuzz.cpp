// SPDX-License-Identifier: Apache-2.0
//
// A search index with the checksums of what it is: its rows and its description are two parts of the input.
// Refused by an error, or passages within their files and as many rows.

#include "fuzz/heap.hpp"
#include "fuzz/input.hpp"
#include "mica/io/checksum.hpp"
#include "mica_tools/search/index_reader.hpp"
#include "mica_tools/search/index_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fuzz::search_index_fuzz {
namespace {

template <class Part>
std::string_view sealed(Part& part) {
  part.sum = io::checksum(bytes_of(&part, 1).first(sizeof part - sizeof part.sum));
  return text_of_bytes(bytes_of(&part, 1));
}

/// A description as an index has it, from small numbers.
std::vector<std::byte> description_of(Input& input, std::uint64_t& passages) {
  search::IndexInfo info{
      .model = 7, .arch = "bert", .pooling = "mean", .prefix = std::string(input.text(input.below(9)))};
  info.passage_tokens = input.byte();
  info.width = input.below(70);
  info.format = input.flag() ? format::F32::id : format::Q8_0::id;
  std::vector<search::IndexedFile> files(input.below(4));
  for (search::IndexedFile& file : files) {
    file.state.path = std::string(input.text());
    file.state.size = input.flag() ? input.byte() : input.number<std::uint64_t>();
    file.passages.resize(input.below(4));
    for (search::Passage& passage : file.passages) {
      passage.offset = input.flag() ? input.byte() : input.number<std::uint64_t>();
      passage.bytes = input.byte();
    }
    passages += file.passages.size();
  }
  return search::detail::describe_index(info, files);
}

std::string index_of(Input input) {
  search::detail::IndexHead head;
  search::detail::IndexTail tail;
  const bool raw = input.flag();
  const std::size_t rows = input.number<std::uint16_t>() % 4096;
  std::vector<std::byte> built = description_of(input, tail.passages);
  if (raw) tail.passages = input.number<std::uint64_t>();
  const std::string_view description = raw ? input.rest() : text_of_bytes({built.data(), built.size()});
  std::string out(sealed(head));
  std::string numbers(rows, '\x01');
  if (!raw && input.flag()) {  // as many as there must be
    gguf::SpanReader reader("built", bytes_of_text(description));
    accepted([&] {
      const std::size_t each = search::row_bytes(search::detail::read_index_info(reader));
      numbers.assign(round_up<std::size_t>(tail.passages * each, search::detail::index_alignment), '\0');
    });
  }
  out.append(numbers).append(description);
  tail.rows = io::checksum(bytes_of_text(numbers));
  tail.description = io::checksum(bytes_of_text(description));
  tail.description_bytes = description.size();
  tail.file_bytes = out.size() + sizeof tail;
  return out.append(sealed(tail));
}

void run(Input input) {
  static const Folder folder;
  const std::string bytes = index_of(input);
  const std::string path = folder.write("index", bytes);
  accepted_within(bytes.size(), [&] {
    const search::IndexReader reader(path);
    std::size_t passages = 0, rows = 0;
    for (const search::IndexedFile& file : reader.files()) {
      passages += file.passages.size();
      for (const search::Passage& passage : file.passages)
        require(passage.offset <= file.state.size && passage.bytes <= file.state.size - passage.offset,
                "a passage is in its file");
    }
    reader.for_each_slice([&](std::size_t first, std::span<const std::byte> slice) {
      require(first == rows, "slices follow each other");
      rows += slice.size() / search::row_bytes(reader.info());
    });
    require(passages == reader.passages() && rows == passages, "each passage has a row");
  });
}

}  // namespace

MICA_FUZZ_TARGET(search_index) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::search_index_fuzz
