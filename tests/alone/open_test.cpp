// SPDX-License-Identifier: Apache-2.0
//
// The front door in a program without parts: what it opens, and what it refuses. Weights of every format,
// families that are synthesised, files of the conformance kit.

#include "mica/runtime/open.hpp"

#include "alone/without_parts.hpp"
#include "io/temporary_folder.hpp"
#include "mica/exec/inline.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/complete.hpp"
#include "mica_tools/quantize/importance.hpp"
#include "mica_tools/quantize/quantize.hpp"
#include "mica_tools/synth/synthetic_model.hpp"
#include "quantize/small_shapes.hpp"
#include "runtime/talking_model.hpp"
#include "shared.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "conformance/kit.hpp"
#endif

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mica::test::open_test {

namespace {

/// Formats in which files keep tables, and no weights.
using Tables = TypeList<format::F64, format::I8, format::I16, format::I32, format::I64>;

bool all_sensible(std::span<const float> logits) {
  return !logits.empty() && std::all_of(logits.begin(), logits.end(),
                                        [](float x) { return std::isfinite(x) && std::abs(x) < 1e4f; });
}

/// Opens the file by its path, as a user does.
bool opens_and_runs(const std::string& path) {
  auto model = open(path, {.threads = 1});
  auto session = model.session();
  const text::TokenId ids[] = {1, 70, 80, 90};
  REQUIRE(session.feed(ids) == model::StepStatus::ok);
  return all_sensible(session.logits());
}

/// The rms of the difference, relative to that of x.
double relative_error(std::span<const float> x, std::span<const float> y) {
  double squares = 0, miss = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    squares += double{x[i]} * double{x[i]};
    miss += (double{x[i]} - double{y[i]}) * (double{x[i]} - double{y[i]});
  }
  return std::sqrt(miss / squares);
}

}  // namespace

TEST_CASE("this program has no part") {
  CHECK_FALSE(io::Checksum::available());
  const Error checksum = refusal([] { return io::Checksum(); });
  CHECK(checksum.code() == ErrorCode::unsupported);
  CHECK(mentions(checksum, "without xxHash", "mica::checksum"));
  const Error words = refusal([] { return text::Pretokenizer(text::pretokenizer_rules("gpt-2")); });
  CHECK(words.code() == ErrorCode::unsupported);
  CHECK(mentions(words, "gpt-2", "PCRE2", "mica::text"));
}

TEST_CASE("weights of every format open without a part, and have the same bits by every pager") {
  const TemporaryFolder folder;
  format::All::for_each([&](auto type) {
    using Format = typename decltype(type)::type;
    if (Tables::contains<Format>) return;
    CAPTURE(Format::name);
    Recipe recipe = talking(blocks_of(Format::id));
    recipe.layers = 1;
    const std::string path = folder.file("model.gguf", TinyModel(recipe).bytes());
    const gguf::Document document = gguf::open(path);
    const auto ids = random_ids(5, 258);
    const auto expected = logits_of(document, paging::Choice::mapped, ids);
    CHECK(std::all_of(expected.begin(), expected.end(), [](float x) { return std::isfinite(x); }));
    for (const paging::Choice pager : pagers) {
      CAPTURE(pager);
      CHECK(same_bits(expected, logits_of(document, pager, ids)));
    }
    CHECK_NOTHROW(static_cast<void>(open(path, {.n_ctx = 32, .threads = 1})));
  });
}

TEST_CASE("a file of every family that can be synthesised opens, and its logits are sensible") {
  const TemporaryFolder folder;
  exec::Inline executor;
  const std::string path = folder.path("model.gguf");
  const auto write = [&](const arch::Shape& shape, quantize::Recipe recipe) -> const std::string& {
    quantize::SyntheticModel(shape, recipe).write(path, executor);
    return path;
  };
  for (const arch::FamilyTensors& family : arch::family_tensors) {
    CAPTURE(family.arch);
    const bool sparse = family.arch.ends_with("moe") || family.arch == "gpt-oss";
    const arch::Shape shape = sparse ? small_mixture(family.arch) : small_shape(family.arch);
    CHECK(opens_and_runs(write(shape, quantize::Recipe::Q4_K_M)));
    const gguf::Document document = gguf::open(write(shape, quantize::Recipe::F16));
    const auto ids = random_ids(5, shape.n_vocab);
    const auto expected = logits_of(document, paging::Choice::mapped, ids);
    for (const paging::Choice pager : pagers) {
      CAPTURE(pager);
      CHECK(same_bits(expected, logits_of(document, pager, ids)));
    }
  }
  CHECK(opens_and_runs(write(small_mixture("llama"), quantize::Recipe::Q8_0)));
  CHECK(opens_and_runs(write(small_mixture("gemma4"), quantize::Recipe::Q8_0)));
  arch::Shape shared = small_shape("gemma4");  // the last two layers read keys and values of the first two
  shared.layers = 4;
  shared.shared_kv = 2;
  shared.wide_shared = true;
  CHECK(opens_and_runs(write(shared, quantize::Recipe::Q4_K_M)));
}

TEST_CASE("every recipe that can be written makes a file of the size that was said before, and it opens") {
  const TemporaryFolder folder;
  exec::Inline executor;
  const std::string path = folder.path("model.gguf");
  for (const quantize::RecipeInfo& recipe : quantize::recipes) {
    CAPTURE(recipe.name);
    arch::Shape shape = small_shape("llama");
    if (recipe.name.starts_with("IQ")) shape.layers = 1;  // codebooks take a second a layer
    const quantize::SyntheticModel model(shape, recipe.recipe);
    model.write(path, executor);
    CHECK(std::filesystem::file_size(path) == model.file_bytes());
    CHECK(gguf::open(path).metadata().require<std::uint32_t>("general.file_type") == recipe.file_type);
    CHECK(opens_and_runs(path));
  }
}

TEST_CASE(
    "a file that is quantised to a mixture of codebooks opens, and a step is close to that of its floats") {
  const TemporaryFolder folder;
  exec::Team executor(2);
  arch::Shape shape = small_shape("llama");
  shape.ff_width = 512;  // whole blocks of 256
  const std::string floats = folder.path("f32.gguf"), path = folder.path("model.gguf");
  quantize::SyntheticModel(shape, quantize::Recipe::F32).write(floats, executor);
  const gguf::Document document = gguf::open(floats);
  quantize::Importance importance;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    std::vector<float> sums(static_cast<std::size_t>(tensor.width()), 1.0F);
    importance.entries[tensor.name] = {std::move(sums), {1}};
  }
  const auto ids = random_ids(5, shape.n_vocab);
  const auto expected = logits_of(document, paging::Choice::mapped, ids);
  using R = quantize::Recipe;
  double last = 2;
  for (const R recipe : {R::IQ1_S, R::IQ1_M, R::IQ2_XXS, R::IQ2_XS, R::IQ2_S, R::IQ2_M, R::IQ3_XXS, R::IQ3_XS,
                         R::IQ3_S, R::IQ3_M}) {
    CAPTURE(quantize::info(recipe).name);
    const quantize::Job job(document, {.recipe = recipe, .importance = &importance});
    quantize::quantize(job, path, executor);
    CHECK(opens_and_runs(path));
    const gguf::Document quantised = gguf::open(path);
    CHECK(quantised.tensor("blk.0.ffn_up.weight").format.name.starts_with("IQ"));
    const double error = relative_error(expected, logits_of(quantised, paging::Choice::mapped, ids));
    CHECK(error < 1.25 * last);  // more bits, a smaller error
    last = error;
  }
  CHECK(last < 0.3);
}

TEST_CASE("a session of a program without xxHash is not saved, and says what it takes") {
  const TinyModel tiny(talking());
  auto model = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 32, .threads = 1});
  auto session = model.session();
  const TemporaryFolder folder;
  const Error error = refusal([&] { return session.save(folder.path("session")), 0; });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "mica::checksum"));
  CHECK(folder.entries() == 0);
}

TEST_CASE("every file of the kit runs without a part, and a vocabulary that needs one is refused") {
#if __has_include(<nlohmann/json.hpp>)
  const auto root = shared_dir("the kit without parts", "conformance");
  if (!root) return;
  const Kit kit(*root);
  for (const auto& entry : kit.models()) {
    CAPTURE(short_name(entry));
    const gguf::Document document = gguf::open(kit.path(entry["file"]));
    const auto& rows = entry["rows"][0];
    const auto ids = kit.ids(entry, rows["prompt"]);
    REQUIRE(rows["positions"].size() == ids.size());
    const auto logits = logits_of(document, paging::Choice::mapped, ids, rows["n_ctx"]);
    for (const paging::Choice pager : pagers) {
      CAPTURE(pager);
      CHECK(same_bits(logits, logits_of(document, pager, ids, rows["n_ctx"])));
    }
    auto exact = kit.logits(entry, "exact_logits");
    exact.resize(logits.size());
    const Figures figures = compare(logits, exact, logits.size() / ids.size());
    const std::string format = entry["format"];
    if (format == "F32" || format == "F16" || format == "BF16") {
      CHECK(figures.max <= exact_tolerance(entry));
    } else {
      CHECK(figures.median_kl <= 0.02);  // a near tie in a router moves the mean
    }
    if (document.metadata().require<std::string_view>("tokenizer.ggml.model") == "gpt2") {
      const Error error = refusal([&] { return open(kit.path(entry["file"]), {.threads = 1}); });
      CHECK(error.code() == ErrorCode::unsupported);
      CHECK(mentions(error, "PCRE2", "mica::text"));
    } else {
      CHECK_NOTHROW(static_cast<void>(open(kit.path(entry["file"]), {.threads = 1})));
    }
  }
  CHECK(kit.models().size() == 48);
#else
  skipped("the kit without parts", "nlohmann-json, which reads the kit's index, is not installed");
#endif
}

TEST_CASE("a model in memory opens, completes a text, and books every byte") {
  const TinyModel tiny(talking());
  auto model = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .threads = 2});
  CHECK(model.threads() == 2);
  CHECK(model.config().n_vocab == 258);
  CHECK(model.document().path() == "tiny.gguf");
  const CompleteOptions greedy{.max_tokens = 9, .sampler = {.temperature = 0}};
  const std::string text = complete(model, "abc", greedy);
  CHECK(complete(model, "abc", greedy) == text);
  std::string pieces;
  const GenerateResult result = complete(model, "abc", greedy, [&](std::string_view piece) {
    pieces += piece;
    return true;
  });
  CHECK(pieces == text);
  CHECK(result.timings.prompt.tokens == model.tokenizer().encode("abc").size());
  for (const budget::Account account :
       {budget::Account::weights, budget::Account::activations, budget::Account::logits,
        budget::Account::tokenizer, budget::Account::process}) {
    CAPTURE(budget::name(account));
    CHECK(model.ledger().used(account) > 0);
  }
  CHECK(model.ledger().used(budget::Account::kv) == 0);  // the sessions are gone
  CHECK(model.ledger().peaks()[budget::Account::kv] > 0);
}

TEST_CASE("an answer that is a text alone raises what ended it") {
  const TinyModel tiny(talking());
  auto model = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .threads = 1, .memory_bytes = 64 << 20});
  const CompleteOptions greedy{.max_tokens = 9, .sampler = {.temperature = 0}};
  const auto code = [&](std::string_view prompt) {
    return refusal([&] { return complete(model, prompt, greedy); }).code();
  };
  const std::string all(1 << 20, 'a');
  CHECK(min_tokens(model.tokenizer(), all) > 64);
  CHECK(code(all) == ErrorCode::limit);                // before it is encoded
  CHECK(code(all.substr(0, 65)) == ErrorCode::limit);  // after it
  const auto taken =
      alloc::Booking::make(&model.ledger(), budget::Account::activations, model.ledger().left());
  REQUIRE(taken);
  CHECK(code("abc") == ErrorCode::budget);
}

TEST_CASE("an empty prompt begins with BOS, and with EOS where there is none") {
  const TinyModel tiny(talking());
  const auto tokenizer = text::make_tokenizer(text::vocabulary_from(tiny.document().metadata()));
  CHECK(prompt_ids(tokenizer, "") == std::vector<TokenId>{0});
  CHECK(prompt_ids(tokenizer, "a").front() == 0);
}

TEST_CASE("a moved model serves its sessions") {
  const TinyModel tiny(talking());
  std::optional<Model> second;  // outlives the session
  Model first = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 32});
  auto session = first.session();
  second.emplace(std::move(first));
  const std::vector<TokenId> ids = {0, 5, 9};
  CHECK(session.feed(ids) == model::StepStatus::ok);
  CHECK(session.logits().size() == 258);
}

TEST_CASE("a budget that is too small refuses the model and names the account") {
  const TinyModel tiny(talking());
  const Error error =
      refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .memory_bytes = 6'400'000}); });
  CHECK(error.code() == ErrorCode::budget);
  const Error none = refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.memory_bytes = 1000}); });
  CHECK(none.code() == ErrorCode::budget);
  CHECK(mentions(none, "process", "1000"));
  const Error process =
      refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .memory_bytes = 8'700'000}); });
  CHECK(mentions(process, "tiny.gguf: ", "do not fit the memory budget of 8700000"));
  plan::Question question;
  question.model.n_ctx = 64;
  const plan::Plan plan = plan::make_plan(gguf::parse(tiny.bytes(), "tiny.gguf"), question);
  const auto of = [&](budget::Account account) { return plan.accounts[account]; };
  CHECK(of(budget::Account::process) >= plan::any_process_bytes + tiny.bytes().size());
  const std::uint64_t without_weights = of(budget::Account::process) + of(budget::Account::tokenizer) + 1;
  const Error weights = refusal(
      [&] { return open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .memory_bytes = without_weights}); });
  CHECK(weights.code() == ErrorCode::budget);
  CHECK(mentions(weights, "tiny.gguf: ", "weights"));
  CHECK(weights.message().find("tiny.gguf") == weights.message().rfind("tiny.gguf"));
}

TEST_CASE("a budget of 0 is a budget, and no budget is what limits leave") {
  const TinyModel tiny(talking());
  const Error zero = refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.memory_bytes = 0}); });
  CHECK(zero.code() == ErrorCode::budget);
  budget::MemoryLimits limits;
  limits.installed = 123'456'789;
  const Model model = open(tiny.bytes(), "tiny.gguf", {.n_ctx = 64, .limits = limits});
  CHECK(model.ledger().limit() == 123'456'789);
}

TEST_CASE("a budget beyond the limits is lowered to what they leave, with a warning") {
  const TinyModel tiny(talking());
  budget::MemoryLimits limits;
  limits.cgroup = limits.cgroup_left = 100'000'000;
  std::vector<std::string> warnings;
  const LogSink log{[](void* context, LogLevel level, std::string_view message) {
                      if (level == LogLevel::warning)
                        static_cast<std::vector<std::string>*>(context)->emplace_back(message);
                    },
                    &warnings};
  const Model model = open(tiny.bytes(), "tiny.gguf",
                           {.n_ctx = 64, .memory_bytes = 400'000'000, .limits = limits, .log = log});
  CHECK(model.ledger().limit() == 100'000'000);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings.front() == "memory budget: 381.5 MiB is more than the control group leaves; 95.4 MiB count");
  static_cast<void>(open(tiny.bytes(), "tiny.gguf",
                         {.n_ctx = 64, .memory_bytes = 90'000'000, .limits = limits, .log = log}));
  CHECK(warnings.size() == 1);
}

TEST_CASE("a context longer than positions can tell apart is refused at once, by its number") {
  const TinyModel tiny(talking());
  const Error error = refusal([&] { return open(tiny.bytes(), "tiny.gguf", {.n_ctx = 20'000'000}); });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "20000000", "allowed 1 to 16777216"));
}

TEST_CASE("a family, a policy and a file that are not there are told apart") {
  Recipe recipe = talking();
  recipe.without = {"general.architecture"};
  recipe.edit = [](gguf::Writer& writer) {
    write_byte_vocabulary(writer);
    writer.set("general.architecture", "abacus");
  };
  const TinyModel other(recipe);
  const Error family = refusal([&] { return open(other.bytes(), "other.gguf"); });
  CHECK(family.code() == ErrorCode::unsupported);
  CHECK(mentions(family, "abacus", "llama"));
  const TinyModel tiny(talking());
  const Error policy = refusal([&] {
    return open(tiny.bytes(), "tiny.gguf",
                {.choice = {.cache_type_k = {kv::Element::kivi2, kv::Element::f16}}});
  });
  CHECK(policy.code() == ErrorCode::usage);
  CHECK(mentions(policy, "KIVI2", "choose one of"));
  CHECK(refusal([] { return open(std::string("nowhere.gguf")); }).code() == ErrorCode::file);
}

TEST_CASE("more pieces than rows of the head are refused") {
  Recipe recipe = talking();
  recipe.n_vocab = 200;
  const TinyModel tiny(recipe);
  const Error error = refusal([&] { return open(tiny.bytes(), "tiny.gguf"); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "258", "200"));
}

}  // namespace mica::test::open_test
