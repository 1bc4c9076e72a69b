// SPDX-License-Identifier: Apache-2.0
//
// What a packed directory of a model will hold, decided before anything is written. Units, and which tensors
// are packed, come from model::Weights, the table of the pagers: nothing is decided twice.
//
//   embedding.bin | layer-000.bin | layer-000-experts.bin | layer-001.bin | ... | head.bin | other.bin
//   tensors on 64 bytes; experts on 4 KiB, their matrices side by side; files whole blocks of 4 KiB
#pragma once

#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/bits.hpp"
#include "mica/format/lists.hpp"
#include "mica/gguf/detail/append.hpp"
#include "mica/gguf/detail/packed_files.hpp"
#include "mica/gguf/document.hpp"
#include "mica/gguf/fingerprint.hpp"
#include "mica/gguf/manifest.hpp"
#include "mica/model/weights.hpp"
#include "mica/tensor/packing.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::pack {

/// The bytes of a manifest of these tensors, with the keys of the model where `keys` is not null. Their
/// number does not depend on the checksums, so it is known before anything is packed.
[[nodiscard]] inline std::vector<std::byte> manifest_bytes(const gguf::Manifest& manifest,
                                                           const gguf::Metadata* keys) {
  gguf::Writer writer(manifest.formats);
  for (std::size_t i = 0; keys != nullptr && i < keys->size(); ++i) {
    const std::string_view key = keys->key(i);  // a packed directory has no shards
    if (key != "general.alignment" && !key.starts_with("split.")) writer.copy(key, keys->value(i));
  }
  writer.set(gguf::packed_version_key, gguf::Manifest::current_version);
  writer.set("mica.packed.layout", gguf::Manifest::layout);
  writer.set("mica.packed.fingerprint", manifest.fingerprint);
  writer.set("mica.packed.identity", manifest.identity);
  const auto set_each = [&](std::string_view key, const auto& list, auto member) {
    std::vector<std::remove_cvref_t<decltype(list[0].*member)>> values;
    for (const auto& element : list) values.push_back(element.*member);
    writer.set_array(key, values);
  };
  set_each("mica.packed.files", manifest.files, &gguf::Manifest::File::name);
  set_each("mica.packed.file_bytes", manifest.files, &gguf::Manifest::File::bytes);
  set_each("mica.packed.tensor_file", manifest.tensors, &gguf::TensorInfo::source);
  set_each("mica.packed.tensor_offset", manifest.tensors, &gguf::TensorInfo::offset);
  set_each("mica.packed.tensor_packed", manifest.tensors, &gguf::TensorInfo::packed);
  set_each("mica.packed.tensor_parts", manifest.tensors, &gguf::TensorInfo::parts);
  set_each("mica.packed.tensor_stride", manifest.tensors, &gguf::TensorInfo::stride);
  std::vector<std::uint64_t> checksums;
  for (const gguf::TensorInfo& tensor : manifest.tensors) {
    checksums.insert(checksums.end(), tensor.checksums.begin(), tensor.checksums.end());
    writer.add(tensor.name, tensor.format.id, std::span(tensor.dims).first(tensor.n_dims), gguf::Fill());
  }
  writer.set_array("mica.packed.checksums", checksums);
  std::vector<std::byte> bytes = writer.header();
  gguf::append_number(bytes, io::checksum(bytes));
  return bytes;
}

/// A manifest whose checksums are 0, and where its tensors come from.
struct Plan {
  gguf::Manifest manifest;                    // with the places of all tensors
  std::vector<const gguf::TensorInfo*> from;  // by tensor of the manifest: that of the source
  tensor::FindPacking packing = nullptr;      // of its formats

  /// Of all files, the manifest among them.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const gguf::Manifest::File& file : manifest.files) sum += file.bytes;
    return sum;
  }
};

namespace detail {

inline constexpr std::uint64_t part_alignment = 4096;

/// Sizes and times of a model's files: whether a source is still what it was.
[[nodiscard]] inline std::uint64_t identity_of(const gguf::Document& document) {
  io::Checksum sum;
  for (const gguf::Source& source : document.sources()) {
    const std::int64_t time = source.file() == nullptr ? 0 : source.file()->identity().modified_ns;
    const std::uint64_t numbers[] = {source.size(), static_cast<std::uint64_t>(time)};
    sum.add(std::as_bytes(std::span(numbers)));
  }
  return sum.value();
}

/// Gives every tensor its place, file by file. Formats and Blocks: those of the model.
template <class Formats, class Blocks>
class Planner {
 public:
  Planner(gguf::DocumentRef document, const arch::Config& config)
      : document_(document), config_(config), weights_(document, config), units_(weights_.units()) {
    for (std::size_t i = 0; i < weights_.extents().size(); ++i)
      units_[weights_.extents()[i].unit].push_back(i);
  }

  [[nodiscard]] Plan plan() {
    plan_.packing = tensor::packing_in<Formats>;
    plan_.manifest.formats = document_.formats();
    plan_.manifest.fingerprint = gguf::fingerprint(document_, plan_.packing);
    plan_.manifest.identity = identity_of(document_);
    plan_.manifest.files.push_back({std::string(gguf::names::manifest), 0});
    lay_out_unit(0, "embedding.bin");
    for (std::size_t layer = 0; layer < config_.layers.size(); ++layer) {
      lay_out_unit(layer + 1, layer_name(layer, ""));
      for (const block::ExpertUnits& experts : weights_.expert_units()) {
        if (experts.layer_unit == layer + 1)
          lay_out_experts(experts.first, static_cast<std::uint32_t>(experts.count),
                          layer_name(layer, "-experts"));
      }
    }
    lay_out_unit(config_.layers.size() + 1, "head.bin");
    lay_out_others();
    plan_.manifest.files[0].bytes = manifest_bytes(plan_.manifest, &document_.metadata()).size();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] static bool can_pack(const paging::Extent& extent) noexcept {
    return tensor::can_pack<Formats>(extent.format, extent.rows);
  }
  [[nodiscard]] static std::string layer_name(std::size_t layer, const char* end) {
    char text[64];
    std::snprintf(text, sizeof text, "layer-%03zu%s.bin", layer, end);
    return text;
  }
  void lay_out_unit(std::size_t unit, std::string file) {
    begin(std::move(file));
    for (const std::size_t i : units_[unit]) {
      const gguf::TensorInfo& tensor = document_.tensor(weights_.name(i));
      const paging::Extent& extent = weights_.extents()[i];
      if (!placed_.contains(&tensor)) place(tensor, 1, can_pack(extent));
    }
    finish(round_up(end_, part_alignment));
  }
  /// All experts of a layer have matrices of the same sizes: where those of the first lie says it for all.
  void lay_out_experts(std::size_t first_unit, std::uint32_t count, std::string file) {
    begin(std::move(file));
    const std::size_t first = plan_.manifest.tensors.size();
    for (const std::size_t i : units_[first_unit]) {
      const paging::Extent& extent = weights_.extents()[i];
      place(document_.tensor(weights_.name(i)), count, can_pack(extent));
    }
    const std::uint64_t stride = round_up(end_, part_alignment);
    for (std::size_t i = first; i < plan_.manifest.tensors.size() && count > 1; ++i)
      plan_.manifest.tensors[i].stride = stride;
    finish(stride * count);
  }

  /// What the model does not use in its steps, or not at all.
  void lay_out_others() {
    begin("other.bin");
    const std::size_t first = plan_.manifest.tensors.size();
    for (const gguf::TensorInfo& tensor : document_.tensors()) {
      if (!placed_.contains(&tensor)) place(tensor, 1, false);
    }
    finish(plan_.manifest.tensors.size() == first
               ? 0
               : round_up(std::max<std::uint64_t>(end_, 1), part_alignment));
  }
  void begin(std::string file) {
    plan_.manifest.files.push_back({std::move(file), 0});
    end_ = 0;
  }
  void finish(std::uint64_t bytes) {
    if (bytes == 0) return plan_.manifest.files.pop_back();
    plan_.manifest.files.back().bytes = bytes;
  }
  /// Puts a tensor, or the first part of it, behind the one before.
  void place(const gguf::TensorInfo& tensor, std::uint32_t parts, bool packed) {
    gguf::TensorInfo& out = plan_.manifest.tensors.emplace_back(tensor);
    out.source = static_cast<std::uint32_t>(plan_.manifest.files.size() - 1);
    out.offset = end_;
    out.packed = packed;
    out.parts = parts;
    out.stride = 0;
    out.checksums.assign(parts, 0);
    end_ = round_up(end_ + out.part_bytes(), gguf::Manifest::tensor_alignment);
    plan_.from.push_back(&tensor);
    placed_[&tensor] = true;
  }

  const gguf::Document& document_;
  const arch::Config& config_;
  model::Weights<Formats, Blocks> weights_;
  std::vector<std::vector<std::size_t>> units_;  // extents, by unit
  std::map<const gguf::TensorInfo*, bool> placed_;
  Plan plan_;
  std::uint64_t end_ = 0;  // of what lies in the file so far
};

}  // namespace detail

/// Plans the directory of a model. The document outlives the plan. Raises what opening the model raises about
/// its file, and ErrorCode::unsupported without xxHash.
template <class Families = arch::All, class Formats = format::All>
[[nodiscard]] Plan make_plan(const gguf::Document& document) {
  const arch::Config config = arch::AnyOf<Families>::config(document);
  return detail::Planner<Formats, typename arch::AnyOf<Families>::Blocks>(document, config).plan();
}

}  // namespace mica::pack
