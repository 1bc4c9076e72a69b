// SPDX-License-Identifier: Apache-2.0
//
// mica convert on a small folder: the plan, the file, and what is said when something is wrong.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include "convert/hf_folder.hpp"
#include "mica/gguf/reader.hpp"

#include <doctest/doctest.h>

#include <string>

namespace mica::test::convert_test {

TEST_CASE("a folder becomes one file, in its own type or in the asked one") {
  HfFolder folder;
  fill_small_llama(folder);
  const std::string dir = folder.write(), out = folder.path("out.gguf");
  const Ran ran = mica({"convert", dir, out, "--name", "small"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "llama, 21 tensors"));
  {
    const gguf::Document document = gguf::open(out);
    CHECK(document.metadata().require<std::string>("general.name") == "small");
    CHECK(document.tensor("blk.0.attn_q.weight").format.name == "BF16");
  }
  REQUIRE(mica({"convert", dir, out, "f16", "-q"}).code == 0);
  CHECK(gguf::open(out).tensor("blk.0.attn_q.weight").format.name == "F16");
}

TEST_CASE("a dry run shows every tensor and writes nothing") {
  HfFolder folder;
  fill_small_llama(folder);
  folder.tensors["vision_tower.patch.weight"] = numbered("BF16", {8});
  const std::string dir = folder.write();
  const Ran ran = mica({"convert", dir, folder.path("out.gguf"), "F32", "--dry-run"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, "blk.1.ffn_down.weight"));
  CHECK(has(ran.out, "12 x 8"));
  CHECK(has(ran.out, "left out: vision_tower.patch.weight"));
  CHECK_FALSE(std::filesystem::exists(folder.path("out.gguf")));
  const Ran machine = mica({"convert", dir, "--dry-run", "--json"});
  const auto plan = nlohmann::json::parse(machine.out);
  CHECK(plan["architecture"] == "llama");
  CHECK(plan["tensors"].size() == 21);
  CHECK(plan["left_out"][0] == "vision_tower.patch.weight");
  std::uint64_t bytes = 0;
  for (const auto& tensor : plan["tensors"]) bytes += tensor["bytes"].get<std::uint64_t>();
  CHECK(plan["bytes"] == bytes);
}

TEST_CASE("what cannot be converted ends with its own exit code and leaves no file") {
  HfFolder folder;
  fill_small_llama(folder);
  const std::string out = folder.path("out.gguf");
  std::string dir = folder.write();
  CHECK(mica({"convert"}).code == 2);
  CHECK(mica({"convert", dir}).code == 2);
  CHECK(mica({"convert", dir, out, "F16", "more"}).code == 2);
  const Ran mixture = mica({"convert", dir, out, "Q4_K_M"});
  CHECK(mixture.code == 2);
  CHECK(has(mixture.err, "mixtures: mica quantize"));
  CHECK(mica({"convert", folder.path("nowhere"), out}).code == 3);
  CHECK(mica({"convert", dir, folder.path("no/such/folder.gguf")}).code == 3);
  folder.config["model_type"] = "t5";
  folder.write();
  const Ran unknown = mica({"convert", dir, out});
  CHECK(unknown.code == 5);
  CHECK(has(unknown.err, "'t5'"));
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a folder whose file would be refused is refused before a byte is written") {
  const auto refused = [](auto&& damage, std::string_view named) {
    HfFolder folder;
    fill_small_llama(folder);
    damage(folder);
    const std::string dir = folder.write(), out = folder.path("out.gguf");
    for (const Words& more : {Words{}, Words{"--dry-run"}}) {
      const Ran ran = mica(Words{"convert", dir, out} + more);
      CHECK(ran.code == 3);
      CHECK(has(ran.err, dir));
      CHECK(has(ran.err, named));
      CHECK_FALSE(std::filesystem::exists(out));
    }
  };
  refused([](HfFolder& f) { f.tensors.erase("model.norm.weight"); }, "'output_norm.weight'");
  refused([](HfFolder& f) { f.tensors.erase("model.layers.1.self_attn.q_proj.weight"); },
          "'blk.1.attn_q.weight'");
  refused([](HfFolder& f) { f.config.erase("intermediate_size"); }, "feed_forward_length");
  refused([](HfFolder& f) { f.config["rms_norm_eps"] = -1; }, "layer_norm_rms_epsilon");
}

}  // namespace mica::test::convert_test

#endif
