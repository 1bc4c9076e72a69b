// SPDX-License-Identifier: Apache-2.0
//
// Answers of a batch are the answers that each would have got alone.

#include "mica/runtime/batch.hpp"

#include "io/temporary_folder.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/ngram.hpp"
#include "runtime/talking_family.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <limits>

namespace mica::test::batch_test {
namespace {

const text::Spm& bytes() {
  static const text::Spm tokenizer = byte_tokenizer();
  return tokenizer;
}

/// What somebody asks of a model.
struct Request {
  std::vector<TokenId> prompt;
  sample::SamplerOptions sampling;
  GenerateOptions how;
};

std::vector<Request> requests() {
  std::vector<Request> out;
  const std::vector<std::size_t> prompts = {3, 70, 1, 20, 9}, lengths = {40, 10, 25, 1, 33};
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    out.push_back({random_ids(prompts[i], 250, i + 1), samplers()[i % 4], {.max_tokens = lengths[i]}});
  }
  out[2].how.stop = {"e"};
  return out;
}

template <class Model>
Answer alone(Model& model, const Request& request) {
  Session session(model);
  sample::Standard sampler(request.sampling, talking_vocabulary);
  Answer answer;
  auto result = generate(session, bytes(), sampler, request.prompt, request.how, [&](std::string_view text) {
    answer.text += text;
    return true;
  });
  answer.tokens = std::move(result.tokens);
  answer.reason = result.reason;
  return answer;
}

/// Requests in a batch: the i-th joins before step `join[i]`.
template <class Model, class D>
class Company {
 public:
  explicit Company(Model& model, D drafter, BatchOptions options = {})
      : model_(model), drafter_(drafter), batch(model, bytes(), options) {}

  void join(const Request& request) {
    Guest& guest = guests_.emplace_back(model_, request.sampling, drafter_);
    guest.id = batch.add(guest.session, guest.sampler, guest.drafter, request.prompt, request.how,
                         [&guest](std::string_view text) {
                           guest.answer.text += text;
                           return true;
                         });
  }
  Answer leave(std::size_t i) {
    Guest& guest = guests_[i];
    auto result = batch.remove(guest.id);
    guest.answer.tokens = std::move(result.tokens);
    guest.answer.reason = result.reason;
    return guest.answer;
  }
  [[nodiscard]] bool over(std::size_t i) const { return batch.over(guests_[i].id); }
  [[nodiscard]] std::size_t tokens(std::size_t i) const { return guests_[i].session.tokens().size(); }

 private:
  struct Guest {
    Guest(Model& model, const sample::SamplerOptions& sampling, const D& d)
        : session(model), sampler(sampling, talking_vocabulary), drafter(d) {}
    Session<Model> session;
    sample::Standard<> sampler;
    D drafter;
    std::size_t id = 0;
    Answer answer;
  };

  Model& model_;
  D drafter_;
  std::deque<Guest> guests_;  // stay where they are

 public:
  Batch<Model, text::Spm, sample::Standard<>, D> batch;
};

template <class Model, class D>
void check_shared(Model& model, const D& drafter) {
  const auto all = requests();
  std::vector<Answer> expected;
  for (const Request& request : all) expected.push_back(alone(model, request));
  for (const std::size_t gap : {0u, 1u, 6u}) {  // steps between arrivals
    CAPTURE(gap);
    Company<Model, D> company(model, drafter, {.prompt_tokens = 16});
    std::size_t joined = 0;
    for (std::size_t step = 0;; ++step) {
      while (joined < all.size() && step >= joined * gap) company.join(all[joined++]);
      if (!company.batch.step() && joined == all.size()) break;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      CHECK(company.leave(i) == expected[i]);
    }
    CHECK(company.batch.size() == 0);
  }
}

constexpr ModelOptions options{.n_ctx = 300, .chunk = 32, .logits_rows = 32, .log = {}};
constexpr ModelOptions one_row{.n_ctx = 300, .chunk = 32, .logits_rows = 1, .log = {}};

}  // namespace

TEST_CASE("an answer of a batch is the answer alone, whenever others come and go") {
  for_each_talking_model(options, [](auto& model) {
    check_shared(model, NoDrafter());
    check_shared(model, Ngram({.n = 2, .drafts = 4}));
  });
  for_each_talking_model(one_row, [](auto& model) { check_shared(model, NoDrafter()); });
  const TinyHybrid hybrid = talking_hybrid();
  exec::Team team(2);
  Hybrid::With<WithExecutor<exec::Team>> recurrent(hybrid.document(), team, options);
  check_shared(recurrent, NoDrafter());
}

TEST_CASE("who writes gets a token in every step, however long the prompts beside it") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  Transformer<arch::Llama> model(tiny.document(), executor, options);
  Company<Transformer<arch::Llama>, NoDrafter> company(model, {}, {.prompt_tokens = 8});
  company.join({random_ids(40, 250), {.temperature = 0}, {.max_tokens = 30, .stop_at_end = false}});
  company.batch.step();
  CHECK(company.tokens(0) == 32);  // alone it has the whole step
  company.batch.step();
  CHECK(company.tokens(0) == 40);
  company.join({random_ids(200, 250, 2), {}, {.max_tokens = 5, .stop_at_end = false}});
  company.join({random_ids(9, 250, 3), {}, {.max_tokens = 5, .stop_at_end = false}});
  company.batch.step();
  CHECK(company.tokens(0) == 41);
  CHECK(company.tokens(1) == 2);  // the prompt that came first always advances,
  CHECK(company.tokens(2) == 6);  // and the one that is nearest to its end has the others
  company.batch.step();
  CHECK(company.tokens(0) == 42);
  CHECK(company.tokens(1) == 7);
  CHECK(company.tokens(2) == 9);
  company.batch.step();
  CHECK(company.tokens(0) == 43);
  CHECK(company.tokens(1) == 15);
  CHECK(company.tokens(2) == 10);
}

TEST_CASE("a sequence that leaves is cancelled, and its session can go on alone") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  Transformer<arch::Llama> model(tiny.document(), executor, options);
  const Request request = requests()[0];
  const Answer expected = alone(model, request);
  Session session(model);
  sample::Standard sampler(request.sampling, talking_vocabulary);
  Batch batch(model, bytes());
  const auto ignore = [](std::string_view) { return true; };
  const auto id = batch.add(session, sampler, request.prompt, request.how, ignore);
  for (int i = 0; i < 10; ++i) CHECK(batch.step());
  auto first = batch.remove(id);
  CHECK(first.reason == StopReason::cancelled);
  CHECK(first.tokens.size() == 10);
  CHECK_FALSE(batch.step());
  const auto last = std::vector<TokenId>{first.tokens.back()};
  // The sampler has accepted the last token, the session has not taken it.
  REQUIRE(session.feed(last) == model::StepStatus::ok);
  GenerateOptions rest = request.how;
  rest.max_tokens -= first.tokens.size();
  const auto second = generate(session, bytes(), sampler, {}, rest, ignore);
  first.tokens.insert(first.tokens.end(), second.tokens.begin(), second.tokens.end());
  CHECK(first.tokens == expected.tokens);
  CHECK(refusal([&] { batch.remove(id); }).code() == ErrorCode::usage);
}

TEST_CASE("a sequence without memory or room ends, and the others have their answers") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  using Budgeted = Transformer<arch::Llama, WithAllocator<alloc::Budgeted<alloc::Aligned>>>;
  budget::Ledger probe;
  std::uint64_t one = 0;
  {
    Budgeted model(tiny.document(), executor, options,
                   {.allocator = alloc::Budgeted<alloc::Aligned>(probe, budget::Account::weights)});
    auto cache = model.make_cache();
    const auto before = probe.used();
    REQUIRE(model.step(cache, random_ids(2, 250)) == model::StepStatus::ok);
    one = probe.used() - before;
  }
  budget::Ledger ledger(probe.peak() + one);  // room for two sequences
  Budgeted model(tiny.document(), executor, options,
                 {.allocator = alloc::Budgeted<alloc::Aligned>(ledger, budget::Account::weights)});
  const auto all = requests();
  std::vector<Answer> expected;
  for (const Request& request : all) expected.push_back(alone(model, request));
  Company<Budgeted, NoDrafter> company(model, {});
  for (const std::size_t i : {0u, 3u, 4u}) company.join(all[i]);
  while (company.batch.step()) {
  }
  CHECK(company.leave(0) == expected[0]);
  std::size_t refused = 0;  // of the two others, the one that comes to memory last
  for (const auto& [member, request] : {std::pair(1u, 3u), std::pair(2u, 4u)}) {
    const Answer answer = company.leave(member);
    if (answer.reason == StopReason::no_memory)
      ++refused;
    else
      CHECK(answer == expected[request]);
  }
  CHECK(refused == 1);

  Transformer<arch::Llama> small(tiny.document(), executor,
                                 {.n_ctx = 12, .chunk = 8, .logits_rows = 8, .log = {}});
  Company<Transformer<arch::Llama>, NoDrafter> pair(small, {});
  const Request endless{random_ids(4, 250), {.temperature = 0}, {.stop_at_end = false}};
  const Request brief{random_ids(9, 250), {.temperature = 0}, {.max_tokens = 2, .stop_at_end = false}};
  pair.join(endless);
  pair.join(brief);
  const Answer full = alone(small, endless), done = alone(small, brief);
  CHECK(full.reason == StopReason::context_full);
  while (pair.batch.step()) {
  }
  CHECK(pair.leave(0) == full);
  CHECK(pair.leave(1) == done);
}

TEST_CASE("logits that are not finite are raised with the layer, and end the sequences that had them") {
  TinyModel tiny = talking_dense();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(tiny.tensor("token_embd.weight").data() + 100 * 50 * sizeof(float), &nan, sizeof nan);
  exec::Inline executor;
  Transformer<arch::Llama> model(tiny.document(), executor, options);
  const Request good = requests()[0];
  Company<Transformer<arch::Llama>, NoDrafter> company(model, {});
  const Answer expected = alone(model, good);
  REQUIRE(std::find(expected.tokens.begin(), expected.tokens.end(), 100u) == expected.tokens.end());
  company.join(good);
  company.join({{5, 100}, {}, {}});
  const Error error = refusal([&] { company.batch.step(); });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "after token 1", "layer 0"));
  CHECK(company.over(1));
  while (company.batch.step()) {
  }
  CHECK(company.leave(0) == expected);
}

TEST_CASE("a prompt of nothing, and more sequences than a step has tokens, are refused") {
  const TinyModel tiny = talking_dense();
  exec::Inline executor;
  Transformer<arch::Llama> model(tiny.document(), executor,
                                 {.n_ctx = 64, .chunk = 2, .logits_rows = 2, .log = {}});
  Company<Transformer<arch::Llama>, NoDrafter> company(model, {});
  CHECK(refusal([&] { company.join({{}, {}, {}}); }).code() == ErrorCode::usage);
  CHECK(refusal([&] { company.join({{300}, {}, {}}); }).code() == ErrorCode::usage);
  const Request brief{random_ids(9, 250), {.temperature = 0}, {.max_tokens = 4, .stop_at_end = false}};
  company.join(brief);
  company.join(brief);
  CHECK(refusal([&] { company.join(brief); }).code() == ErrorCode::limit);
  while (company.batch.step()) {
  }
  CHECK(company.batch.size() == 2);
}

}  // namespace mica::test::batch_test
