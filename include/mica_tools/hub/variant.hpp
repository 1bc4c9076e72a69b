// SPDX-License-Identifier: Apache-2.0
//
// The variants of a model in a repository: a file, or all shards of one, for each quantisation. The
// quantisation is read from file names, as their makers write it:
//
//   Qwen3-8B-Q4_K_M.gguf   qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf   Q8_0/model-Q8_0.gguf
#pragma once

#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica/gguf/detail/shard_name.hpp"
#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/quantize/recipe.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::hub {

namespace detail {

/// The path of a GGUF file without the number of its shard and the ending: one for all files of a model.
[[nodiscard]] inline std::string prefix_of(std::string_view path) {
  const auto shard = gguf::ShardName::parse(path);
  return shard ? shard->prefix
               : std::string(path.substr(0, path.size() - std::min<std::size_t>(path.size(), 5)));
}

}  // namespace detail

/// The files of one quantisation of a model.
struct Variant {
  std::string quant;         // in upper case; if the file name has none, the file name
  std::vector<File> files;   // of a sharded model the shards in order
  std::uint64_t bytes = 0;   // of all files
  std::uint32_t shards = 1;  // of the whole model, by the names of the files

  /// The path that opens it.
  [[nodiscard]] const std::string& path() const noexcept { return files.front().path; }
  /// The path without the number of the shard and the ending.
  [[nodiscard]] std::string prefix() const { return detail::prefix_of(path()); }
  /// "m-Q8_0 has 2 of 3 shards; missing: 2", "m-Q8_0.gguf is listed twice"; empty: no fault.
  [[nodiscard]] std::string fault() const;
};

namespace detail {

/// Whether a path is a file of a variant, or another shard of its model.
[[nodiscard]] inline bool is_shard_of(std::string_view path, const Variant& variant) {
  const auto shard = gguf::ShardName::parse(path);
  if (shard) return shard->count == variant.shards && shard->prefix == variant.prefix();
  return std::any_of(variant.files.begin(), variant.files.end(),
                     [&](const File& file) { return file.path == path; });
}

[[nodiscard]] inline std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

/// Whether a word in upper case is a quantisation: Q4_K_M, IQ2_XXS, TQ1_0, BF16, MXFP4.
[[nodiscard]] inline bool is_quant(std::string_view word) noexcept {
  for (const std::string_view plain : {"F16", "BF16", "F32", "FP16", "FP32", "MXFP4", "MXFP4_MOE"}) {
    if (word == plain) return true;
  }
  const std::size_t q = word.find('Q');
  if (q > 1 || q + 1 >= word.size() || word[q + 1] < '0' || word[q + 1] > '9') return false;
  if (q == 1 && word[0] != 'I' && word[0] != 'T') return false;
  return std::all_of(word.begin(), word.end(),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

/// The last word of a file name that is a quantisation, together with "UD-" before it, which some makers
/// write.
[[nodiscard]] inline std::string quant_in(std::string_view stem) {
  const std::string name = upper(stem);
  for (std::size_t end = name.size(); end > 0;) {
    const std::size_t before = name.find_last_of("-.", end - 1);
    const std::size_t begin = before == name.npos ? 0 : before + 1;
    const std::string word = name.substr(begin, end - begin);
    if (is_quant(word)) {
      const bool dynamic = begin >= 4 && name.compare(begin - 4, 4, "-UD-") == 0;
      return dynamic ? "UD-" + word : word;
    }
    end = before == name.npos ? 0 : before;
  }
  return {};
}

/// Whether a GGUF file is a vision tower or an importance matrix, and not a model.
[[nodiscard]] inline bool is_companion(std::string_view path) {
  const std::string name = remote::detail::lower(path.substr(path.rfind('/') + 1));
  return name.find("mmproj") != name.npos || name.find("imatrix") != name.npos;
}

/// Variants as a list, "Q4_K_M (4.4 GiB), Q8_0 (8.1 GiB)": at most 40 of them.
[[nodiscard]] inline std::string listed(std::span<const Variant> variants) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(variants.size(), 40); ++i) {
    text += join(text.empty() ? "" : ", ", escaped(variants[i].quant, 80), " (",
                 budget::size_text(variants[i].bytes), ")");
  }
  return variants.size() > 40 ? join(text, " and ", variants.size() - 40, " more") : text;
}

}  // namespace detail

inline std::string Variant::fault() const {
  constexpr std::size_t max_listed = 8;
  std::string missing;
  std::size_t found = 0, listed = 0;
  std::uint32_t next = 1;  // the number that is expected
  const auto miss_until = [&](std::uint32_t end) {
    for (; next < end && listed < max_listed; ++next) missing += join(listed++ == 0 ? "" : ", ", next);
    next = end;
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    if (i > 0 && files[i - 1].path == path) return escaped(path, 200) + " is listed twice";
    const auto shard = gguf::ShardName::parse(path);
    const std::uint32_t number = shard ? shard->number : 1;
    miss_until(number);
    next = number + 1;
    ++found;
  }
  miss_until(shards + 1);
  if (missing.empty()) return {};
  return join(escaped(prefix(), 200), " has ", found, " of ", shards, " shards; missing: ", missing,
              shards - found > max_listed ? ", ..." : "");
}

namespace detail {

/// The quantisation that the path of a file names, without regard to shards; the stem of its name if it has none.
[[nodiscard]] inline std::string quant_of(std::string_view path) {
  const std::string whole = prefix_of(path);
  const std::string_view prefix = whole;
  const std::size_t slash = prefix.rfind('/');
  const std::string_view stem = prefix.substr(slash + 1);  // npos + 1 is 0
  std::string quant = quant_in(stem);
  if (quant.empty() && slash != prefix.npos) quant = quant_in(prefix.substr(0, slash));
  return quant.empty() ? std::string(stem) : quant;
}

}  // namespace detail

/// The variants of the files, complete or not, the largest first. Files that are no models, such as mmproj files,
/// are left out.
[[nodiscard]] inline std::vector<Variant> all_variants_of(std::span<const File> files) {
  std::map<std::pair<std::string, std::uint32_t>, Variant> groups;  // by prefix and number of shards
  for (const File& file : files) {
    if (!remote::detail::lower(file.path).ends_with(".gguf") || detail::is_companion(file.path)) continue;
    const auto shard = gguf::ShardName::parse(file.path);
    Variant& variant = groups[{detail::prefix_of(file.path), shard ? shard->count : 1}];
    variant.shards = shard ? shard->count : 1;
    variant.files.push_back(file);
  }
  std::vector<Variant> variants;
  for (auto& [key, variant] : groups) {
    std::sort(variant.files.begin(), variant.files.end(),
              [](const File& a, const File& b) { return a.path < b.path; });
    variant.quant = detail::quant_of(variant.path());
    for (const File& file : variant.files) variant.bytes += file.bytes;
    variants.push_back(std::move(variant));
  }
  std::sort(variants.begin(), variants.end(), [](const Variant& a, const Variant& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.path() < b.path();
  });
  return variants;
}

/// The variants without a fault. Of variants with the same prefix, the one with the fewest shards.
[[nodiscard]] inline std::vector<Variant> variants_of(std::span<const File> files) {
  std::vector<Variant> variants = all_variants_of(files);
  std::erase_if(variants, [](const Variant& each) { return !each.fault().empty(); });
  std::map<std::string, std::uint32_t> fewest;  // shards, by prefix
  for (const Variant& each : variants) {
    const auto [found, is_new] = fewest.emplace(each.prefix(), each.shards);
    if (!is_new) found->second = std::min(found->second, each.shards);
  }
  std::erase_if(variants, [&](const Variant& each) { return each.shards != fewest.at(each.prefix()); });
  return variants;
}

/// The variant that a name means by its quantisation or by a file, of a sharded model by any shard; null if
/// there is none, or if the name has neither. Quantisations compare without case, then as recipes: MXFP4_MOE
/// is MXFP4, Q4_K is Q4_K_M. Raises ErrorCode::usage for a quantisation that several files have.
[[nodiscard]] inline const Variant* find_variant(std::span<const Variant> variants, const Name& name) {
  const Variant* found = nullptr;
  if (!name.file.empty()) {
    for (const Variant& each : variants) {
      if (detail::is_shard_of(name.file, each)) return &each;
    }
    return nullptr;
  }
  if (name.quant.empty()) return nullptr;
  const auto find = [&](auto&& is_it) {
    for (const Variant& each : variants) {
      if (!is_it(each)) continue;
      MICA_CHECK(found == nullptr, usage, name.text(),
                 ": several files have this quantisation: ", escaped(found->path(), 200), ", ",
                 escaped(each.path(), 200), "; choose one by its path: hf.co/", name.repo, "/FILE");
      found = &each;
    }
  };
  const std::string quant = detail::upper(name.quant);
  find([&](const Variant& each) { return detail::upper(each.quant) == quant; });
  const auto recipe = detail::is_quant(quant) ? quantize::find_recipe(quant) : std::nullopt;
  if (found == nullptr && recipe)
    find([&](const Variant& each) { return quantize::find_recipe(each.quant) == recipe; });
  return found;
}

/// Raises ErrorCode::file for a name that fits no variant of a repository. The message has the faults of
/// shards, and lists the available variants.
[[noreturn]] inline void refuse_unknown(std::span<const File> files, const Name& name) {
  const std::vector<Variant> variants = variants_of(files);
  std::string faults;
  for (const Variant& each : all_variants_of(files)) {
    const std::string fault = each.fault();
    const bool is_meant = name.quant.empty() && name.file.empty()
                              ? variants.empty()
                              : find_variant(std::span(&each, 1), name) != nullptr;
    if (is_meant && !fault.empty()) faults += join(faults.empty() ? "" : "; ", fault);
  }
  const std::string others = variants.empty() ? std::string("; ask its publisher, or name another repository")
                                              : join("; there are: ", detail::listed(variants));
  MICA_CHECK(faults.empty(), file, name.text(), ": ", faults, others);
  MICA_CHECK(!variants.empty(), file, name.text(),
             ": the repository has no GGUF model; one that has is often called ", escaped(name.repo, 200),
             "-GGUF, and mica convert makes a file of a folder of safetensors");
  raise(ErrorCode::file, name.text(), ": there is no ",
        name.file.empty() ? join("quantisation ", escaped(name.quant, 60)) : std::string("file of that name"),
        others);
}

}  // namespace mica::hub
