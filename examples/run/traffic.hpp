// SPDX-License-Identifier: Apache-2.0
//
// What a token costs a machine: the bytes that writing one reads, and the multiply-adds that reading one takes. Beside the
// bandwidth and the arithmetic of a machine they say how near a measurement is to what is possible.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/kv/elements.hpp"

#include <cstdint>

namespace mica::program {

/// Bytes that one decoded token reads when `tokens` are in the context: every weight it uses once, and the keys and values
/// that it sees. Of an embedding that is not the head it reads a row, of experts the chosen ones.
[[nodiscard]] std::uint64_t decode_bytes(const gguf::Document& document, const arch::Config& config,
                                         const kv::AnyElements<>& elements, std::size_t tokens);

/// Multiply-adds of one token of a prompt, `tokens` being in the context: matrices without the head, scores, values.
[[nodiscard]] std::uint64_t prefill_macs(const gguf::Document& document, const arch::Config& config,
                                         std::size_t tokens);

}  // namespace mica::program
