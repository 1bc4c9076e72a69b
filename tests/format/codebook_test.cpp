// SPDX-License-Identifier: Apache-2.0
//
// The codebooks, without the conformance kit: what holds for their entries, and their checksums.

#include "mica/format/detail/codebooks.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

namespace mica::codebook_test {
namespace {

namespace codebook = format::codebook;

struct Book {
  std::string_view name;
  std::span<const std::uint16_t> entries;
  unsigned bits;           // of a number
  std::size_t numbers;     // of an entry
  unsigned levels;         // that exist
  bool even;               // the sum of the numbers of every entry is even
  std::uint64_t checksum;  // FNV-1a of the entries, low byte first
};

const Book books[] = {
    {"iq1", codebook::iq1, 2, 8, 3, false, 0x03f1880817eeffa4},
    {"iq2_xxs", codebook::iq2_xxs, 2, 8, 3, true, 0x6fca17f5c451905d},
    {"iq2_xs", codebook::iq2_xs, 2, 8, 3, true, 0x29d6ac8e0e6b14e3},
    {"iq2_s", codebook::iq2_s, 2, 8, 3, true, 0x641f9aa3fbd98694},
    {"iq3_xxs", codebook::iq3_xxs, 3, 4, 8, true, 0x79d733576d562547},
    {"iq3_s", codebook::iq3_s, 3, 4, 8, false, 0x55b224116d1e5ca2},
};

TEST_CASE("entries of a codebook ascend, so that none is there twice") {
  for (const Book& book : books) {
    CAPTURE(book.name);
    for (std::size_t e = 1; e < book.entries.size(); ++e) REQUIRE(book.entries[e - 1] < book.entries[e]);
  }
}

TEST_CASE(
    "numbers of an entry choose levels that exist, and add up to an even one where they are points of a "
    "lattice") {
  for (const Book& book : books) {
    CAPTURE(book.name);
    for (const unsigned entry : book.entries) {
      unsigned sum = 0;
      for (std::size_t i = 0; i < book.numbers; ++i) {
        const unsigned number = (entry >> (book.bits * i)) & ((1u << book.bits) - 1);
        REQUIRE(number < book.levels);
        sum += number;
      }
      REQUIRE((entry >> (book.bits * book.numbers)) == 0);
      if (book.even) REQUIRE(sum % 2 == 0);
    }
  }
}

TEST_CASE("codebooks have the checksums of the file format's tables") {
  for (const Book& book : books) {
    CAPTURE(book.name);
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const unsigned entry : book.entries) {
      hash = (hash ^ (entry & 0xFF)) * 0x100000001b3;
      hash = (hash ^ (entry >> 8)) * 0x100000001b3;
    }
    CHECK(hash == book.checksum);
  }
}

/// Whether the words that vectors read hold the values that spell() writes, all positive.
template <class Word, unsigned bits, const auto& entries, const auto& levels>
bool spelled_alike() {
  constexpr auto& words = codebook::words<Word, entries, levels>;
  std::int8_t values[sizeof(Word)];
  for (std::size_t e = 0; e < std::size(entries); ++e) {
    codebook::spell<bits, sizeof(Word)>(levels, entries[e], 0, values);
    if (std::memcmp(values, &words[e], sizeof(Word)) != 0) return false;
  }
  return true;
}

TEST_CASE("words for vectors spell the entries") {
  using Eight = std::uint64_t;
  using Four = std::uint32_t;
  CHECK(spelled_alike<Eight, 2, codebook::iq1, codebook::iq1_lifted>());
  CHECK(spelled_alike<Eight, 2, codebook::iq2_xxs, codebook::iq2_levels>());
  CHECK(spelled_alike<Eight, 2, codebook::iq2_xs, codebook::iq2_levels>());
  CHECK(spelled_alike<Eight, 2, codebook::iq2_s, codebook::iq2_levels>());
  CHECK(spelled_alike<Four, 3, codebook::iq3_xxs, codebook::iq3_xxs_levels>());
  CHECK(spelled_alike<Four, 3, codebook::iq3_s, codebook::iq3_s_levels>());
}

TEST_CASE("signs make values negative one by one, and an eighth sign makes their number even") {
  std::int8_t code[8];
  const unsigned entry = codebook::iq2_xxs[2];  // the levels 1, 1, 0, 0, 0, 0, 0, 0
  codebook::spell<2, 8>(codebook::iq2_levels, entry, 0x82, code);
  CHECK(std::vector<int>(code, code + 8) == std::vector<int>{25, -25, 8, 8, 8, 8, 8, -8});
  for (unsigned seven = 0; seven < 128; ++seven) {
    const unsigned signs = codebook::even_signs(seven);
    CHECK((signs & 127) == seven);
    CHECK(std::popcount(signs) % 2 == 0);
    CHECK(signs < 256);
  }
}

}  // namespace
}  // namespace mica::codebook_test
