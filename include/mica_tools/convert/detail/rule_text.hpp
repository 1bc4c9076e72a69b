// SPDX-License-Identifier: Apache-2.0
//
// Names and shapes of tensors as the tables of families have them: names without what a container added, and
// with # for their numbers; shapes as "q d" and the like.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/safetensor.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert::detail {

/// The maximum of heads for multi-token prediction: models have one to three.
inline constexpr std::uint64_t max_mtp_layers = 16;

/// The length of a pattern's beginning that names a layer, "encoder.layer.#"; 0 where there is none.
[[nodiscard]] inline std::size_t layer_prefix(std::string_view pattern) noexcept {
  for (const std::string_view prefix : {"layers.#", "encoder.layer.#", "encoder.layers.#"}) {
    if (pattern.starts_with(prefix)) return prefix.size();
  }
  return 0;
}

/// A name taken apart.
struct CanonicalName {
  std::string pattern;
  std::optional<std::uint64_t> layer, part;

  explicit CanonicalName(std::string_view name) {
    for (const std::string_view prefix : {"model.", "language_model.", "model.", "bert.", "roberta."}) {
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    }
    while (!name.empty()) {
      const std::size_t end = std::min(name.find('.'), name.size());
      add(name.substr(0, end));
      name.remove_prefix(std::min(end + 1, name.size()));
    }
  }

  /// A name of the same layer.
  [[nodiscard]] std::string fill(std::string_view to) const {
    std::string out(to);
    const std::size_t at = out.find('#');
    if (at != out.npos && layer) out.replace(at, 1, std::to_string(*layer));
    return out;
  }

 private:
  void add(std::string_view word) {
    if (!pattern.empty()) pattern += '.';
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || error != std::errc() || end != word.data() + word.size()) {
      const bool old = pattern.ends_with("LayerNorm.");  // files of TensorFlow's time
      pattern += old && word == "gamma" ? "weight" : old && word == "beta" ? "bias" : word;
      return;
    }
    pattern += '#';
    (layer_prefix(pattern) == pattern.size() ? layer : part) = number;
  }
};

/// A tensor of a head for multi-token prediction, with the name that it would have as a layer behind the
/// others: "mtp.layers.0.*" and "mtp.*" are of layer `layers`.
[[nodiscard]] inline std::string name_of_mtp(std::string_view name, std::uint64_t layers) {
  constexpr std::string_view first = "mtp.layers.";
  if (!name.starts_with(first)) return join("layers.", layers, ".", name);
  name.remove_prefix(first.size());
  std::uint64_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || layer >= max_mtp_layers) return join(first, name);
  return join("layers.", layers + layer, std::string_view(end, name.data() + name.size()));
}

/// What a word of a shape stands for; empty for *.
[[nodiscard]] inline std::optional<std::uint64_t> wanted_size(std::string_view word, const Sizes& sizes) {
  const std::pair<std::string_view, std::uint64_t> words[] = {{"d", sizes.width},
                                                              {"q", sizes.q_width()},
                                                              {"k", sizes.kv_width()},
                                                              {"h", sizes.head_dim},
                                                              {"e", sizes.experts},
                                                              {"1", 1},
                                                              {"16", 16}};
  for (const auto& [name, size] : words) {
    if (name == word) return size;
  }
  return std::nullopt;
}

/// Raises ErrorCode::file when the tensor has another shape; an empty rule lets all pass.
inline void check_shape(const Safetensor& tensor, std::string_view rule, const Sizes& sizes,
                        const std::string& where) {
  if (rule.empty()) return;
  std::string needed;
  std::size_t dim = 0;
  bool fits = true;
  while (!rule.empty()) {
    const std::size_t end = std::min(rule.find(' '), rule.size());
    const auto wanted = wanted_size(rule.substr(0, end), sizes);
    fits = fits && dim < tensor.shape.size() && (!wanted || tensor.shape[dim] == *wanted);
    needed += join(needed.empty() ? "" : ", ", wanted ? std::to_string(*wanted) : std::string("any"));
    rule.remove_prefix(std::min(end + 1, rule.size()));
    ++dim;
  }
  MICA_CHECK(fits && dim == tensor.shape.size(), file, where, "; config.json makes it [", needed, "]");
}

/// The shape without the dimensions of one element that the rule has as "1"; at least one dimension stays.
[[nodiscard]] inline std::vector<std::uint64_t> squeezed(const std::vector<std::uint64_t>& shape,
                                                         std::string_view rule) {
  std::vector<std::uint64_t> out;
  for (const std::uint64_t dim : shape) {
    const std::size_t end = std::min(rule.find(' '), rule.size());
    if (dim != 1 || rule.substr(0, end) != "1") out.push_back(dim);
    rule.remove_prefix(std::min(end + 1, rule.size()));
  }
  if (out.empty()) out = {1};
  return out;
}

}  // namespace mica::convert::detail
