// SPDX-License-Identifier: Apache-2.0

#include "mica/gguf/span_reader.hpp"

#include "io/temporary_folder.hpp"

namespace mica::test::span_reader_test {
namespace {

using gguf::SpanReader;

TEST_CASE("numbers and strings are taken in order and the offset follows") {
  const std::string bytes("\x01\x02\x03\x04\x03\0\0\0\0\0\0\0a\0c!", 16);
  SpanReader reader("memory", std::as_bytes(std::span(bytes)));
  CHECK(reader.read<std::uint32_t>("a number") == 0x04030201u);
  CHECK(reader.text("a string") == std::string_view("a\0c", 3));
  CHECK(reader.offset() == 15);
  CHECK(reader.remaining() == 1);
  CHECK(reader.take(1, "a byte")[0] == std::byte{'!'});
  CHECK(reader.take(0, "nothing").empty());
}

TEST_CASE("no length takes a reader past the end, the largest number neither") {
  const auto bytes = numbered_bytes(10);
  for (const std::uint64_t n : {std::uint64_t{8}, std::uint64_t{1} << 32, UINT64_MAX - 2, UINT64_MAX}) {
    SpanReader reader("model.gguf", bytes);
    static_cast<void>(reader.take(3, "a start"));
    reader.enter("key 'k'");
    const Error error = refusal([&] { return reader.take(n, "a value").size(); });
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "model.gguf: key 'k'", "a value at byte 3", join("takes ", n, " bytes"), "7 remain",
                   "past the end", "truncated"));
    CHECK(reader.offset() == 3);
  }
}

TEST_CASE("a string whose length reaches past the end is refused, not shortened") {
  const std::string bytes("\x05\0\0\0\0\0\0\0abcd", 12);
  SpanReader reader("m", std::as_bytes(std::span(bytes)));
  CHECK(mentions(refusal([&] { return reader.text("a name").size(); }), "a name at byte 8", "takes 5",
                 "4 remain"));
}

TEST_CASE("a loader is asked for what is needed and never for more than the file has") {
  const std::vector<std::byte> bytes = numbered_bytes(100);
  std::vector<std::uint64_t> asked;
  const auto load = [&](std::uint64_t count) {
    asked.push_back(count);
    return std::span<const std::byte>(bytes).first(static_cast<std::size_t>(count));
  };
  SpanReader reader("disk", 100, load);
  for (std::size_t at = 0; at < 100; at += 10) {
    const auto taken = reader.take(10, "ten");
    CHECK(std::equal(taken.begin(), taken.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at)));
  }
  CHECK(asked.size() == 10);
  CHECK(asked.back() == 100);
  CHECK(mentions(refusal([&] { return reader.take(1, "one more").size(); }), "one more at byte 100"));
  CHECK(asked.size() == 10);
}

}  // namespace
}  // namespace mica::test::span_reader_test
