// SPDX-License-Identifier: Apache-2.0

#include "mica/budget/size.hpp"

#include "mica/base/error.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace size_test {

using mica::budget::parse_size;
using mica::budget::size_text;

namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

std::string complaint(std::string_view text) {
  try {
    return "accepted: " + std::to_string(parse_size(text, gib, "--memory"));
  } catch (const mica::Error& error) {
    CHECK(error.code() == mica::ErrorCode::usage);
    return error.message();
  }
}

}  // namespace

TEST_CASE("sizes are exact in every unit") {
  CHECK(parse_size("0", 0) == 0);
  CHECK(parse_size("1234567", 0) == 1234567);
  CHECK(parse_size("12B", 0) == 12);
  CHECK(parse_size("4K", 0) == 4096);
  CHECK(parse_size("4kib", 0) == 4096);
  CHECK(parse_size("4kB", 0) == 4000);
  CHECK(parse_size("512MiB", 0) == 512 * gib / 1024);
  CHECK(parse_size("512m", 0) == 512 * gib / 1024);
  CHECK(parse_size("6GiB", 0) == 6 * gib);
  CHECK(parse_size("4G", 0) == 4 * gib);
  CHECK(parse_size("4 GB", 0) == 4'000'000'000);
  CHECK(parse_size("2T", 0) == 2048 * gib);
  CHECK(parse_size("1.5GiB", 0) == 3 * gib / 2);
  CHECK(parse_size("0.1K", 0) == 102);  // 102.4
  CHECK(parse_size("0.000001TB", 0) == 1'000'000);
  CHECK(parse_size("18446744073709551615", 0) == UINT64_MAX);
  CHECK(parse_size("16777215.999999T", 0) ==
        (std::uint64_t{16777215} << 40) + 999999 * (std::uint64_t{1} << 40) / 1000000);
}

TEST_CASE("percentages are of the whole, rounded down, and do not overflow") {
  CHECK(parse_size("75%", 1000) == 750);
  CHECK(parse_size("75 %", 4 * gib) == 3 * gib);
  CHECK(parse_size("33.3%", 1000) == 333);
  CHECK(parse_size("33.3333%", 10) == 3);
  CHECK(parse_size("0%", gib) == 0);
  CHECK(parse_size("100%", UINT64_MAX) == UINT64_MAX);
  CHECK(parse_size("50%", UINT64_MAX) == UINT64_MAX / 2);
}

TEST_CASE("what is no size is refused with the option, the text found and the spellings allowed") {
  for (const char* text : {"",
                           "G",
                           "6X",
                           "6GiBs",
                           "6GG",
                           "-1",
                           "+1",
                           "1e9",
                           "1.",
                           ".5G",
                           "1.2.3",
                           "1.1234567G",
                           "0x10",
                           "6,5G",
                           " 6G",
                           "6G ",
                           "101%",
                           "100.1%",
                           "18446744073709551616",
                           "16777216T",
                           "nan",
                           "6 G B"}) {
    CAPTURE(text);
    CHECK(complaint(text).starts_with("--memory: found \"" + std::string(text) + "\", allowed a number"));
  }
  CHECK(complaint("6\nG").find("6\\x0aG") != std::string::npos);
}

TEST_CASE("a small number without a unit is a size that lost its letter") {
  CHECK(complaint("6") ==
        "--memory: found \"6\", which is 6 bytes; did you mean 6G? Allowed without a unit: 1048576 bytes or "
        "more");
  CHECK(complaint("1.5").find("did you mean 1.5G?") != std::string::npos);
  CHECK(complaint("1048575").find("which is 1048575 bytes") != std::string::npos);
  CHECK(complaint("1048576") == "accepted: 1048576");
  CHECK(complaint("6B") == "accepted: 6");
  CHECK(complaint("0") == "accepted: 0");  // callers say what 0 means
}

TEST_CASE("sizes are shown in the largest unit that fits") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(1023) == "1023 B");
  CHECK(size_text(1024) == "1.0 KiB");
  CHECK(size_text(1536) == "1.5 KiB");
  CHECK(size_text(6 * gib) == "6.0 GiB");
  CHECK(size_text(6 * gib + gib / 4) == "6.3 GiB");  // 6.25, half up
  CHECK(size_text(gib - 1) == "1024.0 MiB");
  CHECK(size_text(UINT64_MAX) == "16.0 EiB");
}

TEST_CASE("a size as a word is read as no less than the bytes, and as a tenth of a MiB more at most") {
  constexpr std::uint64_t tenth = (std::uint64_t{1} << 20) / 10 + 1;
  for (const std::uint64_t bytes :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{104857}, std::uint64_t{104858}, gib - 1, gib,
        gib + 1, 201 * (gib >> 10) + 209716, 70 * gib + 123456789}) {
    CAPTURE(bytes);
    const std::uint64_t read = parse_size(mica::budget::size_word(bytes), 0);
    CHECK(read >= bytes);
    CHECK(read <= bytes + tenth);
  }
  CHECK(mica::budget::size_word(201 * (gib >> 10) + 1) == "201.1MiB");
}

}  // namespace size_test
