// SPDX-License-Identifier: Apache-2.0
//
// Files for servers to have: small ones, shards, and the header of one that is too large to send.

#pragma once

#include "gguf/sample_file.hpp"
#include "quantize/hollow_model.hpp"
#include "remote/web_server.hpp"
#include "shared.hpp"

#include <utility>

namespace mica::test {

/// A file with one tensor, and a header of more than `bytes`.
inline WebFile small_file(std::size_t bytes = 100) {
  gguf::Writer writer;
  writer.set("general.architecture", "llama");
  writer.set("general.name", std::string(bytes, 'n'));
  const std::vector<std::byte> data(256);
  writer.add("w", format::F32::id, {64}, data);
  return WebFile(writer.bytes());
}

/// One of three shards, with a tensor each.
inline WebFile web_shard(std::uint16_t number, std::uint16_t count = 3) {
  gguf::Writer writer;
  if (number == 0) writer.set("general.architecture", "llama");
  writer.set("split.no", number);
  writer.set("split.count", count);
  writer.set("split.tensors.count", std::int32_t{count});
  const std::vector<std::byte> data(4);
  writer.add(join("w", int{number}), format::F32::id, {1}, data);
  return WebFile(writer.bytes());
}

/// What a server has of a 70B model of some 42 GB: the header, with a vocabulary of so many tokens and the
/// pairs that a byte-level BPE merges, which make most of a header, and a size.
inline WebFile large_file(std::size_t n_vocab, std::size_t merges) {
  HollowModel model = hollow_model("llama-70b", quantize::Recipe::Q4_K_M, n_vocab, merges);
  return {std::move(model.header), model.size};
}

}  // namespace mica::test
