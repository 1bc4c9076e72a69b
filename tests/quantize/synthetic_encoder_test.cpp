// SPDX-License-Identifier: Apache-2.0

#include "io/temporary_folder.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/assert.hpp"
#include "mica/exec/inline.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#include "mica/paging/mapped.hpp"
#include "mica/paging/resident.hpp"
#include "mica/runtime/embed_batch.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica_tools/synth/synthetic_model.hpp"
#include "quantize/small_shapes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mica::test::synthetic_encoder_test {
namespace {

using Family = arch::AnyOf<arch::All>;
using Model = Transformer<Family, WithKernels<kernel::Scalar>>;

/// A model without memory for caches, while it is told so.
struct ModelWithoutCaches : Model {
  using Model::Model;
  bool full = false;

  [[nodiscard]] Cache make_cache() const {
    MICA_CHECK(!full, budget, "no memory for a cache");
    return Model::make_cache();
  }
};

/// A small encoder with random weights, in a file of its own.
struct SmallFile {
  TemporaryFolder folder;
  gguf::Document document;

  SmallFile(std::string_view family, quantize::Recipe recipe) : document(write(family, recipe)) {}

 private:
  [[nodiscard]] gguf::Document write(std::string_view family, quantize::Recipe recipe) const {
    exec::Inline executor;
    const std::string path = folder.path("model.gguf");
    quantize::SyntheticModel(small_encoder(family), recipe).write(path, executor);
    return gguf::open(path);
  }
};

}  // namespace

TEST_CASE("a file of every encoder that can be synthesised embeds, to the length 1") {
  exec::Inline executor;
  for (const arch::FamilyTensors& family : arch::encoder_tensors) {
    CAPTURE(family.arch);
    for (const quantize::Recipe recipe : {quantize::Recipe::F32, quantize::Recipe::Q4_K_M}) {
      const SmallFile file(family.arch, recipe);
      Model model(file.document, executor, {.n_ctx = 64, .chunk = 64, .log = {}});
      Embedder<Model> embedder(model);
      std::vector<TokenId> ids;
      for (TokenId i = 0; i < 40; ++i) ids.push_back(i * 7);
      std::vector<float> row(embedder.width());
      REQUIRE(embedder.embed(ids, row) == model::StepStatus::ok);
      double squares = 0;
      for (const float x : row) squares += double{x} * x;
      CHECK(squares == doctest::Approx(1));
    }
  }
}

TEST_CASE("a text of any length has the same bits alone and beside others, by fast8 too") {
  exec::Inline executor;
  const SmallFile file("bert", quantize::Recipe::Q8_0);
  Model exact(file.document, executor, {.n_ctx = 64, .chunk = 64, .log = {}});
  Model fast8(file.document, executor, {.n_ctx = 64, .chunk = 64, .fast8 = true, .log = {}});
  Embedder<Model> rounded(fast8), plain(exact);
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 40; ++i) ids.push_back(i * 7);
  const std::span<const TokenId> all(ids);
  const std::span<const TokenId> texts[] = {all.first(3), all, all.subspan(5, 1)};
  std::vector<float> together(3 * rounded.width()), alone(rounded.width()), other(rounded.width());
  std::vector<float> plain_together(together.size());
  REQUIRE(rounded.embed(texts, {together.data(), 3, rounded.width()}) == model::StepStatus::ok);
  REQUIRE(plain.embed(texts, {plain_together.data(), 3, plain.width()}) == model::StepStatus::ok);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(rounded.embed(texts[i], alone) == model::StepStatus::ok);
    REQUIRE(plain.embed(texts[i], other) == model::StepStatus::ok);
    CHECK(std::equal(alone.begin(), alone.end(),
                     together.begin() + static_cast<std::ptrdiff_t>(i * alone.size())));
    CHECK(std::equal(other.begin(), other.end(),
                     plain_together.begin() + static_cast<std::ptrdiff_t>(i * other.size())));
    CHECK(alone != other);
    double cosine = 0;
    for (std::size_t k = 0; k < alone.size(); ++k) cosine += double{alone[k]} * other[k];
    CHECK(cosine > 0.99);
  }
}

TEST_CASE(
    "by fast8 weights that are rounded once, when they are read, give the bits of weights that are not") {
  exec::Inline executor;
  for (const char* const family : {"bert", "nomic-bert", "modern-bert"}) {
    const SmallFile file(family, quantize::Recipe::Q8_0);
    const ModelOptions options{.n_ctx = 64, .chunk = 64, .fast8 = true, .log = {}};
    Transformer<Family, WithKernels<kernel::Scalar>, WithPager<paging::Resident<>>> packs(file.document,
                                                                                          executor, options);
    Transformer<Family, WithKernels<kernel::Scalar>, WithPager<paging::Mapped<>>> maps(file.document,
                                                                                       executor, options);
    const std::vector<TokenId> ids = {1, 8, 3, 20, 9, 50, 2};
    std::vector<float> packed(packs.pooled_width()), mapped(packed.size());
    REQUIRE(Embedder(packs).embed(ids, packed) == model::StepStatus::ok);
    REQUIRE(Embedder(maps).embed(ids, mapped) == model::StepStatus::ok);
    CHECK(packed == mapped);
  }
}

TEST_CASE("a step of a text encoder has many texts, however short its context is") {
  exec::Inline executor;
  const SmallFile file("bert", quantize::Recipe::F32);
  Model model(file.document, executor, {.n_ctx = 16, .chunk = 64, .log = {}});
  CHECK(model.chunk() == 64);
  EmbedBatch<Model> batch(model, 8);
  CHECK(EmbedBatch<Model>::max_tokens(model) == 16);
  const std::vector<TokenId> ids(16, 5);
  std::vector<float> rows(4 * model.pooled_width());
  for (std::size_t i = 0; i < 4; ++i)
    batch.add(i, ids, {}, std::span(rows).subspan(i * model.pooled_width(), model.pooled_width()));
  REQUIRE(batch.step() == model::StepStatus::ok);
  CHECK(batch.completed().size() == 4);
}

TEST_CASE("a step has no more tiles of keys and values than its tokens fill") {
  exec::Inline executor;
  const SmallFile file("bert", quantize::Recipe::F32);
  Model model(file.document, executor, {.n_ctx = 32, .chunk = 64, .log = {}});
  EmbedBatch<Model> batch(model, 8);
  const std::vector<TokenId> ids(17, 5);
  std::vector<float> rows(5 * model.pooled_width());
  for (std::size_t i = 0; i < 5; ++i)
    batch.add(i, ids, {}, std::span(rows).subspan(i * model.pooled_width(), model.pooled_width()));
  for (const std::size_t completed : {2U, 2U, 1U}) {  // a text has two tiles of 16 tokens, and a step four
    REQUIRE(batch.step() == model::StepStatus::ok);
    CHECK(batch.completed().size() == completed);
  }
  CHECK(batch.empty());
}

TEST_CASE("a cancelled call ends before its next step, and a later one runs") {
  exec::Inline executor;
  const SmallFile file("bert", quantize::Recipe::F32);
  Model model(file.document, executor, {.n_ctx = 32, .chunk = 32, .log = {}});
  std::atomic<bool> cancel{true};
  Embedder<Model> embedder(model, {.cancel = &cancel});
  const std::vector<TokenId> ids(9, 5);
  std::vector<float> row(embedder.width(), 7.0f);
  CHECK(embedder.embed(ids, row) == model::StepStatus::ok);
  CHECK(row == std::vector<float>(row.size(), 7.0f));
  CHECK_FALSE(embedder.complete());
  cancel = false;
  CHECK(embedder.embed(ids, row) == model::StepStatus::ok);
  CHECK(row != std::vector<float>(row.size(), 7.0f));
}

TEST_CASE("texts of a call whose step raised are gone, and a later call gives its own rows") {
  exec::Inline executor;
  const SmallFile file("bert", quantize::Recipe::F32);
  ModelWithoutCaches model(file.document, executor, {.n_ctx = 32, .chunk = 64, .log = {}});
  Embedder<ModelWithoutCaches> embedder(model);
  const std::vector<TokenId> ids(9, 5), others(7, 3);
  std::vector<float> expected(embedder.width()), row(embedder.width(), 7.0f);
  REQUIRE(embedder.embed(others, expected) == model::StepStatus::ok);
  CHECK(embedder.complete());
  const std::vector<std::span<const TokenId>> texts(3, ids);
  std::vector<float> rows(3 * embedder.width(), 7.0f);
  model.full = true;
  CHECK(refusal([&] {
          static_cast<void>(embedder.embed(texts, {rows.data(), 3, embedder.width()}));
        }).code() == ErrorCode::budget);
  CHECK_FALSE(embedder.complete());
  model.full = false;
  REQUIRE(embedder.embed(others, row) == model::StepStatus::ok);
  CHECK(row == expected);
  CHECK(rows == std::vector<float>(rows.size(), 7.0f));  // no text of the first call was run
}

}  // namespace mica::test::synthetic_encoder_test
