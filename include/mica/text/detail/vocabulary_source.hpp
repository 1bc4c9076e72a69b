// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a vocabulary: views of arrays of the caller, not copied and not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mica::text {

/// The tokenizer.* values of a file. Absent arrays are empty, absent numbers have no value.
struct VocabularySource {
  std::string_view model;                    // "llama" (SPM) or "gpt2" (byte-level BPE)
  std::string_view pre;                      // name of the pre-tokenizer, BPE only
  std::string_view name;                     // name of the whole model; some vocabularies are known by it
  std::span<const std::string_view> tokens;  // (n_tokens)
  std::span<const float> scores;             // (n_tokens) or empty
  std::span<const std::int32_t> types;       // (n_tokens) or empty: all normal
  std::span<const std::string_view> merges;  // "left right", best first
  std::optional<std::uint64_t> bos, eos, eot, eom, unknown, padding;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

}  // namespace mica::text
