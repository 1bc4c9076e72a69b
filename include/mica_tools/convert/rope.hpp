// SPDX-License-Identifier: Apache-2.0
//
// Rotary embedding as config.json describes it, in the old spelling (`rope_theta` beside `rope_scaling`) and
// the new (`rope_parameters`, for models with windows one set for each kind of layer).
#pragma once

#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/keys.hpp"

#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// The rotation of full-attention layers, and the base of windowed ones where it differs.
struct Rope {
  double base = 10000.0;              ///< above 0
  std::optional<double> window_base;  ///< empty: layers with a window have the same
  double partial = 1.0;               ///< share of a head that is rotated
  std::string type = "default";       ///< of the scaling
  const Json* scaling = nullptr;      ///< its numbers
};

namespace detail {

[[nodiscard]] inline std::string rope_type(const Config& config, const Json& scaling) {
  for (const char* key : {"rope_type", "type"}) {
    const Json* const type = find_member(scaling, key);
    if (type == nullptr) continue;
    MICA_CHECK(type->is_string(), file, config.where("rope_scaling"), ": '", key, "' is no text");
    const auto text = type->get<std::string>();
    return text == "su" ? "longrope" : text == "mrope" ? "default" : text;
  }
  return "default";
}

[[nodiscard]] inline double member_real(const Config& config, const Json* object, std::string_view key,
                                        double otherwise) {
  const Json* const found = find_member(object, key);
  return found == nullptr ? otherwise : config.as_real(*found, key);
}

}  // namespace detail

/// Reads both spellings. The answer refers to the config.
[[nodiscard]] inline Rope read_rope(const Config& config, const Defaults& defaults) {
  Rope rope;
  rope.base = config.real_or("rope_theta", defaults.rope_base);
  rope.partial = config.real_or("partial_rotary_factor", 1.0);
  if (config.has("rope_local_base_freq")) rope.window_base = config.real("rope_local_base_freq");
  const Json* const all = config.find("rope_parameters");
  rope.scaling = all == nullptr ? config.find("rope_scaling") : all;
  if (const Json* const full = find_member(all, "full_attention")) {
    rope.scaling = full;
    if (const Json* const window = find_member(*all, "sliding_attention"))
      rope.window_base = detail::member_real(config, window, "rope_theta", defaults.rope_base);
  }
  if (rope.scaling != nullptr) {
    rope.base = detail::member_real(config, rope.scaling, "rope_theta", rope.base);
    rope.partial = detail::member_real(config, rope.scaling, "partial_rotary_factor", rope.partial);
    rope.type = detail::rope_type(config, *rope.scaling);
  }
  MICA_CHECK(rope.base > 0, file, config.where("rope_theta"), " is ", rope.base, "; allowed: above 0");
  MICA_CHECK(rope.partial > 0 && rope.partial <= 1, file, config.where("partial_rotary_factor"), " is ",
             rope.partial, "; allowed: above 0, and up to 1");
  return rope;
}

/// A number of the scaling; required.
[[nodiscard]] inline double scaling_real(const Config& config, const Rope& rope, std::string_view key) {
  const Json* const found = find_member(rope.scaling, key);
  MICA_CHECK(found != nullptr, file, config.where("rope_scaling"), ": '", key, "' is missing; type '",
             rope.type, "' needs it");
  return config.as_real(*found, key);
}

/// The context before the scaling: in the scaling, or beside it.
[[nodiscard]] inline std::uint64_t original_context(const Config& config, const Rope& rope) {
  const Json* const found = find_member(rope.scaling, "original_max_position_embeddings");
  return found == nullptr ? config.count("original_max_position_embeddings")
                          : config.as_count(*found, "original_max_position_embeddings");
}

namespace detail {

inline void write_yarn(const Config& config, const Rope& rope, Keys& keys) {
  keys.text("rope.scaling.type", "yarn");
  keys.real("rope.scaling.factor", scaling_real(config, rope, "factor"));
  keys.count("rope.scaling.original_context_length", original_context(config, rope));
  constexpr std::pair<std::string_view, std::string_view> optional[] = {
      {"extrapolation_factor", "rope.scaling.yarn_ext_factor"},
      {"attention_factor", "rope.scaling.yarn_attn_factor"},
      {"beta_fast", "rope.scaling.yarn_beta_fast"},
      {"beta_slow", "rope.scaling.yarn_beta_slow"},
  };
  for (const auto& [theirs, ours] : optional) {
    if (const Json* const found = find_member(*rope.scaling, theirs))
      keys.real(ours, config.as_real(*found, theirs));
  }
}

}  // namespace detail

/// Base, rotated dimensions and the scalings that are keys: linear, yarn. Others are tensors and the family's
/// business. Raises ErrorCode::unsupported for a scaling that no key describes.
inline void write_rope(const Config& config, const Rope& rope, const Sizes& sizes, Keys& keys) {
  keys.real("rope.freq_base", rope.base);
  if (rope.window_base) keys.real("rope.freq_base_swa", *rope.window_base);
  keys.count("rope.dimension_count",
             static_cast<std::uint64_t>(static_cast<double>(sizes.head_dim) * rope.partial));
  if (rope.type == "linear") {
    keys.text("rope.scaling.type", "linear");
    keys.real("rope.scaling.factor", scaling_real(config, rope, "factor"));
  } else if (rope.type == "yarn") {
    detail::write_yarn(config, rope, keys);
  } else {
    MICA_CHECK(rope.type == "default" || rope.type == "llama3" || rope.type == "longrope" ||
                   rope.type == "proportional",
               unsupported, config.where("rope_scaling"), ": type '", escaped(rope.type),
               "'; known: default, linear, yarn, llama3, longrope, proportional");
  }
}

/// Llama 3.1's factors by which each frequency is divided: 1 for short waves, `factor` for long ones, a blend
/// between.
[[nodiscard]] inline std::vector<float> llama3_factors(const Config& config, const Rope& rope,
                                                       const Sizes& sizes) {
  const double factor = scaling_real(config, rope, "factor");
  const double low = scaling_real(config, rope, "low_freq_factor");
  const double high = scaling_real(config, rope, "high_freq_factor");
  const auto context = static_cast<double>(original_context(config, rope));
  MICA_CHECK(factor > 0 && low > 0 && high >= low, file, config.where("rope_scaling"), ": factor ", factor,
             ", low_freq_factor ", low, ", high_freq_factor ", high,
             "; needed: 0 < low <= high and a factor above 0");
  std::vector<float> out;
  for (std::uint64_t i = 0; i + 1 < sizes.head_dim; i += 2) {
    const double exponent = static_cast<double>(i) / static_cast<double>(sizes.head_dim);
    const double waves = context / (2 * std::numbers::pi * std::pow(rope.base, exponent));
    const double blend = waves >= high ? 1.0 : waves <= low ? 0.0 : (waves - low) / (high - low);
    out.push_back(static_cast<float>(1 / ((1 - blend) / factor + blend)));
  }
  return out;
}

}  // namespace mica::convert
