// SPDX-License-Identifier: Apache-2.0
//
// The verb logits on every model file of the kit: the bytes that the library computes.

#include "program/program.hpp"

#if defined(MICA_PROGRAM) && __has_include(<nlohmann/json.hpp>)
#include "conformance/run.hpp"

#include <string>
#include <vector>

namespace mica::test::program_test {
namespace {

std::string listed(const std::vector<std::uint32_t>& ids) {
  std::string text;
  for (const std::uint32_t id : ids) text.append(text.empty() ? "" : ",").append(std::to_string(id));
  return text;
}

/// Logits after every token of a prompt, as the program writes them.
std::vector<float> program_logits(const Kit& kit, const nlohmann::json& entry, const nlohmann::json& wanted) {
  const TemporaryFolder folder;
  const std::string path = folder.path("rows");
  const Ran ran = mica({"logits", kit.path(entry["file"]), "--ids", listed(kit.ids(entry, wanted["prompt"])),
                        "--positions", "all", "-o", path, "-q", "--cache-type-k", "f32", "--cache-type-v",
                        "f32", "-c", std::to_string(wanted["n_ctx"].get<std::size_t>())});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return read_floats(path);
}

TEST_CASE("the program writes the logits that the library computes, for every file of the kit") {
  const auto root = shared_dir("logits through the program", "conformance");
  if (!root) return;
  const Kit kit(*root);
  for (const auto& entry : kit.models()) {
    const std::string file = entry["file"];
    CAPTURE(file);
    Run<Ordinary> run(kit, entry);
    for (const auto& wanted : entry["rows"]) {
      // One prompt of each file, and of a file whose rope depends on the context also one with the longer.
      const bool longer = wanted["prompt"] == "long" && entry["arch"] == "phi3";
      if (wanted["prompt"] != "medium" && !longer) continue;
      CHECK(same_bits(program_logits(kit, entry, wanted), run.prompt(wanted)));
    }
  }
}

}  // namespace
}  // namespace mica::test::program_test

#endif
