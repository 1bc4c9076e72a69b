// SPDX-License-Identifier: Apache-2.0
//
// How much memory a header may cost, and what happens when there is none. Replaces operator new for its test
// program.

#include "gguf/counted_heap.hpp"
#include "gguf/sample_file.hpp"
#include "mica/gguf/reader.hpp"

#include <limits>

namespace mica::test::allocation_test {
namespace {

TEST_CASE("opening the costliest header takes at most four times its bytes and 16 MiB") {
  RawHeader header(gguf::detail::max_tensors, gguf::detail::max_pairs);
  for (std::uint32_t i = 0; i < gguf::detail::max_pairs; ++i) {
    header.text(std::string_view(reinterpret_cast<const char*>(&i), 3))
        .type(gguf::ValueType::u8)
        .number('\0');
  }
  for (std::uint32_t i = 0; i < gguf::detail::max_tensors; ++i) {
    header.tensor(std::string_view(reinterpret_cast<const char*>(&i), 2), {0}, 0, 0);
  }
  const TemporaryFolder folder;
  const std::string path = folder.file("costly.gguf", header.bytes());
  std::size_t tensors = 0;
  const std::size_t peak = peak_of([&] { tensors = gguf::open(path).tensors().size(); });
  CHECK(tensors == gguf::detail::max_tensors);
  CHECK(peak > header.bytes().size());
  CHECK(peak <= 4 * header.bytes().size() + allowance);
}

TEST_CASE("a header that only claims to be large costs nothing") {
  std::vector<RawHeader> liars;
  liars.push_back(RawHeader(1 << 16, 1 << 18));
  liars.push_back(RawHeader(0, 1).text("k").type(gguf::ValueType::string).number(std::uint64_t{1} << 40));
  liars.push_back(RawHeader(0, 1)
                      .text("k")
                      .type(gguf::ValueType::array)
                      .type(gguf::ValueType::u8)
                      .number(std::uint64_t{1} << 40));
  for (const RawHeader& liar : liars) {
    CHECK(peak_of([&] { CHECK_THROWS_AS(static_cast<void>(gguf::parse(liar.bytes(), "m")), Error); }) < 4096);
  }
}

TEST_CASE("memory that runs out at any allocation is reported and leaves nothing behind") {
  const TemporaryFolder folder;
  random_file(8).write(folder.path("model.gguf"));
  const std::string path = folder.path("model.gguf");
  const std::size_t before = heap.live;
  std::size_t failures = 0;
  for (bool opened = false; !opened; ++failures) {
    heap.allocations = 0;
    heap.fails_at = failures;
    try {
      static_cast<void>(gguf::open(path));
      opened = true;
    } catch (const std::bad_alloc&) {
    }
    heap.fails_at = std::numeric_limits<std::size_t>::max();
    CHECK(heap.live == before);
  }
  CHECK(failures > 20);
}

}  // namespace
}  // namespace mica::test::allocation_test
