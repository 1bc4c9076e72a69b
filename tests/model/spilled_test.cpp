// SPDX-License-Identifier: Apache-2.0
//
// Keys and values that went to a file give the bits of those that stayed.

#include "mica/kv/spilled.hpp"

#include "io/temporary_folder.hpp"
#include "mica/exec/team.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"
#include "model/tiny_model.hpp"
#include "model/windowed_family.hpp"

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <sys/resource.h>

namespace mica::test::spilled_test {
namespace {

template <class Model>
auto small_cache(const Model& model, std::string_view folder = {}) {
  return model.make_cache([&](auto allocator, std::span<const kv::LayerShape> layers, std::size_t n_ctx) {
    return typename Model::Storage(allocator, layers, n_ctx, 64, folder);
  });
}

/// Runs and goes back, with all tokens in memory and with few.
template <class Model>
void compare(const gguf::Document& document) {
  using Whole = typename Model::template With<WithKv<kv::Segmented<>>>;
  exec::Team team(2);
  const auto ids = random_ids(600, 67), other = random_ids(90, 67, 4);
  for (const std::size_t chunk : {1u, 7u, 64u}) {
    CAPTURE(chunk);
    const ModelOptions options{.n_ctx = 700, .chunk = chunk, .logits_rows = chunk, .log = {}};
    Model model(document, team, options);
    Whole whole(document, team, options);
    auto cache = small_cache(model);
    auto expected = whole.make_cache();
    CHECK(same_bits(feed(model, cache, ids, chunk), feed(whole, expected, ids, chunk)));
    CHECK(cache.storage.spilled() > 300);
    for (const std::size_t count : {590u, 333u, 64u, 5u}) {
      CAPTURE(count);
      if (count > cache.tokens) continue;
      const std::size_t resident = cache.rewind(count);
      CHECK(resident == expected.rewind(count));
      const auto again = std::span(ids).subspan(resident, count - resident);
      static_cast<void>(feed(model, cache, again, chunk));
      static_cast<void>(feed(whole, expected, again, chunk));
      CHECK(same_bits(feed(model, cache, other, chunk), feed(whole, expected, other, chunk)));
    }
  }
}

}  // namespace

TEST_CASE("a cache of which the most is in a file gives the bits of one in memory") {
  const TinyModel dense{Recipe{}}, windows({.layers = 4});
  const TinyHybrid hybrid{HybridRecipe{}};
  using Spills = Transformer<arch::Llama, WithKv<kv::Spilled<>>, WithExecutor<exec::Team>>;
  compare<Spills>(dense.document());
  compare<Transformer<Windowed<20>, WithKv<kv::Spilled<>>, WithExecutor<exec::Team>>>(windows.document());
  compare<Hybrid::With<WithKv<kv::Spilled<>>, WithExecutor<exec::Team>>>(hybrid.document());
}

TEST_CASE("without a place for the file no cache is made, and the folder is named") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Spills = Transformer<arch::Llama, WithKv<kv::Spilled<>>>;
  Spills model(tiny.document(), executor, {.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = {}});
  const Error error = refusal([&] { return small_cache(model, "/nowhere at all"); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "/nowhere at all: ", "No such file or directory"));
}

TEST_CASE("a disk that is full refuses a step as what it is, and the cache is as before") {
  const TinyModel tiny{Recipe{}};
  exec::Inline executor;
  using Spills = Transformer<arch::Llama, WithKv<kv::Spilled<>>>;
  std::string said;
  const LogSink log{[](void* context, LogLevel level, std::string_view message) {
                      if (level == LogLevel::error) *static_cast<std::string*>(context) += message;
                    },
                    &said};
  Spills model(tiny.document(), executor, {.n_ctx = 700, .chunk = 64, .logits_rows = 64, .log = log});
  const TemporaryFolder folder;
  auto cache = small_cache(model, folder.path("."));
  const auto ids = random_ids(128, 67);
  static_cast<void>(feed(model, cache, ids, 64));
  ::rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const ::rlimit none{0, old.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  const model::StepStatus full = model.step(cache, std::span(ids).first(1));
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(full == model::StepStatus::write_failed);
  CHECK(cache.tokens == 128);
  CHECK(said.starts_with(folder.path(".")));
  CHECK(said.find("File too large") != std::string::npos);
  CHECK(model.step(cache, std::span(ids).first(1)) == model::StepStatus::ok);  // there is room again
}

}  // namespace mica::test::spilled_test
