// SPDX-License-Identifier: Apache-2.0
//
// From the tensors of a checkpoint to those of the file: every tensor has a rule or is refused by name,
// experts are joined, shapes are checked against the config.
#pragma once

#include "mica_tools/convert/checkpoint.hpp"
#include "mica_tools/convert/detail/rule_text.hpp"
#include "mica_tools/convert/family.hpp"
#include "mica_tools/convert/tensor_plan.hpp"
#include "mica_tools/encode/encode.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

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

/// The type of each tensor in the file. Vectors and exceptions of the family are F32; rows that the requested
/// type's blocks do not divide get another type.
class TargetFormat {
 public:
  /// Raises ErrorCode::unsupported for a type that cannot be written.
  TargetFormat(std::optional<format::Id> requested, const Checkpoint& checkpoint)
      : usual_(usual_format(checkpoint)), requested_(requested.value_or(usual_)) {
    MICA_CHECK(format::known_codecs.writes(requested_), unsupported, "cannot write ",
               format::name(requested_), "; types that can be written: ", format::known_codecs.written());
  }

  /// The type that was requested, or else the usual one of the checkpoint.
  [[nodiscard]] format::Id requested() const noexcept { return requested_; }

  /// The type of a tensor whose rows have `width` values.
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

/// The tensors of a file, and what was left out of it.
struct TensorPlans {
  std::vector<TensorPlan> tensors;   ///< in the order of the file
  std::vector<std::string> skipped;  ///< names in the checkpoint
};

/// Plans one model.
class TensorPlanner {
 public:
  /// All of them outlive the planner; the plans refer to the checkpoint. tied: it has no output matrix.
  TensorPlanner(const Checkpoint& checkpoint, const Family& family, const FamilyInput& input,
                const TargetFormat& formats, bool tied)
      : checkpoint_(checkpoint), family_(family), in_(input), formats_(formats), tied_(tied) {}

  /// Raises ErrorCode::unsupported for a tensor that no rule knows, ErrorCode::file for a shape that does not
  /// fit, a hole in a stack of experts, or a layer without tensors.
  [[nodiscard]] TensorPlans plan() {
    TensorPlans out;
    for (const auto& [name, entry] : checkpoint_.entries()) collect(name, entry, out);
    require_whole();
    if (!in_.answers.empty()) out.tensors.push_back(plan_answers());
    const auto computed = family_.compute == nullptr ? std::vector<ComputedTensor>() : family_.compute(in_);
    const std::string& scaling = in_.rope.type;
    MICA_CHECK(
        !computed.empty() || !(scaling == "llama3" || scaling == "longrope" || scaling == "proportional"),
        unsupported, in_.config.where("rope_scaling"), ": type '", escaped(scaling),
        "' becomes tensors, which the family '", family_.arch, "' does not have");
    for (const ComputedTensor& tensor : computed) {
      TensorPlan plan;
      plan.name = tensor.name;
      plan.origin = Origin::computed;
      plan.computed = tensor.values;
      plan.dims = {plan.computed.size()};
      out.tensors.push_back(std::move(plan));
    }
    for (const auto& [place, stack] : stacks_) out.tensors.push_back(plan_stack(stack));
    return out;
  }

 private:
  using Place = std::tuple<std::uint64_t, std::size_t, std::size_t>;  // layer + 1 or 0, table, rule
  struct Stack {
    const TensorRule* rule;
    std::string name;
    std::map<std::uint64_t, Checkpoint::Entry> parts;
  };

  /// Scales, which go with the tensors that they scale.
  [[nodiscard]] static bool is_companion(std::string_view pattern) {
    for (const std::string_view end :
         {".weight_scale_inv", ".weight_scale", "_proj_scale_inv", "_proj_scales"}) {
      if (pattern.ends_with(end)) return true;
    }
    return false;
  }
  /// Vision and audio towers, multi-token prediction that is not kept, buffers, an output matrix that is the
  /// embedding.
  [[nodiscard]] bool is_skipped(const detail::CanonicalName& name) const {
    const std::string_view pattern = name.pattern;
    for (const std::string_view start :
         {"vision_tower.", "vision_model.", "visual.", "vision_embed", "multi_modal_projector.",
          "audio_tower.", "embed_vision.", "embed_audio.", "mtp."}) {
      if (pattern.starts_with(start)) return true;
    }
    if (pattern.ends_with("rotary_emb.inv_freq") || pattern.ends_with(".input_scale")) return true;
    if (family_.skips != nullptr && family_.skips(in_, pattern)) return true;
    return (name.layer && *name.layer >= in_.sizes.all_layers()) || (tied_ && pattern == "lm_head.weight");
  }
  void collect(const std::string& whole, const Checkpoint::Entry& entry, TensorPlans& out) {
    const bool of_mtp = in_.sizes.mtp_layers > 0 && whole.starts_with("mtp.");
    const detail::CanonicalName name(of_mtp ? detail::name_of_mtp(whole, in_.sizes.layers) : whole);
    if (is_companion(name.pattern)) return;
    if (is_skipped(name)) {
      out.skipped.push_back(whole);
      return;
    }
    bool known = false;
    for (std::size_t t = 0; t < family_.tables.size(); ++t) {
      for (std::size_t r = 0; r < family_.tables[t].size(); ++r) {
        const TensorRule& rule = family_.tables[t][r];
        if (rule.from != name.pattern) continue;
        Stack& stack = stacks_[{name.layer ? *name.layer + 1 : 0, t, r}];
        stack.rule = &rule;
        stack.name = name.fill(rule.to);
        const bool fresh = stack.parts.emplace(name.part.value_or(0), entry).second;
        MICA_CHECK(fresh, file, where(entry), ": another tensor has the same meaning");
        known = true;
      }
    }
    MICA_CHECK(known, unsupported, where(entry), " has no place in a model of the family ", family_.arch);
  }

  /// A reranker's output: the rows of its answers. They take the place of an output matrix.
  [[nodiscard]] TensorPlan plan_answers() {
    const auto find = [&](std::string_view name) {
      return std::find_if(stacks_.begin(), stacks_.end(),
                          [&](const auto& s) { return s.second.name == name; });
    };
    const auto output = find("output.weight");
    const auto from = output != stacks_.end() ? output : find("token_embd.weight");
    MICA_CHECK(from != stacks_.end(), file, in_.config.path(), ": no output matrix to take answers from");
    TensorPlan plan = plan_stack(from->second);
    plan.name = "cls.output.weight";
    plan.rows = in_.answers;
    for (const std::uint32_t row : plan.rows) {
      MICA_CHECK(row < plan.dims[1], file, in_.config.path(), ": token ", row, " of ", plan.dims[1], " rows");
    }
    plan.dims[1] = plan.rows.size();
    if (output != stacks_.end()) stacks_.erase(output);
    return plan;
  }

  [[nodiscard]] TensorPlan plan_stack(const Stack& stack) const {
    TensorPlan plan;
    const Checkpoint::Entry& first = stack.parts.begin()->second;
    plan.name = stack.name;
    plan.source = first.tensor->name;
    plan.change = stack.rule->change;
    for (const auto& [index, entry] : stack.parts) {
      MICA_CHECK(index == plan.stored.parts.size(), file, where(entry), ": the one before it, number ",
                 plan.stored.parts.size(), ", is missing");
      MICA_CHECK(entry.tensor->shape == first.tensor->shape, file, where(entry),
                 ": the first of its kind has ", first.tensor->shape_text());
      plan.stored.parts.push_back(entry);
    }
    const bool stacked =
        stack.rule->from.find('#', detail::layer_prefix(stack.rule->from)) != std::string_view::npos;
    const bool of_experts = stacked && stack.rule->from.find("experts") != std::string_view::npos;
    MICA_CHECK(!of_experts || plan.stored.parts.size() == in_.sizes.experts, file, where(first), ": ",
               plan.stored.parts.size(), " experts have one; ", in_.config.path(), " says ",
               in_.sizes.experts);
    detail::check_shape(*first.tensor, stack.rule->shape, in_.sizes, where(first));
    if (stack.rule->from.ends_with("_blocks")) {
      plan_blocks(plan, first);
    } else {
      plan_values(plan, stack);
      if (stacked && plan.dims.size() == 2) plan.dims.push_back(plan.stored.parts.size());
      plan.format = formats_.of(plan.dims.size(), plan.width(), stack.rule->keep);
    }
    return plan;
  }

  void plan_values(TensorPlan& plan, const Stack& stack) const {
    const Checkpoint::Entry& first = stack.parts.begin()->second;
    for (const auto& [index, entry] : stack.parts) {
      const Dtype type = entry.tensor->dtype;
      MICA_CHECK(type != Dtype::U8 && type != Dtype::BOOL, unsupported, where(entry), " is ", info(type).name,
                 ", which is no type of weights; a quantised checkpoint?");
    }
    const std::vector<std::uint64_t> shape = detail::squeezed(first.tensor->shape, stack.rule->shape);
    MICA_CHECK(shape.size() <= 3 && first.tensor->bytes > 0, file, where(first),
               ": needed are 1 to 3 dimensions above 0");
    StoredMatrices& m = plan.stored;
    m.per_part = shape.size() == 3 ? shape[0] : 1;
    m.rows = shape.size() == 1 ? shape[0] : shape[shape.size() - 2];
    m.columns = shape.size() == 1 ? 1 : shape.back();
    MICA_CHECK(m.rows <= UINT32_MAX && m.columns <= UINT32_MAX, limit, where(first),
               " is larger than any known model");
    find_scales(m);
    MICA_CHECK(m.scales.empty() || !plan.change.transposed, unsupported, where(first),
               " has eight-bit values and is stored transposed");
    const std::uint64_t rows = plan.change.transposed ? m.columns : m.rows;
    const std::uint64_t columns = plan.change.transposed ? m.rows : m.columns;
    plan.rows = indices(plan.change.rows, rows, in_.config, in_.sizes, where(first));
    plan.columns = indices(plan.change.columns, columns, in_.config, in_.sizes, where(first));
    const std::uint64_t padded = plan.change.padded ? std::max(rows, in_.sizes.vocabulary) : rows;
    const std::uint64_t kept = plan.rows.empty() ? padded : plan.rows.size();
    if (shape.size() == 1) {
      plan.dims = {kept};
      return;
    }
    plan.dims = {plan.columns.empty() ? columns : plan.columns.size(), kept};
    if (shape.size() == 3) plan.dims.push_back(shape[0]);
  }

  void plan_blocks(TensorPlan& plan, const Checkpoint::Entry& entry) const {
    const std::vector<std::uint64_t>& shape = entry.tensor->shape;
    std::string name = entry.tensor->name;
    name.replace(name.size() - 6, 6, "scales");
    const Checkpoint::Entry* const scales = checkpoint_.find(name);
    MICA_CHECK(entry.tensor->dtype == Dtype::U8 && shape.size() == 4, file, where(entry),
               " is no tensor of MXFP4 blocks");
    MICA_CHECK(scales != nullptr && scales->tensor->dtype == Dtype::U8 &&
                   scales->tensor->shape == std::vector<std::uint64_t>(shape.begin(), shape.end() - 1),
               file, where(entry), ": its scales, '", escaped(name), "', are missing or of another shape");
    plan.origin = Origin::blocks;
    plan.format = format::MXFP4::id;
    plan.stored.per_part = shape[0];
    plan.stored.rows = shape[1];
    plan.stored.columns = shape[2];
    plan.stored.scales = {*scales};
    plan.rows = indices(plan.change.rows, shape[1], in_.config, in_.sizes, where(entry));
    plan.dims = {shape[2] * 32, plan.rows.empty() ? shape[1] : plan.rows.size(), shape[0]};
  }

  /// Eight-bit floats come with a scale for the whole, each row, or blocks of 128 by 128. Parts of one tensor
  /// may have different types.
  void find_scales(StoredMatrices& m) const {
    const auto is_scaled = [](const Checkpoint::Entry& part) { return info(part.tensor->dtype).bytes == 1; };
    if (std::none_of(m.parts.begin(), m.parts.end(), is_scaled)) return;
    for (const Checkpoint::Entry& part : m.parts) {
      if (!is_scaled(part)) {
        m.scales.emplace_back();
        continue;
      }
      const Checkpoint::Entry* scales = checkpoint_.find(part.tensor->name + "_scale_inv");
      if (scales == nullptr) scales = checkpoint_.find(part.tensor->name + "_scale");
      MICA_CHECK(scales != nullptr, unsupported, where(part), " has eight-bit values and no scale");
      const auto fits = [](std::uint64_t parts, std::uint64_t n) {
        return parts == 1 || parts == n || parts == ceil_div(n, std::uint64_t{128});
      };
      const std::vector<std::uint64_t>& grid = scales->tensor->shape;
      const std::uint64_t down = grid.empty() ? 1 : grid[0];
      const std::uint64_t across = grid.size() < 2 ? 1 : grid[1];
      MICA_CHECK(grid.size() <= 2 && m.per_part == 1 && fits(down, m.rows) && fits(across, m.columns),
                 unsupported, where(*scales), " does not scale ", where(part),
                 " as a whole, by rows, or in blocks of 128 by 128");
      m.scales.emplace_back(*scales);
    }
  }

  void require_whole() const {
    std::vector<bool> seen(static_cast<std::size_t>(in_.sizes.all_layers()), false);
    for (const auto& [place, stack] : stacks_) {
      if (std::get<0>(place) > 0) seen[static_cast<std::size_t>(std::get<0>(place) - 1)] = true;
    }
    const auto hole = std::find(seen.begin(), seen.end(), false);
    MICA_CHECK(hole == seen.end(), file, in_.config.path(), ": key 'num_hidden_layers' is ", in_.sizes.layers,
               ", and there is no tensor of layer ", hole - seen.begin(),
               "; a safetensors file may be missing");
  }
  [[nodiscard]] static std::string where(const Checkpoint::Entry& entry) {
    return join(entry.file->path(), ": tensor '", escaped(entry.tensor->name), "' of shape ",
                entry.tensor->shape_text());
  }

  const Checkpoint& checkpoint_;
  const Family& family_;
  const FamilyInput& in_;
  const TargetFormat& formats_;
  bool tied_;
  std::map<Place, Stack> stacks_;
};

}  // namespace mica::convert
