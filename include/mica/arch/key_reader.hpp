// SPDX-License-Identifier: Apache-2.0
//
// Keys of one family, read with their ranges. A value out of range is refused by key, number found and
// numbers allowed.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/gguf/document.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::arch {

/// The maxima of keys: a file with a larger number is refused.
inline constexpr std::size_t max_layers = 4096;
inline constexpr std::size_t max_width = std::size_t{1} << 20;
inline constexpr std::size_t max_heads = std::size_t{1} << 14;
inline constexpr std::size_t max_experts = std::size_t{1} << 12;
inline constexpr std::size_t max_context = std::size_t{1} << 30;

/// Reads `<arch>.<key>` of one document.
class KeyReader {
 public:
  /// arch: general.architecture, which is the part of keys before the first dot. The document outlives this.
  /// Raises ErrorCode::unsupported for a document of another architecture.
  KeyReader(gguf::DocumentRef document, std::string_view arch)
      : document_(document), prefix_(join(arch, ".")) {
    const auto found = document_.metadata().get<std::string_view>("general.architecture");
    MICA_CHECK(!found || *found == arch, unsupported, file(), ": architecture '", escaped(*found),
               "'; needed: '", arch, "'");
  }

  /// The whole key of a name: "llama.block_count".
  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  /// A count in [min, max]; required.
  [[nodiscard]] std::size_t count(std::string_view name, std::uint64_t min, std::uint64_t max) const {
    return in_range(name, document_.metadata().require<std::uint64_t>(key(name)), min, max);
  }
  /// A count in [min, max]; `otherwise` when the file has no such key.
  [[nodiscard]] std::size_t count_or(std::string_view name, std::uint64_t min, std::uint64_t max,
                                     std::size_t otherwise) const {
    const auto found = document_.metadata().get<std::uint64_t>(key(name));
    return found ? in_range(name, *found, min, max) : otherwise;
  }
  /// One count per layer in [min, max], given as one number or as an array; required.
  [[nodiscard]] std::vector<std::size_t> counts(std::string_view name, std::size_t layers, std::uint64_t min,
                                                std::uint64_t max) const {
    MICA_CHECK(document_.metadata().contains(key(name)), file, file(), ": key '", key(name),
               "' is missing; needed: one number, or one for each layer");
    return counts_or(name, layers, min, max, 0);
  }
  /// The same; `otherwise` for every layer when the file has no such key.
  [[nodiscard]] std::vector<std::size_t> counts_or(std::string_view name, std::size_t layers,
                                                   std::uint64_t min, std::uint64_t max,
                                                   std::size_t otherwise) const {
    const auto found = document_.metadata().get_each<std::uint64_t>(key(name), layers);
    std::vector<std::size_t> out(layers, otherwise);
    for (std::size_t i = 0; i < found.size(); ++i) out[i] = in_range(name, found[i], min, max);
    return out;
  }
  /// A finite positive number; `otherwise` when the file has no such key.
  [[nodiscard]] double positive_or(std::string_view name, double otherwise) const {
    const auto found = document_.metadata().get<double>(key(name));
    if (found) require_positive(name, *found);
    return found.value_or(otherwise);
  }
  /// A finite positive number; required.
  [[nodiscard]] double positive(std::string_view name) const {
    const double found = document_.metadata().require<double>(key(name));
    require_positive(name, found);
    return found;
  }
  /// One flag per layer, given as an array, as one flag, or as a number p: every p-th layer is false. Empty
  /// without a key.
  [[nodiscard]] std::vector<bool> pattern(std::string_view name, std::size_t layers) const {
    const auto found = document_.metadata().find(key(name));
    if (!found) return {};
    if (found->is_array() || found->type() == gguf::ValueType::boolean) {
      return document_.metadata().get_each<bool>(key(name), layers);
    }
    const std::size_t every = count(name, 1, max_layers);
    std::vector<bool> flags(layers, false);
    for (std::size_t i = 0; i < layers; ++i) flags[i] = every > 1 && (i + 1) % every != 0;
    return flags;
  }
  /// A boolean, or a text; `otherwise` when the file has no such key.
  [[nodiscard]] bool flag_or(std::string_view name, bool otherwise) const {
    return document_.metadata().get<bool>(key(name)).value_or(otherwise);
  }
  [[nodiscard]] std::string text_or(std::string_view name, std::string_view otherwise) const {
    return std::string(document_.metadata().get<std::string_view>(key(name)).value_or(otherwise));
  }

  /// The document, and its path as error texts name it.
  [[nodiscard]] const gguf::Document& document() const noexcept { return document_; }
  [[nodiscard]] const std::string& file() const noexcept { return document_.metadata().file(); }

 private:
  [[nodiscard]] std::size_t in_range(std::string_view name, std::uint64_t found, std::uint64_t min,
                                     std::uint64_t max) const {
    MICA_CHECK(found >= min && found <= max, file, file(), ": key '", key(name), "' is ", found,
               "; allowed: ", min, " to ", max);
    return static_cast<std::size_t>(found);
  }
  void require_positive(std::string_view name, double found) const {
    MICA_CHECK(std::isfinite(found) && found > 0, file, file(), ": key '", key(name), "' is ", found,
               "; allowed: finite numbers above 0");
  }

  const gguf::Document& document_;
  std::string prefix_;
};

}  // namespace mica::arch
