// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/serve/embed_engine.hpp"

#include "io/temporary_folder.hpp"
#include "mica_tools/embed/text_embedder.hpp"
#include "mica_tools/routes/embeddings.hpp"
#include "serve/fairy_server.hpp"
#include "serve/tiny_encoder.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace mica::test::embed_engine_test {
namespace {

using namespace serve;

const std::string fairy = MICA_SOURCE "/examples/models/fairy.gguf";
constexpr std::uint64_t plenty = std::uint64_t{1} << 30;

/// The file of a tiny encoder.
struct EncoderFile {
  TemporaryFolder folder;
  std::string path;
  explicit EncoderFile(bool ranks = false) : path(folder.file("tiny.gguf", TinyEncoder(ranks).bytes())) {}
};

const std::vector<std::string> some_texts = {
    "the king eats bread", "a fox",
    "once there was a king who had a fox and a sea of bread and the fox eats it all the day", "the sea", "b"};

Job job_of(const std::shared_ptr<const ServedModel>& model, const std::vector<std::string>& texts,
           RowOptions rows = {}) {
  Job job;
  job.model = model;
  job.embed.emplace();
  job.embed->rows = rows;
  for (const std::string& text : texts)
    job.embed->texts.push_back(model->text_tokens(text, TextUse::any, false, "a text"));
  return job;
}

struct CollectedRows {
  std::vector<float> numbers;
  std::size_t width = 0;
  Ended ended;
  std::string failure;
};

CollectedRows collect_rows(Answer& answer) {
  CollectedRows all;
  for (;;) {
    auto event = answer.next(std::chrono::seconds(30));
    REQUIRE(event.has_value());
    if (auto* const rows = std::get_if<Embedded>(&*event)) {
      all.numbers = std::move(rows->numbers);
      all.width = rows->width;
    } else if (auto* const ended = std::get_if<Ended>(&*event)) {
      all.ended = *ended;
      return all;
    } else if (auto* const failed = std::get_if<Failed>(&*event)) {
      all.failure = failed->message;
      return all;
    }
  }
}

/// Rows that a model gives which has them for itself.
std::vector<float> alone(const std::string& path, const std::vector<std::string>& texts,
                         EmbedderOptions rows = {}) {
  Model model = open_embedder(path, {.n_ctx = 128, .threads = 1});
  TextEmbedder embedder(model, {.rows = rows});
  return embedder.embed(texts).numbers;
}

Job chat_job(const std::shared_ptr<const ServedModel>& model, std::size_t max_tokens) {
  Job job;
  job.model = model;
  job.prompt.tokens = model->encode("The old king", true, false);
  job.max_tokens = max_tokens;
  job.stop_at_end = false;
  return job;
}

std::string refusal_of(auto&& f) {
  try {
    f();
  } catch (const Refusal& refusal) {
    return std::to_string(status_of(refusal.cause())) + " " + refusal.message();
  }
  return "none";
}
bool is(const std::string& found, std::string_view status, std::string_view words) {
  INFO(found);
  return found.starts_with(status) && found.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "embeddings of the server have the bits that the model gives alone, whatever else shares the steps") {
  const EncoderFile encoder;
  Running server({encoder.path}, plenty, {}, 128);
  struct Request {
    std::vector<std::string> texts;
    EmbedderOptions options;
  };
  const std::vector<Request> requests = {
      {some_texts, {}},
      {{"a fox"}, {.dims = 5}},
      {{"the king", "x y z"}, {.pooling = arch::Pooling::first, .normalize = false}},
      {{"the king", "x y z"}, {.pooling = arch::Pooling::last, .dims = 3}},
      {{some_texts[2], some_texts[0]}, {.normalize = false}}};
  std::vector<std::vector<float>> expected;
  for (const Request& each : requests) expected.push_back(alone(encoder.path, each.texts, each.options));
  std::atomic<int> same{0};
  const auto client = [&](std::size_t number) {
    for (std::size_t i = 0; i < 10; ++i) {
      const std::size_t k = (number + i) % requests.size();
      const EmbedderOptions& o = requests[k].options;
      const auto answer = server.scheduler.submit(
          job_of(server.scheduler.model(""), requests[k].texts, {o.pooling, o.dims, o.normalize}));
      if (collect_rows(*answer).numbers == expected[k]) ++same;
    }
  };
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 6; ++i) clients.emplace_back(client, i);
  for (std::thread& each : clients) each.join();
  CHECK(same == 60);
  server.finish();
  const Metrics metrics = server.scheduler.snapshot().metrics;
  CHECK(metrics.finished == 60);
  CHECK(metrics.embedded_texts == 6 * 2 * (5 + 1 + 2 + 2 + 2));
  CHECK(server.ledger->peak() <= server.ledger->limit());
}

TEST_CASE("the keys and values of texts of any length stay within the plan, and steps of some fill it") {
  const EncoderFile file;
  constexpr std::size_t longest = 128, chunk = 256, texts = 8;
  using kv::Choice;
  for (const auto& how : std::initializer_list<std::pair<Choice, bool>>{{Choice::segmented, false},
                                                                        {Choice::segmented, true},
                                                                        {Choice::contiguous, false},
                                                                        {Choice::reserved, false}}) {
    const bool pages = how.first == Choice::segmented;  // texts have pages in its place
    CAPTURE(static_cast<int>(how.first));
    CAPTURE(how.second);
    OpenOptions open{.n_ctx = longest, .chunk = chunk, .threads = 1};
    open.choice.kv = how.first;
    open.choice.fast8 = how.second;
    Model model = open_embedder(file.path, open, texts);
    open = embedding_options(std::move(open), model.config(), texts);
    plan::Question question;
    question.model = {.n_ctx = open.n_ctx, .chunk = open.chunk, .log = {}};
    question.choice = open.choice;
    question.sequences = open.sequences;
    question.threads = 1;
    const std::uint64_t planned = plan::make_plan(model.document(), question).accounts[budget::Account::kv];
    TextEmbedder embedder(model, {.rows = {.texts = texts}});
    std::mt19937 random(5);
    std::uint64_t peak = 0;
    for (int round = 0; round < 30; ++round) {
      std::vector<std::vector<TokenId>> all(20);
      for (std::vector<TokenId>& text : all) {
        text.assign(round == 0 ? longest : 1 + random() % (round % 2 == 0 ? 20 : longest), 7);
      }
      static_cast<void>(embedder.embed_tokens(all));
      peak = model.ledger().peak(budget::Account::kv);
      CHECK(peak <= planned);
    }
    if (pages) CHECK(peak == planned);
  }
}

TEST_CASE("a text's end has its tokens, and its memory is free again") {
  const EncoderFile encoder;
  Running server({encoder.path}, plenty, {}, 128);
  const auto model = server.scheduler.model("");
  CHECK(model->text_tokens("a fox", TextUse::any, false, "it") == std::vector<TokenId>{2, 5, 59, 3});
  const std::uint64_t before = server.ledger->used();
  const CollectedRows rows = collect_rows(*server.scheduler.submit(job_of(model, {"a fox", "the sea"})));
  CHECK(rows.width == TinyEncoder::width);
  CHECK(rows.numbers.size() == 2 * TinyEncoder::width);
  CHECK(rows.ended.prompt_tokens == 8);
  CHECK(rows.ended.answer_tokens == 0);
  CHECK(rows.ended.reason == StopReason::end_of_text);
  wait_until([&] { return server.ledger->used() == before; });
}

TEST_CASE("a row for each token is the state before pooling: their mean is the embedding") {
  const EncoderFile encoder;
  Running server({encoder.path}, plenty, {}, 128);
  const auto model = server.scheduler.model("");
  const CollectedRows rows =
      collect_rows(*server.scheduler.submit(job_of(model, {"a fox", "b"}, {.each_token = true})));
  const auto mean = alone(encoder.path, {"a fox", "b"}, {.normalize = false});
  REQUIRE(rows.numbers.size() == (4 + 3) * TinyEncoder::width);
  for (std::size_t k = 0; k < TinyEncoder::width; ++k) {
    float sum = 0;
    for (std::size_t t = 0; t < 4; ++t) sum += rows.numbers[t * TinyEncoder::width + k];
    CHECK(sum / 4 == mean[k]);
  }
}

TEST_CASE("an answer and texts of another model run side by side, each with its bits") {
  const EncoderFile encoder;
  const auto expected = alone(encoder.path, some_texts);
  std::string tale;
  {
    Running server({fairy}, plenty, {}, 256);
    tale = collect(*server.scheduler.submit(chat_job(server.scheduler.model(""), 60))).text;
  }
  Running server({fairy, encoder.path}, plenty, {}, 256);
  const auto chat = server.scheduler.model("0");
  const auto embedder = server.scheduler.model("1");
  const auto answer = server.scheduler.submit(chat_job(chat, 60));
  std::vector<std::shared_ptr<Answer>> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(server.scheduler.submit(job_of(embedder, some_texts)));
  for (const auto& each : rows) CHECK(collect_rows(*each).numbers == expected);
  CHECK(collect(*answer).text == tale);
  server.finish();
  CHECK(server.scheduler.snapshot().metrics.finished == 21);
}

TEST_CASE("texts do not wait for answers that are as many as may run") {
  const EncoderFile encoder;
  Running server({fairy, encoder.path}, plenty, {.parallel = 1, .resident_bytes = nothing_slowly}, 256);
  const auto chat = server.scheduler.model("0");
  Job texts = job_of(server.scheduler.model("1"), some_texts);  // loaded before an answer begins
  const auto first = server.scheduler.submit(chat_job(chat, 200));
  const auto second = server.scheduler.submit(chat_job(chat, 200));
  const CollectedRows rows = collect_rows(*server.scheduler.submit(std::move(texts)));
  CHECK(rows.failure.empty());
  const auto answers = server.scheduler.snapshot().answers;
  CHECK(std::any_of(answers.begin(), answers.end(), [](const AnswerState& each) { return !each.running; }));
  first->cancel();
  second->cancel();
}

TEST_CASE("a text encoder leaves memory for a chat model, and comes back") {
  const EncoderFile encoder;
  FileLoader loader(256);
  ModelCard chat, embedder;
  chat.path = fairy;
  embedder.path = encoder.path;
  const std::uint64_t bytes[] = {loader.bytes(chat), loader.bytes(embedder)};
  Running server({fairy, encoder.path}, plan::any_process_bytes + std::max(bytes[0], bytes[1]) + 1000, {},
                 256);
  const auto expected = alone(encoder.path, some_texts);
  for (int i = 0; i < 3; ++i) {
    CHECK(collect_rows(*server.scheduler.submit(job_of(server.scheduler.model("1"), some_texts))).numbers ==
          expected);
    CHECK(collect(*server.scheduler.submit(chat_job(server.scheduler.model("0"), 5))).failure.empty());
  }
  server.finish();
  CHECK(server.scheduler.snapshot().metrics.unloads >= 1);
  CHECK(server.ledger->peak() <= server.ledger->limit());
}

TEST_CASE("a text encoder answers nothing, and a model without pooling embeds where a request chooses one") {
  const EncoderFile encoder;
  Running server({fairy, encoder.path}, plenty, {}, 256);
  const auto chat = server.scheduler.model("0"), embedder = server.scheduler.model("1");
  CHECK(chat->card().writes);
  CHECK_FALSE(chat->card().embeds);
  CHECK_FALSE(embedder->card().writes);
  CHECK(embedder->card().embeds);
  Job job;
  job.model = embedder;
  job.prompt.tokens = {2, 5};
  CHECK(is(refusal_of([&] { static_cast<void>(server.scheduler.submit(job)); }), "400",
           "model '1' is a text encoder: it embeds texts, and writes none"));
  CHECK(is(refusal_of([&] { static_cast<void>(server.scheduler.submit(job_of(chat, {"a king"}))); }), "400",
           "choose mean, cls or last"));
  for (const arch::Pooling pooling : {arch::Pooling::mean, arch::Pooling::last}) {
    const CollectedRows rows =
        collect_rows(*server.scheduler.submit(job_of(chat, {"The old king", "A fox"}, {.pooling = pooling})));
    CHECK(rows.numbers == alone(fairy, {"The old king", "A fox"}, {.pooling = pooling}));
  }
}

TEST_CASE("a chat model embeds long texts in parts beside its answers, with the same bits") {
  std::string text = "Once upon a time";
  for (int i = 0; i < 12; ++i) text += " there was a king who had a fox";
  const auto expected = alone(fairy, {text, "A fox"}, {.pooling = arch::Pooling::mean});
  Running server({fairy}, plenty, {}, 256, 16);
  const auto model = server.scheduler.model("");
  const auto answer = server.scheduler.submit(chat_job(model, 80));
  for (int i = 0; i < 3; ++i) {
    const Job job = job_of(model, {text, "A fox"}, {.pooling = arch::Pooling::mean});
    REQUIRE(job.embed->texts[0].size() > 64);
    CHECK(collect_rows(*server.scheduler.submit(job)).numbers == expected);
  }
  CHECK(collect(*answer).failure.empty());
}

TEST_CASE("a reranker scores pairs") {
  const EncoderFile encoder(true);
  Model model = open_embedder(encoder.path, {.n_ctx = 128, .threads = 1});
  TextEmbedder embedder(model);
  const std::vector<std::string> documents = {"the sea", "a fox eats", "bread"};
  const auto scores = embedder.rank("the king", documents);
  Running server({encoder.path}, plenty, {}, 128);
  const auto served = server.scheduler.model("");
  CHECK(served->card().ranks);
  CHECK_FALSE(served->card().embeds);
  Job job;
  job.model = served;
  job.embed.emplace();
  for (const std::string& document : documents)
    job.embed->texts.push_back(served->pair_tokens("the king", document, false, "it"));
  const CollectedRows rows = collect_rows(*server.scheduler.submit(job));
  CHECK(rows.width == 1);
  CHECK(rows.numbers == scores);
  CHECK(is(refusal_of([&] { static_cast<void>(served->row_width({.dims = 1})); }), "400", "a reranker"));
}

TEST_CASE("texts that a model cannot embed are refused, and those that are too long may be cut") {
  const EncoderFile encoder;
  Running server({encoder.path}, plenty, {}, 32);
  const auto model = server.scheduler.model("");
  CHECK(model->max_text_tokens() == 32);
  std::string text;
  for (int i = 0; i < 50; ++i) text += "x ";
  CHECK(is(refusal_of([&] { static_cast<void>(model->text_tokens(text, TextUse::any, false, "input[3]")); }),
           "400", "input[3] is too large: it has"));
  const auto cut = model->text_tokens(text, TextUse::any, true, "it");
  CHECK(cut.size() == 32);
  CHECK(cut.back() == 3);
  const auto refused = [&](std::vector<std::vector<TokenId>> texts) {
    Job job;
    job.model = model;
    job.embed = EmbedTexts{std::move(texts)};
    return refusal_of([&] { static_cast<void>(server.scheduler.submit(job)); });
  };
  CHECK(is(refused({}), "400", "needs a text"));
  CHECK(is(refused({{2, 3}, {}}), "400", "text 1 has 0 tokens"));
  CHECK(is(refused({std::vector<TokenId>(33, 5)}), "400", "text 0 has 33 tokens; allowed: 1 to 32"));
  CHECK(is(refused({{2, 1000}}), "400", "token 1000 is outside"));
}

TEST_CASE("texts wait for memory, and those that never fit are refused with their bytes") {
  const EncoderFile encoder;
  FileLoader loader(128);
  ModelCard card;
  card.path = encoder.path;
  const std::uint64_t budget = plan::any_process_bytes + loader.bytes(card) + 20'000;
  Running server({encoder.path}, budget, {}, 128);
  const auto model = server.scheduler.model("");
  const auto expected = alone(encoder.path, some_texts);
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 30; ++i) answers.push_back(server.scheduler.submit(job_of(model, some_texts)));
  for (const auto& each : answers) CHECK(collect_rows(*each).numbers == expected);
  const std::vector<std::string> many(20'000, "a");
  CHECK(is(refusal_of([&] { static_cast<void>(server.scheduler.submit(job_of(model, many))); }), "400",
           "send fewer texts"));
  CHECK(server.ledger->peak() <= budget);
}

TEST_CASE("texts of a client that disconnects leave, and an ending server ends them") {
  const EncoderFile encoder;
  Running server({encoder.path}, plenty, {.resident_bytes = nothing_slowly}, 128);
  const auto model = server.scheduler.model("");
  const std::vector<std::string> many(1000, some_texts[2]);
  const auto first = server.scheduler.submit(job_of(model, many));
  const auto second = server.scheduler.submit(job_of(model, {"a fox"}));
  first->cancel();
  CHECK(collect_rows(*first).ended.reason == StopReason::cancelled);
  CHECK(collect_rows(*second).numbers == alone(encoder.path, {"a fox"}));
  const auto third = server.scheduler.submit(job_of(model, many));
  server.scheduler.stop();
  const CollectedRows rows = collect_rows(*third);
  CHECK((rows.failure == "the server is ending" || rows.numbers.size() == 1000 * TinyEncoder::width));
}

}  // namespace mica::test::embed_engine_test
