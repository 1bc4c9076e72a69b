// SPDX-License-Identifier: Apache-2.0
//
// The model's own head guesses: the answer is that without, and the guesses are those of the head's formula.

#include "mica/runtime/mtp_drafter.hpp"

#include "mica/base/half.hpp"
#include "mica/runtime/open.hpp"
#include "runtime/talking_family.hpp"
#include "runtime/talking_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace mica::test::mtp_drafter_test {
namespace {

using Model = Transformer<arch::Llama>;

constexpr ModelOptions options{.n_ctx = 300, .chunk = 32, .logits_rows = 9, .drafts = true, .log = {}};
constexpr ModelOptions of_head{.n_ctx = 300, .chunk = 8, .mtp = true, .log = {}};

TinyModel dense_with_head() {
  Recipe recipe;
  recipe.n_vocab = talking_vocabulary;
  recipe.mtp = true;
  return TinyModel(recipe);
}

TinyHybrid hybrid_with_head(HybridRecipe recipe) {
  recipe.n_vocab = talking_vocabulary;
  recipe.mtp = true;
  return TinyHybrid(recipe);
}

template <class AnyKind, class D>
GenerateResult answer(Session<AnyKind>& session, const sample::SamplerOptions& sampling, D& drafter,
                      std::size_t prompt, std::string& text) {
  static const text::Spm tokenizer = byte_tokenizer();
  sample::Standard sampler(sampling, talking_vocabulary);
  return generate(session, tokenizer, sampler, drafter, random_ids(prompt, 250, 4),
                  {.max_tokens = 60, .min_drafts = 2}, [&](std::string_view piece) {
                    text += piece;
                    return true;
                  });
}

/// Answers to a short prompt, and to one of several chunks.
template <class AnyKind>
void check_answers(AnyKind& model, AnyKind& head) {
  std::size_t drafted = 0;
  for (const sample::SamplerOptions& sampling : samplers()) {
    for (const std::size_t prompt : {9, 100}) {
      CAPTURE(prompt);
      std::string plain, guessed;
      NoDrafter none;
      Session first(model), second(model);
      MtpDrafter drafter(second, head, {.drafts = 4, .vocabulary = 100});
      const auto expected = answer(first, sampling, none, prompt, plain);
      const auto result = answer(second, sampling, drafter, prompt, guessed);
      CHECK(guessed == plain);
      CHECK(result.tokens == expected.tokens);
      drafted += result.drafts.drafted;
    }
  }
  CHECK(drafted > 200);
}

template <class AnyModelFile>
void check_family(const AnyModelFile& file) {
  exec::Inline executor;
  Hybrid model(file.document(), executor, options), head(file.document(), executor, of_head);
  check_answers(model, head);
}

}  // namespace

TEST_CASE("an answer with the model's own head is the answer without") {
  exec::Inline executor;
  const TinyModel dense = dense_with_head();
  Model model(dense.document(), executor, options), head(dense.document(), executor, of_head);
  check_answers(model, head);
  check_family(hybrid_with_head({}));
  check_family(hybrid_with_head(with_experts()));
  check_family(hybrid_with_head(of_q8_0({})));
}

TEST_CASE("a head in the file does not change the model") {
  exec::Inline executor;
  Recipe recipe;
  const TinyModel without(recipe);
  recipe.mtp = true;
  const TinyModel with(recipe);
  Model a(without.document(), executor, options), b(with.document(), executor, options);
  Session first(a), second(b);
  const auto ids = random_ids(20, 60, 3);
  REQUIRE(first.feed(ids) == model::StepStatus::ok);
  REQUIRE(second.feed(ids) == model::StepStatus::ok);
  CHECK(std::ranges::equal(first.logits(), second.logits()));
}

namespace {

void set(TinyModel& file, std::string_view name, const std::function<float(std::size_t)>& value) {
  const std::span<std::byte> bytes = file.tensor(name);
  for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i) {
    const float number = value(i);
    std::memcpy(bytes.data() + i * sizeof number, &number, sizeof number);
  }
}

std::vector<float> numbers(TinyModel& file, std::string_view name) {
  const std::span<std::byte> bytes = file.tensor(name);
  std::vector<float> all(bytes.size() / sizeof(float));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// A file whose head passes on one half of its input, and nothing else: 0 the token, 1 the hidden state.
TinyModel passing(std::size_t half) {
  TinyModel file = dense_with_head();
  const std::size_t width = Recipe{}.width;
  const auto zero = [](std::size_t) { return 0.0f; };
  const auto one = [](std::size_t) { return 1.0f; };
  set(file, "blk.2.attn_output.weight", zero);
  set(file, "blk.2.ffn_down.weight", zero);
  set(file, "blk.2.nextn.enorm.weight", one);
  set(file, "blk.2.nextn.hnorm.weight", one);
  set(file, "blk.2.nextn.eh_proj.weight",
      [&](std::size_t i) { return i % (2 * width) == half * width + i / (2 * width) ? 1.0f : 0.0f; });
  const std::vector<float> norm = numbers(file, "output_norm.weight");
  set(file, "blk.2.nextn.shared_head_norm.weight", [&](std::size_t i) { return norm[i]; });
  return file;
}

TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

TEST_CASE("the head reads the hidden state of the last token that has run") {
  exec::Inline executor;
  const TinyModel file = passing(1);
  Model model(file.document(), executor, options), head(file.document(), executor, of_head);
  Session session(model);
  MtpDrafter drafter(session, head, {.drafts = 3, .vocabulary = 0});
  const auto ids = random_ids(21, 250, 8);
  for (std::size_t n = 1; n < ids.size(); n += 3) {  // the norm of the output is that of the model
    const auto rest = std::span(ids).subspan(session.tokens().size(), n - session.tokens().size());
    REQUIRE(session.feed(rest) == model::StepStatus::ok);
    const TokenId said = likeliest(session.logits());
    std::vector<TokenId> drafts(3);
    REQUIRE(drafter.draft(session.tokens(), ids[n], drafts) == 3);
    CHECK(drafts == std::vector<TokenId>(3, said));  // and then its own hidden state, which stays
  }
}

TEST_CASE("the head reads the embedding of the token that has not run, then those of its drafts") {
  exec::Inline executor;
  TinyModel file = passing(0);
  const std::vector<float> embedding = numbers(file, "token_embd.weight"),
                           output = numbers(file, "output.weight"),
                           norm = numbers(file, "output_norm.weight");
  const std::size_t width = norm.size();
  const auto normed = [&](std::vector<double> x) {
    double squares = 0;
    for (const double v : x) squares += v * v;
    for (double& v : x) v /= std::sqrt(squares / static_cast<double>(width) + 1e-5);
    return x;
  };
  const auto after = [&](TokenId token) {
    const auto row = embedding.begin() + static_cast<std::ptrdiff_t>(token * width);
    const std::vector<double> x = normed(normed({row, row + static_cast<std::ptrdiff_t>(width)}));
    std::vector<float> logits(talking_vocabulary);
    for (std::size_t r = 0; r < logits.size(); ++r) {
      double sum = 0;
      for (std::size_t k = 0; k < width; ++k) sum += x[k] * norm[k] * output[r * width + k];
      logits[r] = static_cast<float>(sum);
    }
    return likeliest(logits);
  };
  Model model(file.document(), executor, options), head(file.document(), executor, of_head);
  Session session(model);
  MtpDrafter drafter(session, head, {.drafts = 3, .vocabulary = 0});
  REQUIRE(session.feed(random_ids(12, 250, 8)) == model::StepStatus::ok);
  for (TokenId last = 2; last < 40; ++last) {
    std::vector<TokenId> drafts(3);
    REQUIRE(drafter.draft(session.tokens(), last, drafts) == 3);
    CHECK(drafts == std::vector<TokenId>{after(last), after(after(last)), after(after(after(last)))});
  }
}

TEST_CASE("with a short list of tokens drafts are the likeliest of these") {
  exec::Inline executor;
  const TinyModel file = passing(1);
  Model model(file.document(), executor, options), head(file.document(), executor, of_head);
  Session session(model);
  MtpDrafter drafter(session, head, {.drafts = 1, .vocabulary = 30});  // two panels of 16
  REQUIRE(session.feed(random_ids(12, 250, 8)) == model::StepStatus::ok);
  const TokenId said = likeliest(session.logits().first(32));
  std::vector<TokenId> drafts(1);
  REQUIRE(drafter.draft(session.tokens(), 7, drafts) == 1);
  CHECK(drafts[0] == said);
}

namespace {

/// A text that goes on with some of the drafts, now and then without any, again and again. Each time another
/// head reads the whole text at once and says the same.
template <class AnyKind>
void check_rejections(AnyKind& model, AnyKind& head, AnyKind& other_head) {
  Session session(model);
  MtpDrafter drafter(session, head, {.drafts = 4, .vocabulary = 0});
  REQUIRE(session.feed(random_ids(20, 250, 6)) == model::StepStatus::ok);
  for (std::size_t round = 0; round < 14; ++round) {
    CAPTURE(round);
    const auto last = static_cast<TokenId>(3 + 7 * round);
    std::vector<TokenId> tokens{last}, drafts(4), fresh(4);
    if (round % 4 == 3) {
      drafter.follow(session.tokens(), last);
      REQUIRE(session.feed(tokens) == model::StepStatus::ok);
      continue;
    }
    REQUIRE(drafter.draft(session.tokens(), last, drafts) == 4);
    tokens.insert(tokens.end(), drafts.begin(), drafts.end());
    const std::size_t before = session.tokens().size();
    {
      Session again(model);
      REQUIRE(again.feed(session.tokens()) == model::StepStatus::ok);
      MtpDrafter whole(again, other_head, {.drafts = 4, .vocabulary = 0});
      REQUIRE(whole.draft(again.tokens(), last, fresh) == 4);
    }
    CHECK(drafts == fresh);
    REQUIRE(session.feed_drafts(tokens, 4) == model::StepStatus::ok);
    session.rewind(before + 1 + round % 5);
  }
}

}  // namespace

TEST_CASE("drafts do not depend on those that were rejected before, nor on steps without drafts") {
  exec::Inline executor;
  ModelOptions wide = options;
  wide.chunk = 128;
  const TinyModel dense = dense_with_head();
  Model model(dense.document(), executor, wide), head(dense.document(), executor, of_head),
      other(dense.document(), executor, of_head);
  check_rejections(model, head, other);
  const TinyHybrid file = hybrid_with_head(with_experts());
  Hybrid hybrid(file.document(), executor, wide), its_head(file.document(), executor, of_head),
      its_other(file.document(), executor, of_head);
  check_rejections(hybrid, its_head, its_other);
}

TEST_CASE("without hidden states it guesses nothing, and then begins with those of a later chunk") {
  exec::Inline executor;
  const TinyModel dense = dense_with_head();
  Model model(dense.document(), executor, options), head(dense.document(), executor, of_head);
  Session session(model), other(model);
  MtpDrafter drafter(session, head, {.drafts = 2});
  std::vector<TokenId> drafts(2);
  CHECK(drafter.draft({}, 5, drafts) == 0);
  REQUIRE(session.feed(random_ids(70, 250, 6)) == model::StepStatus::ok);  // chunks of 32, 32 and 6
  REQUIRE(other.feed(random_ids(3, 250, 6)) == model::StepStatus::ok);
  CHECK(drafter.draft(session.tokens(), 5, drafts) == 0);  // the model has stepped for another session
  REQUIRE(session.feed(random_ids(40, 250, 7)) == model::StepStatus::ok);
  CHECK(drafter.draft(session.tokens(), 5, drafts) == 2);
  session.rewind(3);
  CHECK(drafter.draft(session.tokens(), 5, drafts) == 0);
}

TEST_CASE("a head with a full context guesses nothing") {
  exec::Inline executor;
  const TinyModel dense = dense_with_head();
  ModelOptions brief = of_head;
  brief.n_ctx = 20;
  Model model(dense.document(), executor, options), head(dense.document(), executor, brief);
  Session session(model);
  MtpDrafter drafter(session, head, {.drafts = 4});
  std::vector<TokenId> drafts(4);
  REQUIRE(session.feed(random_ids(18, 250, 6)) == model::StepStatus::ok);
  CHECK(drafter.draft(session.tokens(), 5, drafts) == 3);
  std::vector<TokenId> more = random_ids(10, 250, 6);
  more[0] = 5;
  REQUIRE(session.feed(more) == model::StepStatus::ok);
  CHECK(drafter.draft(session.tokens(), 5, drafts) == 0);
}

TEST_CASE("files without a head, and numbers out of range, are refused") {
  exec::Inline executor;
  const TinyModel none = talking_dense(), dense = dense_with_head();
  CHECK_THROWS_WITH_AS(Model(none.document(), executor, of_head), doctest::Contains("nextn_predict_layers"),
                       Error);
  Recipe recipe;
  recipe.mtp = true;
  recipe.without = {"blk.2.nextn.eh_proj.weight"};
  const TinyModel partial(recipe);
  CHECK_THROWS_WITH_AS(Model(partial.document(), executor, of_head), doctest::Contains("blk.2.nextn.eh_proj"),
                       Error);
  Model model(dense.document(), executor, options), head(dense.document(), executor, of_head);
  Session session(model);
  CHECK_THROWS_AS(MtpDrafter(session, head, {.drafts = 0}), Error);
  CHECK_THROWS_AS(MtpDrafter(session, head, {.drafts = 65}), Error);
}

TEST_CASE("an open model has its head, and the plan has its bytes") {
  Recipe recipe = talking();
  recipe.mtp = true;
  const TinyModel file(recipe);
  OpenOptions open{.n_ctx = 64, .chunk = 32, .logits_rows = 4, .drafts = true, .mtp = true, .threads = 1};
  open.choice.kv = kv::Choice::contiguous;
  auto model = mica::open(file.bytes(), "tiny.gguf", open);
  REQUIRE(model.mtp_head() != nullptr);
  auto session = model.session();
  MtpDrafter drafter(session, *model.mtp_head(), {.drafts = 3});
  std::vector<TokenId> drafts(3);
  REQUIRE(session.feed(random_ids(40, 250, 6)) == model::StepStatus::ok);
  REQUIRE(drafter.draft(session.tokens(), 5, drafts) == 3);  // now both have keys and values
  plan::Question question;
  question.model = {.n_ctx = 64, .chunk = 32, .logits_rows = 4, .drafts = true, .log = {}};
  question.choice = open.choice;
  question.mtp = true;
  const budget::Accounts planned = plan::make_plan(file.document(), question).accounts,
                         booked = model.ledger().accounts();
  for (std::size_t i = 0; i < budget::account_count; ++i)
    CHECK_MESSAGE(planned.bytes[i] == booked.bytes[i], budget::name(static_cast<budget::Account>(i)));
  for (const kv::Choice spilled : {kv::Choice::spilled, kv::Choice::spilled_paged}) {
    const kv::Choice of_head = mica::model::mtp_choice({.kv = spilled}).kv;  // it has no file
    CHECK((of_head == kv::Choice::segmented || of_head == kv::Choice::paged));
  }
  open.mtp = false;
  CHECK(mica::open(file.bytes(), "tiny.gguf", open).mtp_head() == nullptr);
}

}  // namespace mica::test::mtp_drafter_test
