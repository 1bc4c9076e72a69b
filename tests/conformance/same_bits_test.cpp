// SPDX-License-Identifier: Apache-2.0
//
// The program's own Transformer on files of the conformance kit: the same bits for any threads, chunk, storage and
// pager, of every family, and for a model in one file or in shards.

#include "archetype/kv_storage.hpp"
#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/exec/team.hpp"
#include "mica/model/chosen.hpp"
#include "mica_tools/pack/pack.hpp"
#include "model/run_model.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace mica::test::same_bits_test {
namespace {

using Model = model::Chosen<arch::AnyOf<arch::All>, alloc::Huge, exec::Team>;

struct Way {
  std::size_t threads = 1;
  std::size_t chunk = 512;
  kv::Choice kv = kv::Choice::segmented;
  paging::Choice weights = paging::Choice::mapped;
  kv::Element element = kv::Element::f16;
  std::uint64_t weights_bytes = 0;
};

/// One of each family.
const std::vector<std::string> families = {
    "gemma.F16",         "gemma2.Q8_0",  "gemma3.Q8_0",     "gemma4.Q8_0", "gpt-oss.MXFP4_MOE",
    "llama-mha-spm.F16", "llama4.Q8_0",  "mixtral.Q4_K_M",  "phi3.Q8_0",   "qwen2.BF16",
    "qwen2-yarn.F16",    "qwen3.IQ4_XS", "qwen3moe.Q4_K_M", "qwen35.Q8_0", "qwen3next.Q8_0"};

/// Logits after every token of a prompt that passes the boundary of an attention chunk.
std::vector<float> run(const std::string& path, const Way& way) {
  const gguf::Document document = gguf::open(path);
  exec::Team team(way.threads);
  model::Choice choice;
  choice.kv = way.kv;
  choice.weights = way.weights;
  choice.weights_bytes = way.weights_bytes;
  choice.cache_type_k = choice.cache_type_v = way.element;
  const ModelOptions options{.n_ctx = 512, .chunk = way.chunk, .logits_rows = 512, .log = {}};
  auto model = model::make_chosen<Model>(document, team, options, {}, choice);
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(270, model.config().n_vocab), way.chunk);
}

}  // namespace

TEST_CASE("files of the kit give the same bits for any threads, chunk, storage and pager") {
  for (const std::string file : {"llama3-gqa.F32.gguf", "llama3-gqa.Q4_K_M.gguf"}) {
    const auto path = shared_dir("same bits of " + file, "conformance/models/" + file);
    if (!path) continue;
    CAPTURE(file);
    const auto expected = run(*path, {});
    CHECK(same_bits(expected, run(*path, {.chunk = 1})));
    CHECK(same_bits(expected, run(*path, {.chunk = 7})));
    CHECK(same_bits(expected, run(*path, {.threads = 2})));
    CHECK(same_bits(expected, run(*path, {.threads = 3, .chunk = 7})));
    CHECK(same_bits(expected, run(*path, {.kv = kv::Choice::contiguous})));
    CHECK(same_bits(expected, run(*path, {.weights = paging::Choice::resident})));
    CHECK(same_bits(
        expected,
        run(*path,
            {.threads = 2, .chunk = 1, .kv = kv::Choice::contiguous, .weights = paging::Choice::resident})));
  }
}

TEST_CASE("every family gives the same bits for steps of 512 tokens, of 7 and of 1") {
  for (const std::string& name : families) {
    const auto path = shared_dir("steps of " + name, "conformance/models/" + name + ".gguf");
    if (!path) continue;
    CAPTURE(name);
    const auto expected = run(*path, {});
    CHECK(same_bits(expected, run(*path, {.chunk = 7})));
    CHECK(same_bits(expected, run(*path, {.chunk = 1})));
    for (const kv::Choice kv :
         {kv::Choice::contiguous, kv::Choice::reserved, kv::Choice::paged, kv::Choice::spilled}) {
      CAPTURE(kv);
      CHECK(same_bits(expected, run(*path, {.threads = 2, .chunk = 64, .kv = kv})));
    }
  }
}

TEST_CASE(
    "every family gives the same bits however its weights come into memory, from a file and from a packed "
    "folder") {
  for (const std::string& name : families) {
    const auto path = shared_dir("pagers with " + name, "conformance/models/" + name + ".gguf");
    if (!path) continue;
    CAPTURE(name);
    const TemporaryFolder folder;
    const std::string packed = folder.path("packed");
    const gguf::Document source = gguf::open(*path);
    pack::Plan plan = pack::make_plan(source);
    static_cast<void>(pack::pack(source, plan, packed, alloc::Aligned()));
    const auto expected = run(*path, {});
    for (const std::string& from : {std::string(*path), packed}) {
      CAPTURE(from);
      CHECK(same_bits(expected, run(from, {.weights = paging::Choice::mapped})));
      CHECK(same_bits(expected, run(from, {.weights = paging::Choice::resident})));
      for (const std::uint64_t bytes :
           {std::uint64_t{1}, source.sources().front().size() / 2, ~std::uint64_t{0} / 2}) {
        CAPTURE(bytes);  // a ring and the least cache of experts; half; everything stays
        CHECK(same_bits(
            expected, run(from, {.chunk = 64, .weights = paging::Choice::streamed, .weights_bytes = bytes})));
      }
    }
  }
}

TEST_CASE("layers with a window give the bits of a cache that keeps every token") {
  using Whole = Model::With<WithKv<archetype::KvStorage<alloc::Huge>>>;
  for (const std::string name :
       {"gemma2.Q8_0", "gemma3.Q8_0", "gemma4.Q8_0", "gpt-oss.MXFP4_MOE", "llama4.Q8_0"}) {
    const auto path = shared_dir("windows of " + name, "conformance/models/" + name + ".gguf");
    if (!path) continue;
    CAPTURE(name);
    const gguf::Document document = gguf::open(*path);
    exec::Team team(1);
    Whole model(document, team, {.n_ctx = 512, .chunk = 512, .logits_rows = 512, .log = {}},
                {.pager = [](const paging::Table& table, alloc::Huge a, LogSink log) {
                  return Whole::Pager(table, a, log, paging::Choice::mapped);
                }});
    CHECK(model.kv_window_bytes() > 0);
    auto cache = model.make_cache();
    const auto expected = feed(model, cache, random_ids(270, model.config().n_vocab), 512);
    for (const kv::Choice kv : {kv::Choice::segmented, kv::Choice::contiguous, kv::Choice::reserved,
                                kv::Choice::paged, kv::Choice::spilled}) {
      CAPTURE(kv);
      CHECK(same_bits(expected, run(*path, {.chunk = 512, .kv = kv})));
      CHECK(same_bits(expected, run(*path, {.threads = 2, .chunk = 7, .kv = kv})));
      CHECK(same_bits(expected, run(*path, {.chunk = 1, .kv = kv})));
    }
  }
}

TEST_CASE("every element of keys and values gives the same bits for any step") {
  for (const std::string name : {"gemma3.Q8_0", "gpt-oss.MXFP4_MOE", "llama3-gqa.F32", "qwen3next.Q8_0"}) {
    const auto path = shared_dir("elements in " + name, "conformance/models/" + name + ".gguf");
    if (!path) continue;
    for (const kv::Element element : {kv::Element::f32, kv::Element::bf16, kv::Element::q8_0}) {
      CAPTURE(name);
      CAPTURE(element);
      const auto expected = run(*path, {.element = element});
      CHECK(same_bits(expected, run(*path, {.chunk = 7, .element = element})));
      CHECK(same_bits(expected, run(*path, {.threads = 2, .chunk = 1, .element = element})));
    }
  }
}

TEST_CASE("a model in shards gives the bits of the model in one file") {
  const std::string shard = "conformance/split/llama3-gqa.Q4_K_M-00001-of-00003.gguf";
  const auto split = shared_dir("a model in shards", shard);
  const auto whole = shared_dir("a model in shards", "conformance/models/llama3-gqa.Q4_K_M.gguf");
  if (!split || !whole) return;
  const auto expected = run(*whole, {});
  CHECK(same_bits(expected, run(*split, {})));
  CHECK(same_bits(expected, run(*split, {.weights = paging::Choice::resident})));
}

}  // namespace mica::test::same_bits_test
