// SPDX-License-Identifier: Apache-2.0
//
// The formats with codebooks and uneven levels: blocks made by hand decode as their drawings say.

#include "mica/format/iq1.hpp"
#include "mica/format/iq2.hpp"
#include "mica/format/iq3.hpp"
#include "mica/format/iq4.hpp"

#include <doctest/doctest.h>

namespace mica::codebook_formats_test {
namespace {

namespace codebook = format::codebook;

/// Number i of an entry.
float number(unsigned entry, unsigned bits, std::size_t i) {
  return static_cast<float>((entry >> (bits * i)) & ((1u << bits) - 1));
}
float level2(unsigned entry, std::size_t i) { return codebook::iq2_levels[(entry >> (2 * i)) & 3]; }
float level3(unsigned entry, std::size_t i) { return codebook::iq3_xxs_levels[(entry >> (3 * i)) & 7]; }

TEST_CASE("a hand-made IQ4_NL block decodes as its drawing says") {
  format::IQ4_NL::Block block = {};
  block.d = to_half(2.0f);
  block.nibbles[3] = 0x8F;
  float values[32];
  format::IQ4_NL::decode(block, values);
  CHECK(values[3] == 2.0f * 113);
  CHECK(values[19] == 2.0f);
  CHECK(values[0] == 2.0f * -127);
}

TEST_CASE("a hand-made IQ4_XS block decodes as its drawing says") {
  format::IQ4_XS::Block block = {};
  block.d = to_half(0.5f);
  block.scales_low[1] = 0x50;        // scale 3: low bits 5
  block.scales_high = 2 << 6;        // and high bits 2: 32 + 5 - 32
  block.nibbles[16 * 3 + 4] = 0xF0;  // values 100 and 116
  float values[256];
  format::IQ4_XS::decode(block, values);
  CHECK(values[100] == 0.5f * 5 * -127);
  CHECK(values[116] == 0.5f * 5 * 113);
  CHECK(values[0] == 0.5f * -32 * -127);
}

TEST_CASE("a hand-made IQ3_S block decodes as its drawing says") {
  format::IQ3_S::Block block = {};
  block.d = to_half(0.5f);
  block.low[9] = 3;
  block.high[1] = 1 << 1;  // entry 256 + 3 for values 36 to 39
  block.signs[4] = 0x80;   // value 39 is negative
  block.scales[0] = 0x20;  // scale 1
  float values[256];
  format::IQ3_S::decode(block, values);
  const unsigned entry = codebook::iq3_s[259];
  CHECK(values[36] == 0.5f * 5 * (2 * number(entry, 3, 0) + 1));
  CHECK(values[39] == -0.5f * 5 * (2 * number(entry, 3, 3) + 1));
  CHECK(values[0] == 0.5f);
}

TEST_CASE("a hand-made IQ3_XXS block decodes as its drawing says") {
  format::IQ3_XXS::Block block = {};
  block.d = to_half(4.0f);
  block.entries[13] = 5;  // values 52 to 55
  block.halves[3] =
      (1 << 2) | (2 << 12);  // bit 18: the fifth sign of values 48 to 55, and so the eighth; scale 1
  float values[256];
  format::IQ3_XXS::decode(block, values);
  const unsigned entry = codebook::iq3_xxs[5];
  CHECK(values[51] == 5.0f * 4);
  CHECK(values[52] == -5 * level3(entry, 0));
  CHECK(values[53] == 5 * level3(entry, 1));
  CHECK(values[55] == -5 * level3(entry, 3));
  CHECK(values[0] == 4.0f);
}

TEST_CASE("a hand-made IQ2_S block decodes as its drawing says") {
  format::IQ2_S::Block block = {};
  block.d = to_half(8.0f);
  block.low[5] = 2;
  block.high[1] = 1 << 2;  // entry 256 + 2 for values 40 to 47
  block.signs[5] = 0x01;   // value 40 is negative
  block.scales[1] = 0x04;  // scale 2
  float values[256];
  format::IQ2_S::decode(block, values);
  const unsigned entry = codebook::iq2_s[258];
  CHECK(values[40] == -9 * level2(entry, 0));
  CHECK(values[47] == 9 * level2(entry, 7));
  CHECK(values[0] == 8.0f);
}

TEST_CASE("a hand-made IQ2_XS block decodes as its drawing says") {
  format::IQ2_XS::Block block = {};
  block.d = to_half(8.0f);
  block.words[3] = 300 | (1 << 9);  // values 24 to 31: the first sign, and so the eighth
  block.scales[0] = 0x30;           // scale 1
  float values[256];
  format::IQ2_XS::decode(block, values);
  const unsigned entry = codebook::iq2_xs[300];
  CHECK(values[24] == -7 * level2(entry, 0));
  CHECK(values[25] == 7 * level2(entry, 1));
  CHECK(values[31] == -7 * level2(entry, 7));
  CHECK(values[0] == 8.0f);
}

TEST_CASE("a hand-made IQ2_XXS block decodes as its drawing says") {
  format::IQ2_XXS::Block block = {};
  block.d = to_half(8.0f);
  block.groups[2].entries[1] = 2;  // values 72 to 79: levels 1, 1, 0, 0, 0, 0, 0, 0
  block.groups[2].low = 2 << 7;    // the second sign, and so the eighth
  block.groups[2].high = 3 << 12;  // scale 2
  float values[256];
  format::IQ2_XXS::decode(block, values);
  CHECK(values[72] == 7.0f * 25);
  CHECK(values[73] == -7.0f * 25);
  CHECK(values[74] == 7.0f * 8);
  CHECK(values[79] == -7.0f * 8);
  CHECK(values[0] == 8.0f);
}

TEST_CASE("a hand-made IQ1_S block decodes as its drawing says") {
  format::IQ1_S::Block block = {};
  block.d = to_half(8.0f);
  block.low[6] = 9;
  block.high[1] =
      (3 << 6) | (5 << 12) | (1 << 15);  // entry 3 * 256 + 9 for values 48 to 55, scale 5, shift -1
  float values[256];
  format::IQ1_S::decode(block, values);
  const unsigned entry = codebook::iq1[777];
  for (std::size_t i = 0; i < 8; ++i) CHECK(values[48 + i] == 11 * (8 * (number(entry, 2, i) - 1) - 1));
  CHECK(values[0] == 8 * -1 + 1);
}

TEST_CASE("a hand-made IQ1_M block decodes as its drawing says, and its scale is put together again") {
  format::IQ1_M::Block block = {};
  block.low[7] = 1;
  block.high[3] = 0xA0;  // entry 2 * 256 + 1 for values 56 to 63, shift -1
  block.scales[0] = 6 << 9;
  const Half d = to_half(-3.14f);
  format::IQ1_M::set_scale(block, d);
  CHECK(format::IQ1_M::scale(block).bits == d.bits);
  CHECK((block.scales[0] & 0x0FFF) == 6 << 9);
  format::IQ1_M::set_scale(block, to_half(8.0f));
  float values[256];
  format::IQ1_M::decode(block, values);
  const unsigned entry = codebook::iq1[513];
  for (std::size_t i = 0; i < 8; ++i) CHECK(values[56 + i] == 13 * (8 * (number(entry, 2, i) - 1) - 1));
  CHECK(values[0] == 8 * -1 + 1);
}

}  // namespace
}  // namespace mica::codebook_formats_test
