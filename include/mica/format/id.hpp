// SPDX-License-Identifier: Apache-2.0
//
// The numbers by which GGUF files name their block types, with the size of a block. A file may hold any of these; which
// of them can be computed with is decided by the lists in format/lists.hpp. Ids and sizes: ggml's file format, and one
// private number for a format of our own, far from those that others hand out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mica::format {

enum class Id : std::uint32_t {
  F32 = 0,
  F16 = 1,
  Q4_0 = 2,
  Q4_1 = 3,
  Q5_0 = 6,
  Q5_1 = 7,
  Q8_0 = 8,
  Q8_1 = 9,
  Q2_K = 10,
  Q3_K = 11,
  Q4_K = 12,
  Q5_K = 13,
  Q6_K = 14,
  Q8_K = 15,
  IQ2_XXS = 16,
  IQ2_XS = 17,
  IQ3_XXS = 18,
  IQ1_S = 19,
  IQ4_NL = 20,
  IQ3_S = 21,
  IQ2_S = 22,
  IQ4_XS = 23,
  I8 = 24,
  I16 = 25,
  I32 = 26,
  I64 = 27,
  F64 = 28,
  IQ1_M = 29,
  BF16 = 30,
  TQ1_0 = 34,
  TQ2_0 = 35,
  MXFP4 = 39,
  NVFP4 = 40,
  Q1_0 = 41,
  Q2_0 = 42,
  NF4 = 0x344E4D,  // bytes "MN4"; other programs refuse such a file
};

/// What a file may say about a block type without anybody computing with it.
struct Info {
  Id id;
  std::string_view name;
  std::uint16_t block_size;   // values in a block
  std::uint16_t block_bytes;  // bytes of a block
};

inline constexpr std::array<Info, 36> infos = {{
    {Id::F32, "F32", 1, 4},
    {Id::F16, "F16", 1, 2},
    {Id::Q4_0, "Q4_0", 32, 18},
    {Id::Q4_1, "Q4_1", 32, 20},
    {Id::Q5_0, "Q5_0", 32, 22},
    {Id::Q5_1, "Q5_1", 32, 24},
    {Id::Q8_0, "Q8_0", 32, 34},
    {Id::Q8_1, "Q8_1", 32, 36},
    {Id::Q2_K, "Q2_K", 256, 84},
    {Id::Q3_K, "Q3_K", 256, 110},
    {Id::Q4_K, "Q4_K", 256, 144},
    {Id::Q5_K, "Q5_K", 256, 176},
    {Id::Q6_K, "Q6_K", 256, 210},
    {Id::Q8_K, "Q8_K", 256, 292},
    {Id::IQ2_XXS, "IQ2_XXS", 256, 66},
    {Id::IQ2_XS, "IQ2_XS", 256, 74},
    {Id::IQ3_XXS, "IQ3_XXS", 256, 98},
    {Id::IQ1_S, "IQ1_S", 256, 50},
    {Id::IQ4_NL, "IQ4_NL", 32, 18},
    {Id::IQ3_S, "IQ3_S", 256, 110},
    {Id::IQ2_S, "IQ2_S", 256, 82},
    {Id::IQ4_XS, "IQ4_XS", 256, 136},
    {Id::I8, "I8", 1, 1},
    {Id::I16, "I16", 1, 2},
    {Id::I32, "I32", 1, 4},
    {Id::I64, "I64", 1, 8},
    {Id::F64, "F64", 1, 8},
    {Id::IQ1_M, "IQ1_M", 256, 56},
    {Id::BF16, "BF16", 1, 2},
    {Id::TQ1_0, "TQ1_0", 256, 54},
    {Id::TQ2_0, "TQ2_0", 256, 66},
    {Id::MXFP4, "MXFP4", 32, 17},
    {Id::NVFP4, "NVFP4", 64, 36},
    {Id::Q1_0, "Q1_0", 128, 18},
    {Id::Q2_0, "Q2_0", 64, 18},
    {Id::NF4, "NF4", 32, 18},
}};

/// The entry of a type number; empty when no such type exists.
[[nodiscard]] constexpr std::optional<Info> info(std::uint32_t id) noexcept {
  for (const Info& i : infos) {
    if (static_cast<std::uint32_t>(i.id) == id) return i;
  }
  return std::nullopt;
}

/// The entry of a known type.
[[nodiscard]] constexpr Info info(Id id) noexcept { return *info(static_cast<std::uint32_t>(id)); }

/// The name as files and command lines spell it, such as "Q4_K".
[[nodiscard]] constexpr std::string_view name(Id id) noexcept { return info(id).name; }

/// The entry whose name equals `text`, upper or lower case; empty when no such type exists.
[[nodiscard]] constexpr std::optional<Info> find(std::string_view text) noexcept {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  for (const Info& i : infos) {
    bool equal = i.name.size() == text.size();
    for (std::size_t k = 0; equal && k < text.size(); ++k) equal = upper(text[k]) == i.name[k];
    if (equal) return i;
  }
  return std::nullopt;
}

static_assert(info(Id::Q4_K).block_bytes == 144 && find("q6_k")->id == Id::Q6_K && !info(4u));

}  // namespace mica::format
