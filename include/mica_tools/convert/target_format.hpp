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
#include <string_view>
#include <utility>

namespace mica::convert {

/// Whether a type is one of the floats that checkpoints have.
[[nodiscard]] constexpr bool is_float(format::Id id) noexcept {
  return id == format::Id::F32 || id == format::Id::F16 || id == format::Id::BF16;
}

/// The type in which most bytes of a checkpoint are; eight-bit floats count as BF16, wider ones as F32.
[[nodiscard]] inline format::Id usual_format(const Checkpoint& checkpoint) {
  std::map<format::Id, std::uint64_t> bytes;
  for (const auto& [name, entry] : checkpoint.entries()) {
    const Dtype dtype = entry.tensor->dtype;
    if (dtype == Dtype::F16) bytes[format::Id::F16] += entry.tensor->bytes;
    if (dtype == Dtype::F32 || dtype == Dtype::F64) bytes[format::Id::F32] += entry.tensor->bytes;
    if (dtype == Dtype::BF16 || dtype == Dtype::F8_E4M3 || dtype == Dtype::F8_E5M2)
      bytes[format::Id::BF16] += entry.tensor->bytes;
  }
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? format::Id::F32 : most->first;
}

/// Chooses the requested type or a substitute.
class TargetFormat {
 public:
  /// Raises ErrorCode::unsupported for a type that cannot be written.
  TargetFormat(std::optional<format::Id> asked, const Checkpoint& checkpoint)
      : usual_(usual_format(checkpoint)), asked_(asked.value_or(usual_)) {
    MICA_CHECK(format::encodable(asked_), unsupported, "cannot write ", format::name(asked_),
               "; types that can be written: ", format::names<format::Encodable>());
  }

  [[nodiscard]] format::Id asked() const noexcept { return asked_; }

  [[nodiscard]] format::Id of(std::size_t n_dims, std::uint64_t width, Keep keep) const {
    if (n_dims == 1 || keep == Keep::f32) return format::Id::F32;
    if (keep == Keep::unquantized && !is_float(asked_)) return usual_;
    if (width % format::info(asked_).block_size == 0) return asked_;
    return width % format::info(format::Id::Q8_0).block_size == 0 ? format::Id::Q8_0 : format::Id::F16;
  }

  /// The number of the requested type in general.file_type; empty when it has none.
  [[nodiscard]] std::optional<std::uint32_t> file_type() const noexcept {
    using format::Id;
    constexpr std::pair<Id, std::uint32_t> numbers[] = {
        {Id::F32, 0},    {Id::F16, 1},    {Id::Q4_0, 2},    {Id::Q4_1, 3},    {Id::Q8_0, 7},
        {Id::Q5_0, 8},   {Id::Q5_1, 9},   {Id::Q2_K, 10},   {Id::Q3_K, 12},   {Id::Q4_K, 15},
        {Id::Q5_K, 17},  {Id::Q6_K, 18},  {Id::IQ4_NL, 25}, {Id::IQ4_XS, 30}, {Id::BF16, 32},
        {Id::TQ1_0, 36}, {Id::TQ2_0, 37}, {Id::MXFP4, 38}};
    for (const auto& [id, number] : numbers) {
      if (id == asked_) return number;
    }
    return std::nullopt;
  }

 private:
  format::Id usual_;
  format::Id asked_;
};

}  // namespace mica::convert
