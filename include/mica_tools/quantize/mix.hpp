// SPDX-License-Identifier: Apache-2.0
//
// From a recipe to a format for every tensor of a model: rules (mix_rules.hpp), the exceptions of the caller,
// and the widths of rows. Reads names, shapes and a few numbers of the metadata; no weights.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/gguf/reader.hpp"
#include "mica_tools/quantize/mix_rules.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::quantize {

/// The caller's exceptions from the recipe.
struct MixOptions {
  std::optional<format::Id> head = {};       // of output.weight, or of the embedding that stands for it
  std::optional<format::Id> embedding = {};  // of the token embedding
  bool pure = false;                         // the recipe's base for everything
  bool leave_head = false;                   // output.weight stays as it is
  bool importance = false;                   // an importance matrix will be used
  format::Table formats = format::known;     // those that may be named here
  /// The format for a name; empty: that of the recipe.
  std::function<std::optional<format::Id>(std::string_view)> format_of = {};
};

namespace detail {

/// What stands in for formats whose blocks are longer than a row: the nearest one with blocks of 32.
struct StandIn {
  format::Id format;
  format::Id instead;
};
inline constexpr auto stand_ins = [] {
  using format::IQ4_NL, format::Q4_0, format::Q5_0, format::Q5_1, format::Q8_0;
  return std::array{StandIn{format::IQ1_S::id, IQ4_NL::id},   StandIn{format::IQ1_M::id, IQ4_NL::id},
                    StandIn{format::IQ2_XXS::id, IQ4_NL::id}, StandIn{format::IQ2_XS::id, IQ4_NL::id},
                    StandIn{format::IQ2_S::id, IQ4_NL::id},   StandIn{format::IQ3_XXS::id, IQ4_NL::id},
                    StandIn{format::IQ3_S::id, IQ4_NL::id},   StandIn{format::IQ4_XS::id, IQ4_NL::id},
                    StandIn{format::Q2_K::id, Q4_0::id},      StandIn{format::Q3_K::id, Q4_0::id},
                    StandIn{format::TQ1_0::id, Q4_0::id},     StandIn{format::TQ2_0::id, Q4_0::id},
                    StandIn{format::Q1_0::id, Q4_0::id},      StandIn{format::Q2_0::id, Q4_0::id},
                    StandIn{format::Q4_K::id, Q5_0::id},      StandIn{format::Q5_K::id, Q5_1::id},
                    StandIn{format::Q6_K::id, Q8_0::id}};
}();

}  // namespace detail

/// The format itself when it divides rows of that width; else the nearest one with smaller blocks; F16 when
/// there is none. Raises ErrorCode::usage for one that is not in the table.
[[nodiscard]] inline format::Id format_that_fits(format::Id id, std::uint64_t width,
                                                 format::Table formats = format::known) {
  const format::Info* const info = formats.find(id);
  MICA_CHECK(info != nullptr, usage, "format ", id.text(), " is not known; known: ", formats.names());
  if (width % info->block_size == 0) return id;
  for (const auto& [format, instead] : detail::stand_ins)
    if (format == id && width % format::info(instead).block_size == 0) return instead;
  return format::F16::id;
}

/// Whether a block of a tensor is useless without importance, because it has too few bits.
[[nodiscard]] constexpr bool needs_importance(format::Id id, Recipe recipe, TensorRole role) noexcept {
  if (role == TensorRole::head || role == TensorRole::embedding) return false;
  if (id == format::Q2_K::id) return recipe == Recipe::Q2_K_S;
  constexpr std::array few = {format::IQ3_XXS::id, format::IQ2_XXS::id, format::IQ2_XS::id,
                              format::IQ2_S::id,   format::IQ1_M::id,   format::IQ1_S::id};
  return std::find(few.begin(), few.end(), id) != few.end();
}

namespace detail {

/// Chooses for one tensor after the other, and counts those of a role.
class Chooser {
 public:
  Chooser(std::span<const gguf::TensorInfo> tensors, const MixFacts& facts, Recipe recipe,
          const MixOptions& options)
      : recipe_(recipe), options_(options), facts_(facts) {
    for (const gguf::TensorInfo& tensor : tensors) {
      const TensorRole role = role_of(tensor.name);
      values_ += role == TensorRole::value ? 1 : 0;
      tied_ = tied_ && role != TensorRole::head;
    }
  }

  [[nodiscard]] format::Id choose(const gguf::TensorInfo& tensor) {
    const TensorRole role = role_of(tensor.name);
    if (!is_quantizable(tensor) || (options_.leave_head && role == TensorRole::head)) return tensor.format.id;
    if (role == TensorRole::embedding && options_.embedding) return *options_.embedding;
    if (role == TensorRole::head && options_.head) return *options_.head;
    const auto wanted = options_.format_of ? options_.format_of(tensor.name) : std::nullopt;
    const format::Id base = info(recipe_).base;
    if (wanted) return format_that_fits(*wanted, tensor.width(), options_.formats);
    const bool mixed = !options_.pure && is_quantized(base);
    return format_that_fits(mixed ? mixture(tensor, role) : base, tensor.width());
  }

 private:
  [[nodiscard]] format::Id mixture(const gguf::TensorInfo& tensor, TensorRole role) {
    if (role == TensorRole::head || (tied_ && role == TensorRole::embedding)) return head(tensor);
    if (recipe_ == Recipe::MXFP4_MOE && tensor.dims[2] > 1) return format::MXFP4::id;
    if (recipe_ == Recipe::MXFP4_MOE) return format::Q8_0::id;
    if (role == TensorRole::embedding) return info(recipe_).embedding;
    return format_by_rule(recipe_, role, place(tensor, role), facts_);
  }

  [[nodiscard]] format::Id head(const gguf::TensorInfo& tensor) const {
    if (options_.head) return *options_.head;
    const bool odd = tensor.width() % format::info(info(recipe_).base).block_size != 0;
    return facts_.falcon || odd ? format::Q8_0::id : info(recipe_).head;
  }

  /// Values are counted. Other roles too, but where there are experts, a layer may have several tensors of a
  /// role or none, and the layer's number counts; recipes below three bits count all the same.
  [[nodiscard]] MixPlace place(const gguf::TensorInfo& tensor, TensorRole role) {
    const std::size_t counted = counts_[static_cast<std::size_t>(role)]++;
    if (role == TensorRole::value) return {counted, values_};
    const bool by_layer = facts_.experts > 1 && !has(lowest, recipe_);
    return {by_layer ? layer_of(tensor.name).value_or(0) : counted, facts_.layers};
  }

  Recipe recipe_;
  const MixOptions& options_;
  MixFacts facts_;
  std::size_t values_ = 0;
  bool tied_ = true;                      // until there is a head
  std::array<std::size_t, 10> counts_{};  // by TensorRole
};

/// Whether a model is one of the two of 70 billion weights that share keys and values eightfold.
[[nodiscard]] inline bool is_of_70b(std::string_view family, std::size_t layers, std::size_t heads,
                                    std::size_t kv_heads) noexcept {
  return layers == 80 && heads != kv_heads && (family == "llama" || family == "qwen2");
}

/// Tensors by layer and name: files have them in any order, and the choice must not depend on the order.
[[nodiscard]] inline std::vector<std::size_t> by_layer_and_name(std::span<const gguf::TensorInfo> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto rank = [](const std::string& name) {
    const auto layer = layer_of(name);
    return layer ? std::int64_t{*layer} : std::int64_t{-1};
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::int64_t of_a = rank(tensors[a].name);
    const std::int64_t of_b = rank(tensors[b].name);
    return of_a != of_b ? of_a < of_b : tensors[a].name < tensors[b].name;
  });
  return order;
}

}  // namespace detail

/// The facts that rules use. A model without a key has none of the traits.
[[nodiscard]] inline MixFacts mix_facts(const gguf::Metadata& metadata, bool importance) {
  MixFacts facts;
  facts.importance = importance;
  const auto family = metadata.get<std::string>("general.architecture").value_or("");
  const auto number = [&](std::string_view key) {
    return metadata.get<std::uint32_t>(join(family, ".", key)).value_or(0);
  };
  facts.layers = number("block_count");
  facts.experts = number("expert_count");
  const std::size_t layers = std::max<std::size_t>(facts.layers, 1);
  const auto first = [&](std::string_view key) -> std::size_t {
    const auto each = metadata.get_each<std::uint32_t>(join(family, ".", key), layers);
    return each.empty() ? 0 : each.front();
  };
  const std::size_t heads = first("attention.head_count");
  const std::size_t kv_heads =
      metadata.contains(join(family, ".attention.head_count_kv")) ? first("attention.head_count_kv") : heads;
  facts.heads_per_kv_head = kv_heads == 0 ? 0 : heads / kv_heads;
  facts.falcon = family == "falcon";
  facts.of_70b = detail::is_of_70b(family, facts.layers, heads, kv_heads);
  return facts;
}

/// A format for each of the tensors of a model, in their order. Tensors that are not to be quantised keep
/// theirs. Needs names, shapes and formats alone: there need not be a file yet.
[[nodiscard]] inline std::vector<format::Id> choose_formats(std::span<const gguf::TensorInfo> tensors,
                                                            const MixFacts& facts, Recipe recipe,
                                                            const MixOptions& options) {
  std::vector<format::Id> formats(tensors.size());
  detail::Chooser chooser(tensors, facts, recipe, options);
  for (const std::size_t i : detail::by_layer_and_name(tensors)) formats[i] = chooser.choose(tensors[i]);
  return formats;
}

/// The same for those of a document.
[[nodiscard]] inline std::vector<format::Id> choose_formats(const gguf::Document& document, Recipe recipe,
                                                            const MixOptions& options) {
  return choose_formats(document.tensors(), mix_facts(document.metadata(), options.importance), recipe,
                        options);
}

}  // namespace mica::quantize
