// SPDX-License-Identifier: Apache-2.0
//
// How GGUF files name the tensors of a transformer.
#pragma once

#include "mica/base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace mica::arch::tensor_names {

inline constexpr std::string_view token_embd = "token_embd.weight";    // (n_vocab, width)
inline constexpr std::string_view output_norm = "output_norm.weight";  // (width)
inline constexpr std::string_view output = "output.weight";            // (n_vocab, width); absent: tied
inline constexpr std::string_view rope_freqs = "rope_freqs.weight";    // (dims / 2)

/// "blk.3.attn_q.weight"
[[nodiscard]] inline std::string layer(std::size_t index, std::string_view part) {
  return join("blk.", index, ".", part, ".weight");
}

}  // namespace mica::arch::tensor_names
