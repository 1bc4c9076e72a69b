// SPDX-License-Identifier: Apache-2.0
//
// Small models as files and as packed folders.

#pragma once

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica_tools/pack/pack.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace mica::test {

/// A model of every kind: dense, with a tied embedding, with experts in pieces of their own and fused.
inline std::map<std::string, std::vector<std::byte>> packable_models() {
  Recipe tied = blocks_of(format::Q4_K::id);
  tied.tied = true;
  HybridRecipe fused = of_q8_0(with_experts());
  fused.fused_experts = true;
  return {{"dense", TinyModel(blocks_of(format::Q8_0::id)).bytes()},
          {"odd", TinyModel(Recipe{.layers = 3}).bytes()},
          {"tied", TinyModel(tied).bytes()},
          {"experts", TinyHybrid(of_q8_0(with_experts())).bytes()},
          {"fused", TinyHybrid(fused).bytes()}};
}

/// A file, and the folder that it is packed to.
struct PackedModel {
  TemporaryFolder folder;
  std::string file, packed;
  gguf::Document source;

  explicit PackedModel(std::span<const std::byte> bytes)
      : file(folder.file("model.gguf", bytes)), packed(folder.path("packed")), source(gguf::open(file)) {}

  /// on_bytes may throw.
  pack::Outcome pack(pack::OnBytes on_bytes = {}) const {
    pack::Plan plan = pack::make_plan(source);
    return pack::pack(source, plan, packed, alloc::Aligned(), std::move(on_bytes));
  }
  [[nodiscard]] std::string in(std::string_view name) const { return io::in_folder(packed, name); }
  /// Names and contents of everything in the folder.
  [[nodiscard]] std::map<std::string, std::string> everything() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(packed))
      all[entry.path().filename().string()] = contents(entry.path().string());
    return all;
  }
  void verify() const { pack::verify(gguf::open(packed), alloc::Aligned()); }
};

/// Changes one byte of a file; the same call changes it back.
inline void flip(const std::string& path, std::uint64_t at, unsigned char bits) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int c = file.get();
  REQUIRE(c != EOF);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(static_cast<unsigned char>(c) ^ bits));
  REQUIRE(file.good());
}

}  // namespace mica::test
