// SPDX-License-Identifier: Apache-2.0
//
// Lesson 12: the server in a program of its own.
//
//   12_serve [MODEL.gguf]
//
// A scheduler owns the models; its thread computes all answers together. Any other thread may give it jobs and
// take their events. Above it are the routes of OpenAI's API, as functions from requests to replies: a program
// that has a web server of its own brings the requests to them. mica_tools/http/listen.hpp is one with
// cpp-httplib.

#include "mica/plan/plan.hpp"
#include "mica_tools/http/router.hpp"
#include "mica_tools/routes/openai_text.hpp"
#include "mica_tools/serve/scheduler.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

namespace {

using namespace mica;
constexpr std::size_t n_ctx = 512;  // tokens of context of an answer

/// Opens models for the scheduler, which asks first for their bytes.
class Loader final : public serve::Loader {
 public:
  std::uint64_t bytes(const serve::ModelCard& card, std::uint64_t, std::size_t answers) override {
    return plan_of(card, answers).peak_bytes - plan::any_process_bytes;
  }
  std::shared_ptr<serve::LoadedModel> load(const serve::ModelCard& card,
                                           const std::shared_ptr<budget::Ledger>& ledger,
                                           std::size_t answers) override {
    OpenOptions options = options_of(answers);
    options.ledger = ledger;
    return std::make_shared<serve::LoadedModel>(open(card.path, options), card,
                                                serve::ChatFunctions{},  // none: completions alone
                                                serve::SequenceBytes(plan_of(card, answers).sequence_bytes));
  }

 private:
  static OpenOptions options_of(std::size_t answers) {  // at a time
    OpenOptions options{.n_ctx = n_ctx, .logits_rows = answers};
    options.choice.kv = kv::Choice::paged;  // answers share the pages of equal beginnings
    return options;
  }
  static plan::Plan plan_of(const serve::ModelCard& card, std::size_t answers) {
    const OpenOptions options = options_of(answers);
    plan::Question question;
    question.model = {.n_ctx = n_ctx, .chunk = options.chunk, .logits_rows = answers, .log = {}};
    question.choice = options.choice;
    question.threads = options.threads;
    question.sequence_bytes = true;  // what each further answer takes
    return plan::make_plan(gguf::open(card.path), question);
  }
};

/// The thread that computes, for as long as this object lives; answers that run then are completed.
class Computing {
 public:
  explicit Computing(serve::Scheduler& scheduler)
      : scheduler_(scheduler), thread_([&scheduler] { scheduler.run(); }) {}
  ~Computing() {
    scheduler_.drain();  // takes no further jobs
    thread_.join();
  }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;

 private:
  serve::Scheduler& scheduler_;
  std::thread thread_;
};

/// Prints an answer while it is written.
void tell(serve::Service& service, const std::string& beginning) {
  serve::Job job;
  job.model = service.model("");  // the first one; loads it
  job.prompt.tokens = job.model->encode(beginning, true, false);
  job.max_tokens = 40;
  std::printf("%s", beginning.c_str());
  const auto answer = service.submit(std::move(job));
  while (true) {
    const auto event = answer->next(std::chrono::seconds(1));
    if (!event) continue;  // nothing yet
    if (const auto* const text = std::get_if<serve::Text>(&*event)) std::printf("%s", text->text.c_str());
    if (const auto* const failed = std::get_if<serve::Failed>(&*event))
      return static_cast<void>(std::printf("\n%s\n", failed->message.c_str()));
    if (std::holds_alternative<serve::Ended>(*event)) return static_cast<void>(std::printf("\n\n"));
  }
}

/// Prints the reply to a request of a client of OpenAI's API, as a web server would send it.
void ask(serve::Service& service, const std::string& body) {
  serve::Router router;
  serve::add_openai_text(router, service, serve::RouteOptions{});
  serve::HttpReply reply = router.handle({.method = "POST", .path = "/v1/completions", .body = body});
  if (reply.later) reply = reply.later([] { return true; }).value();  // waits for the whole answer
  std::printf("%d %s\n", reply.status, reply.body.c_str());
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!std::filesystem::exists(path)) return std::printf("%s is not there: name a model\n", path.c_str()), 0;

  // One number for everything that is in memory: weights, keys and values of all answers, kept prefixes.
  const auto ledger = std::make_shared<budget::Ledger>(std::uint64_t{2} << 30);
  Loader loader;
  serve::Scheduler scheduler({{.id = "mine", .path = path}}, loader, ledger, {.parallel = 4});
  const Computing computing(scheduler);

  tell(scheduler, "Once upon a time");
  ask(scheduler, R"({"prompt": "Once upon a time", "max_tokens": 20, "temperature": 0})");
  ask(scheduler, R"({"prompt": "Once upon a time", "max_tokens": "many"})");  // 400, with the reason
} catch (const std::exception& error) {
  return std::printf("%s\n", error.what()), 1;
}
