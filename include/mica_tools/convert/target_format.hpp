// SPDX-License-Identifier: Apache-2.0
//
// The type of each tensor in the file. Vectors and exceptions of the family are F32; rows that the requested
// type's blocks do not divide get another type.
#pragma once

#include "mica_tools/convert/checkpoint.hpp"
#include "mica_tools/convert/family.hpp"
#include "mica_tools/encode/encode.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace mica::convert {

/// Whether a type is one of the floats that checkpoints have.
[[nodiscard]] constexpr bool is_float(format::Id id) noexcept {
  return id == format::F32::id || id == format::F16::id || id == format::BF16::id;
}

/// The type in which most bytes of a checkpoint are; eight-bit floats count as BF16, wider ones as F32.
[[nodiscard]] inline format::Id usual_format(const Checkpoint& checkpoint) {
  std::map<format::Id, std::uint64_t> bytes;
  for (const auto& [name, entry] : checkpoint.entries()) {
    const Dtype dtype = entry.tensor->dtype;
    if (dtype == Dtype::F16) bytes[format::F16::id] += entry.tensor->bytes;
    if (dtype == Dtype::F32 || dtype == Dtype::F64) bytes[format::F32::id] += entry.tensor->bytes;
    if (dtype == Dtype::BF16 || dtype == Dtype::F8_E4M3 || dtype == Dtype::F8_E5M2)
      bytes[format::BF16::id] += entry.tensor->bytes;
  }
  const auto max = std::max_element(bytes.begin(), bytes.end(),
                                    [](const auto& a, const auto& b) { return a.second < b.second; });
  return max == bytes.end() ? format::F32::id : max->first;
}

/// Chooses the requested type or a substitute.
class TargetFormat {
 public:
  /// Raises ErrorCode::unsupported for a type that cannot be written.
  TargetFormat(std::optional<format::Id> requested, const Checkpoint& checkpoint)
      : usual_(usual_format(checkpoint)), requested_(requested.value_or(usual_)) {
    MICA_CHECK(format::known_codecs.writes(requested_), unsupported, "cannot write ",
               format::name(requested_), "; types that can be written: ", format::known_codecs.written());
  }

  [[nodiscard]] format::Id requested() const noexcept { return requested_; }

  [[nodiscard]] format::Id of(std::size_t n_dims, std::uint64_t width, Keep keep) const {
    if (n_dims == 1 || keep == Keep::f32) return format::F32::id;
    if (keep == Keep::unquantized && !is_float(requested_)) return usual_;
    if (width % format::info(requested_).block_size == 0) return requested_;
    return width % format::Q8_0::block_size == 0 ? format::Q8_0::id : format::F16::id;
  }

  /// The number of the requested type in general.file_type; empty when it has none.
  [[nodiscard]] std::optional<std::uint32_t> file_type() const noexcept {
    constexpr std::pair<format::Id, std::uint32_t> numbers[] = {
        {format::F32::id, 0},     {format::F16::id, 1},     {format::Q4_0::id, 2},  {format::Q4_1::id, 3},
        {format::Q8_0::id, 7},    {format::Q5_0::id, 8},    {format::Q5_1::id, 9},  {format::Q2_K::id, 10},
        {format::Q3_K::id, 12},   {format::Q4_K::id, 15},   {format::Q5_K::id, 17}, {format::Q6_K::id, 18},
        {format::IQ4_NL::id, 25}, {format::IQ4_XS::id, 30}, {format::BF16::id, 32}, {format::TQ1_0::id, 36},
        {format::TQ2_0::id, 37},  {format::MXFP4::id, 38}};
    for (const auto& [id, number] : numbers) {
      if (id == requested_) return number;
    }
    return std::nullopt;
  }

 private:
  format::Id usual_;
  format::Id requested_;
};

}  // namespace mica::convert
