// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/quantize/quantize.hpp"

#include "io/temporary_folder.hpp"
#include "mica/exec/inline.hpp"
#include "quantize/small_model.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

namespace mica::test::quantize_test {
namespace {

using format::Id;
using quantize::Job;
using quantize::JobOptions;
using quantize::Recipe;

SmallModel two_layers() {
  SmallModel model(2);
  model.add("token_embd.weight", {256, 16}).add_layer(0).add_layer(1);
  return model;
}

}  // namespace

TEST_CASE("a file is written in other formats, with the keys of the first and those that say so") {
  const TemporaryFolder folder;
  SmallModel model = two_layers();
  const auto document = model.document();
  exec::Inline alone;
  const Job job(document, {.recipe = Recipe::Q4_K_M});
  quantize::quantize(job, folder.path("q.gguf"), alone);
  const auto outcome = gguf::open(folder.path("q.gguf"));
  CHECK(outcome.metadata().require<std::uint32_t>("general.file_type") == 15);
  CHECK(outcome.metadata().require<std::uint32_t>("general.quantization_version") == 2);
  CHECK(outcome.metadata().require<std::uint32_t>("llama.block_count") == 2);
  CHECK_FALSE(outcome.metadata().contains("quantize.imatrix.file"));
  REQUIRE(outcome.tensors().size() == document.tensors().size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < outcome.tensors().size(); ++i) {
    CHECK(outcome.tensors()[i].name == document.tensors()[i].name);
    CHECK(outcome.tensors()[i].format.id == job.format(i).id);
    CHECK(outcome.tensors()[i].bytes == job.bytes(i));
    bytes += outcome.tensors()[i].bytes;
  }
  CHECK(bytes == job.bytes());
  CHECK(outcome.tensor("token_embd.weight").format.id == format::Q6_K::id);
  CHECK(outcome.tensor("blk.1.attn_norm.weight").format.id == format::F32::id);
}

TEST_CASE("an importance matrix leaves its traces in the keys and in the bytes") {
  const TemporaryFolder folder;
  SmallModel model = two_layers();
  const auto document = model.document();
  exec::Inline alone;
  quantize::Importance importance;
  std::vector<float> sums(256);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = i % 8 == 0 ? 50.0F : 0.1F;
  importance.entries["blk.0.attn_q.weight"] = {sums, {2}};
  importance.datasets = {"text.txt"};
  importance.chunk_count = 3;
  quantize::quantize(Job(document, {.recipe = Recipe::Q4_K_S}), folder.path("plain.gguf"), alone);
  quantize::quantize(
      Job(document, {.recipe = Recipe::Q4_K_S, .importance = &importance, .importance_file = "im.gguf"}),
      folder.path("weighted.gguf"), alone);
  const auto plain = gguf::open(folder.path("plain.gguf"));
  const auto weighted = gguf::open(folder.path("weighted.gguf"));
  CHECK(weighted.metadata().require<std::string>("quantize.imatrix.file") == "im.gguf");
  CHECK(weighted.metadata().require<std::string>("quantize.imatrix.dataset") == "text.txt");
  CHECK(weighted.metadata().require<std::uint32_t>("quantize.imatrix.entries_count") == 1);
  CHECK(weighted.metadata().require<std::uint32_t>("quantize.imatrix.chunks_count") == 3);
  const auto bytes_of = [](const gguf::Document& file, const char* name) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(file.tensor(name).bytes));
    file.read(file.tensor(name), bytes);
    return bytes;
  };
  CHECK(bytes_of(plain, "blk.0.attn_q.weight") != bytes_of(weighted, "blk.0.attn_q.weight"));
  CHECK(bytes_of(plain, "blk.1.attn_q.weight") == bytes_of(weighted, "blk.1.attn_q.weight"));
}

TEST_CASE("importance of another model is refused before anything is written") {
  const TemporaryFolder folder;
  SmallModel model = two_layers();
  const auto document = model.document();
  exec::Inline alone;
  quantize::Importance importance;
  importance.entries["blk.0.attn_q.weight"] = {{1, 2, 3}, {1}};
  const Job job(document, {.recipe = Recipe::Q4_K_S, .importance = &importance});
  const Error error = refusal([&] {
    quantize::quantize(job, folder.path("q.gguf"), alone);
    return 0;
  });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "another model"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("what is quantised already is quantised again only on demand, and a copy needs none") {
  const TemporaryFolder folder;
  SmallModel model = two_layers();
  const auto document = model.document();
  exec::Inline alone;
  quantize::quantize(Job(document, {.recipe = Recipe::Q8_0}), folder.path("q8.gguf"), alone);
  const auto q8 = gguf::open(folder.path("q8.gguf"));
  const Error error = refusal([&] {
    Job(q8, {.recipe = Recipe::Q4_0}).check();
    return 0;
  });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "--allow-requantize"));
  Job(q8, {.recipe = Recipe::Q8_0}).check();  // nothing changes
  quantize::quantize(Job(q8, {.recipe = Recipe::Q4_0, .allow_requantize = true}), folder.path("q4.gguf"),
                     alone);
  CHECK(gguf::open(folder.path("q4.gguf")).tensor("blk.0.attn_q.weight").format.id == format::Q4_0::id);
  quantize::quantize(Job(q8, {}), folder.path("copy.gguf"), alone);
  const auto copy = gguf::open(folder.path("copy.gguf"));
  CHECK(copy.metadata().require<std::uint32_t>("general.file_type") == 7);
  CHECK(contents(folder.path("copy.gguf")) == contents(folder.path("q8.gguf")));
}

TEST_CASE("formats that need importance are refused without it, by the name of the flag") {
  SmallModel model = two_layers();
  const auto document = model.document();
  const auto refused = [&](Recipe recipe) {
    const Job job(document, {.recipe = recipe});
    return refusal([&] {
      job.check();
      return 0;
    });
  };
  for (const Recipe recipe : {Recipe::Q2_K_S, Recipe::IQ1_S, Recipe::IQ1_M, Recipe::IQ2_XXS, Recipe::IQ2_XS,
                              Recipe::IQ2_S, Recipe::IQ2_M, Recipe::IQ3_XXS, Recipe::IQ3_XS}) {
    CAPTURE(quantize::info(recipe).name);
    const Error error = refused(recipe);
    CHECK(error.code() == ErrorCode::usage);
    CHECK(mentions(error, "--imatrix FILE", "mica imatrix"));
  }
  Job(document, {.recipe = Recipe::IQ3_S}).check();
  Job(document, {.recipe = Recipe::IQ3_M}).check();
}

TEST_CASE("a file is never written over the one that is read") {
  const TemporaryFolder folder;
  SmallModel model = two_layers();
  model.writer().write(folder.path("f32.gguf"));
  const auto document = gguf::open(folder.path("f32.gguf"));
  exec::Inline alone;
  const Job job(document, {.recipe = Recipe::Q8_0});
  const Error error = refusal([&] {
    quantize::quantize(job, folder.path("./f32.gguf"), alone);
    return 0;
  });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(folder.entries() == 1);
}

TEST_CASE("an exception of the progress ends the work and leaves nothing") {
  struct Enough {};
  const TemporaryFolder folder;
  SmallModel model = two_layers();
  const auto document = model.document();
  exec::Inline alone;
  const Job job(document, {.recipe = Recipe::Q8_0});
  CHECK_THROWS_AS(
      quantize::quantize(job, folder.path("q.gguf"), alone, [](std::uint64_t) { throw Enough{}; }), Enough);
  CHECK(folder.entries() == 0);
}

TEST_CASE("a number that is not finite leaves no file") {
  const TemporaryFolder folder;
  SmallModel model;
  model.add("blk.0.attn_q.weight", {256, 4});
  model.last()[5] = std::numeric_limits<float>::infinity();
  const auto document = model.document();
  exec::Inline alone;
  const Job job(document, {.recipe = Recipe::Q4_0});
  CHECK(refusal([&] {
          quantize::quantize(job, folder.path("q.gguf"), alone);
          return 0;
        }).code() == ErrorCode::file);
  CHECK(folder.entries() == 0);
}

TEST_CASE("shards become one file, or as many as they were") {
  const auto first =
      shared_dir("quantising shards", "conformance/split/llama3-gqa.Q4_K_M-00001-of-00003.gguf");
  if (!first) return;
  const TemporaryFolder folder;
  const auto document = gguf::open(first->string());
  exec::Inline alone;
  const Job job(document, {.recipe = Recipe::Q8_0, .allow_requantize = true});
  quantize::quantize(job, folder.path("one.gguf"), alone);
  quantize::quantize_shards(job, folder.path("many"), alone);
  const auto one = gguf::open(folder.path("one.gguf"));
  const auto many = gguf::open(folder.path("many-00002-of-00003.gguf"));
  CHECK(folder.entries() == 4);
  CHECK_FALSE(one.metadata().contains("split.count"));
  CHECK(many.metadata().require<std::uint16_t>("split.count") == 3);
  CHECK(many.metadata().require<std::uint32_t>("general.file_type") == 7);
  REQUIRE(one.tensors().size() == many.tensors().size());
  for (const gguf::TensorInfo& tensor : one.tensors()) {
    std::vector<std::byte> a(static_cast<std::size_t>(tensor.bytes)), b(a);
    one.read(tensor, a);
    many.read(many.tensor(tensor.name), b);
    CHECK(a == b);
  }
}

}  // namespace mica::test::quantize_test
