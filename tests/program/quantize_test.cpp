// SPDX-License-Identifier: Apache-2.0
//
// mica quantize, from a file of the test's own to one that is read again.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include "mica/gguf/reader.hpp"
#include "quantize/small_model.hpp"

#include <string>

namespace mica::test::quantize_test {
namespace {

/// A file with the matrices of two layers.
std::string small_file(const TemporaryFolder& folder) {
  SmallModel model(2);
  model.add("token_embd.weight", {256, 16}).add_layer(0).add_layer(1);
  const std::string path = folder.path("f32.gguf");
  model.writer().write(path);
  return path;
}

std::string format_in(const std::string& path, std::string_view tensor) {
  return std::string(gguf::open(path).tensor(tensor).format.name);
}

TEST_CASE("a file is quantised to a mixture, and the file says which") {
  const TemporaryFolder folder;
  const std::string in = small_file(folder);
  const std::string out = folder.path("q4.gguf");
  const Ran ran = mica({"quantize", in, out, "Q4_K_M"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "bits per weight"));
  CHECK(format_in(out, "token_embd.weight") == "Q6_K");
  CHECK(format_in(out, "blk.0.attn_q.weight") == "Q4_K");
  CHECK(format_in(out, "blk.0.attn_norm.weight") == "F32");
  CHECK(gguf::open(out).metadata().require<std::uint32_t>("general.file_type") == 15);
  CHECK(mica({"inspect", out}).code == 0);
}

TEST_CASE("a dry run shows every tensor and the sum, and writes nothing") {
  const TemporaryFolder folder;
  const std::string in = small_file(folder);
  const Ran ran = mica({"quantize", "--dry-run", in, "q8_0"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, "blk.1.attn_q.weight"));
  CHECK(has(ran.out, "17 tensors, 33280 weights: 133120 bytes, 32.00 bits per weight"));
  CHECK(folder.entries() == 1);
  const Ran json = mica({"quantize", "--dry-run", in, folder.path("never.gguf"), "Q8_0", "--json"});
  CHECK(
      has(json.out, "{\"name\":\"token_embd.weight\",\"shape\":[256,16],\"from\":\"F32\",\"to\":\"Q8_0\","));
  CHECK(has(json.out, "\"bits_per_weight\":8.8615"));
  CHECK(folder.entries() == 1);
}

TEST_CASE("wishes for single tensors come before the mixture") {
  const TemporaryFolder folder;
  const std::string in = small_file(folder);
  const std::string out = folder.path("q.gguf");
  const Ran ran = mica({"quantize", "--tensor-type", "blk\\.0\\..*q=Q8_0", "--tensor-type", "ATTN_Q=q5_0",
                        "--token-embedding-type", "Q4_0", in, out, "Q4_K_S", "1"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(format_in(out, "blk.0.attn_q.weight") == "Q8_0");
  CHECK(format_in(out, "blk.1.attn_q.weight") == "Q5_0");
  CHECK(format_in(out, "token_embd.weight") == "Q4_0");
  CHECK(format_in(out, "blk.1.attn_k.weight") == "Q4_K");
  REQUIRE(mica({"quantize", "--pure", "-t", "2", in, out, "Q4_K_M"}).code == 0);
  CHECK(format_in(out, "token_embd.weight") == "Q4_K");
}

TEST_CASE("what makes no sense is refused with its way out") {
  const TemporaryFolder folder;
  const std::string in = small_file(folder);
  const std::string out = folder.path("q.gguf");
  CHECK(has(mica({"quantize", in, out, "Q4_KM"}).err, "Did you mean Q4_K_M?"));
  for (const std::string& pattern :
       {std::string(100'000, 'a'), std::string(30'000, '(') + std::string(30'000, ')')})
    CHECK(has(mica({"quantize", in, out, "Q8_0", "--tensor-type", pattern + "=Q4_0"}).err,
              "at most 1000 are allowed"));
  CHECK(has(mica({"quantize", in, out, "Q8_0", "--tensor-type", "(((=Q4_0"}).err,
            "--tensor-type: '(((' is not a valid regular expression"));
  CHECK(mica({"quantize", in, out}).code == 2);
  CHECK(mica({"quantize", in, "Q8_0"}).code == 2);
  CHECK(mica({"quantize"}).code == 2);
  CHECK(mica({"quantize", in, in, "Q8_0"}).code == 2);
  CHECK(mica({"quantize", in, out, "Q8_0", "--tensor-type", "x(=q4_0"}).code == 2);
  CHECK(mica({"quantize", in, out, "Q8_0", "--tensor-type", "x=q4_9"}).code == 2);
  CHECK(mica({"quantize", in, out, "Q8_0", "many"}).code == 2);
  CHECK(mica({"quantize", folder.path("none.gguf"), out, "Q8_0"}).code == 3);
  CHECK(mica({"quantize", "--imatrix", in, in, out, "Q8_0"}).code == 3);
  CHECK(folder.entries() == 1);
  REQUIRE(mica({"quantize", in, out, "Q8_0"}).code == 0);
  const Ran again = mica({"quantize", out, folder.path("again.gguf"), "Q4_0"});
  CHECK(again.code == 2);
  CHECK(has(again.err, "--allow-requantize"));
  CHECK(mica({"quantize", "--allow-requantize", out, folder.path("again.gguf"), "Q4_0"}).code == 0);
  for (const char* type : {"F32", "F16", "BF16"})
    CHECK(mica({"quantize", out, folder.path(type), type}).code == 0);
}

TEST_CASE("the types that are offered can be written, and those that need importance say so") {
  const TemporaryFolder folder;
  const std::string in = small_file(folder);
  const Ran unknown = mica({"quantize", in, folder.path("q.gguf"), "Q9"});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "Known: F32 BF16 F16 Q8_0 "));
  CHECK(has(unknown.err, " IQ1_S"));
  CHECK(has(mica({"synth", "stories-15m", "Q9", folder.path("s.gguf")}).err, " IQ1_S"));
  CHECK(mica({"quantize", in, "IQ1_S", "--dry-run"}).code == 0);
  CHECK(mica({"quantize", in, folder.path("iq3.gguf"), "IQ3_S"}).code == 0);
  CHECK(format_in(folder.path("iq3.gguf"), "blk.0.attn_q.weight") == "IQ3_S");
  const Ran refused = mica({"quantize", in, folder.path("iq1.gguf"), "IQ1_S"});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "--imatrix FILE"));
}

TEST_CASE("a model goes on as before in eight bits") {
  const auto model = shared_dir("a quantised story", "models/stories260K.gguf");
  if (!model) return;
  const TemporaryFolder folder;
  REQUIRE(mica({"quantize", model->string(), folder.path("q8.gguf"), "Q8_0"}).code == 0);
  const Ran ran = mica({"complete", folder.path("q8.gguf"), "Once upon", "-n", "4", "--temp", "0"});
  CHECK(ran.out == " a time, there\n");
}

}  // namespace
}  // namespace mica::test::quantize_test

#endif
