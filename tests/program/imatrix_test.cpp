// SPDX-License-Identifier: Apache-2.0
//
// mica imatrix on a small model: what is collected, and that quantize takes it.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include "mica/gguf/reader.hpp"
#include "mica_tools/quantize/importance.hpp"

#include <string>

namespace mica::test::imatrix_test {
namespace {

std::string story_model(const char* what) {
  const auto path = shared_dir(what, "models/stories260K.gguf");
  return path ? path->string() : std::string();
}

}  // namespace

TEST_CASE("every matrix of every layer is counted once for each token that was read") {
  const std::string model = story_model("collecting importance");
  const auto text = shared_dir("collecting importance", "models/stories260K.txt");
  if (model.empty() || !text) return;
  const TemporaryFolder folder;
  const std::string out = folder.path("imatrix.gguf");
  const Ran ran =
      mica({"imatrix", model, "-f", text->string(), "-c", "32", "--chunks", "2", "-o", out, "--chunk", "7"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out.empty());
  const auto importance = quantize::read_importance(out);
  CHECK(importance.chunk_count == 2);
  CHECK(importance.chunk_size == 32);
  CHECK(importance.datasets == std::vector<std::string>{text->string()});
  CHECK(importance.entries.size() == 5 * 7);
  for (const auto& [name, entry] : importance.entries) {
    const auto& the_name = name;
    CAPTURE(the_name);
    CHECK(entry.counts == std::vector<float>{64});
  }
  // What goes into q, k and v is the same.
  CHECK(importance.find("blk.3.attn_q.weight")->sums == importance.find("blk.3.attn_v.weight")->sums);
  CHECK(importance.find("blk.3.attn_q.weight")->sums != importance.find("blk.2.attn_q.weight")->sums);
  const std::string quantized = folder.path("q.gguf");
  CHECK(mica({"quantize", "--imatrix", out, model, quantized, "Q4_0"}).code == 0);
  CHECK(gguf::open(quantized).metadata().require<std::uint32_t>("quantize.imatrix.entries_count") == 35);
}

TEST_CASE("importance does not depend on threads or steps, and the head is collected on demand") {
  const std::string model = story_model("collecting importance of a head");
  if (model.empty()) return;
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 20; ++i) text += "Once upon a time there was a girl. ";
  const std::string file = folder.file("text.txt", text);
  const std::string a = folder.path("a.gguf");
  const std::string b = folder.path("b.gguf");
  const std::string c = folder.path("c.gguf");
  CHECK(mica({"imatrix", model, "-f", file, "-c", "64", "-o", a, "-t", "1"}).code == 0);
  CHECK(mica({"imatrix", model, "-f", file, "-c", "64", "-o", b, "-t", "2", "--chunk", "5"}).code == 0);
  CHECK(mica({"imatrix", model, "-f", file, "-c", "64", "-o", c, "--process-output"}).code == 0);
  CHECK(contents(a) == contents(b));
  const auto with = quantize::read_importance(c);
  CHECK(with.entries.size() == quantize::read_importance(a).entries.size() + 1);
}

TEST_CASE("texts that are too short, and none, are refused") {
  const std::string model = story_model("texts for importance");
  if (model.empty()) return;
  const TemporaryFolder folder;
  CHECK(mica({"imatrix", model, "-o", folder.path("x.gguf")}).code == 2);
  const Ran ran = mica({"imatrix", model, "-p", "short", "-o", folder.path("x.gguf")});
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "a window takes 512"));
  CHECK(folder.entries() == 0);
}

}  // namespace mica::test::imatrix_test

#endif
