// SPDX-License-Identifier: Apache-2.0
//
// serve: models over HTTP, for clients of OpenAI, Anthropic, Ollama and llama-server.
#include "answer_options.hpp"
#include "console.hpp"
#include "embed_options.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/routes/route_options.hpp"
#include "mica_tools/serve/scheduler.hpp"
#include "remote.hpp"
#include "safe_text.hpp"
#include "serve/file_loader.hpp"
#include "serve/model_files.hpp"
#include "serve/request_log.hpp"
#include "serve/systemd.hpp"
#include "serve/web.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

class Serve final : public AnswerVerb {
 public:
  Serve()
      : AnswerVerb({"serve", "answer requests over HTTP, as OpenAI, Anthropic, Ollama and llama-server do",
                    "mica serve model.gguf --port 8080"}) {}
  int run() override;
  [[nodiscard]] bool answers_with_one_model() const noexcept override { return false; }
  bool runs_on_ranks() const noexcept override { return true; }
  void follow() override;

 private:
  void declare(Flags& flags) override;
  void check() const;
  [[nodiscard]] std::vector<serve::ModelCard> cards() const;
  void add_keys(const std::string& path);
  [[nodiscard]] std::uint64_t budget() const;
  void announce(int port, const std::string& first) const;

  std::vector<std::string> more_;  // models after the first one
  std::string alias_;
  serve::ListenOptions listen_;
  WebOptions web_;
  serve::SchedulerOptions scheduler_;
  std::string key_file_;
  std::size_t max_body_mib_ = 2;
  std::int64_t keep_alive_ = -1;  // seconds
  std::string pooling_;           // empty: as the files say
};

void Serve::declare(Flags& flags) {
  add_model(flags);
  flags.words(more_, "MODEL", "further models, or folders of models; each is loaded when it is asked for");
  flags.group("Server");
  flags.text("--host", listen_.host, "HOST", "the address to listen on; 0.0.0.0: every one of this machine");
  flags.number("--port", listen_.port, {0, 65535}, "the port to listen on; 0: a free one, which is printed");
  flags.texts("--api-key", web_.keys, "KEY", "requests must have one of these keys; may be repeated");
  flags.text("--api-key-file", key_file_, "FILE", "the same from a file, a key on each line");
  flags.texts("--cors-origin", web_.origins, "ORIGIN",
              "pages of this origin may use the server, beside its own; * for any; may be repeated");
  flags.texts("--allow-host", web_.hosts, "NAME",
              "a name of this server in the header Host, beside localhost and addresses; may be repeated");
  flags.text("-a,--alias", alias_, "NAME", "the name of the first model, in place of that of its file");
  flags.number("-np,--parallel", scheduler_.parallel, {1, 256},
               "maximum of answers of a model at a time; memory bounds them as well");
  flags.number("--max-waiting", scheduler_.max_waiting, {1, 1 << 16},
               "maximum of answers in the queue; for more, status 429 says when to come again");
  flags
      .number("-n,--predict,--n-predict,--max-tokens", n_predict, {-1},
              "maximum of tokens of answers whose request has none; -1: to the end of the context")
      .needs = "a whole number from 1 on, or -1 for no maximum";
  flags.number("--keep-alive", keep_alive_, {-1, 1 << 30},
               "seconds after its last answer until a model is unloaded; -1: only when memory is needed");
  flags.number("--connections", listen_.connections, {1, 4096}, "maximum of connections at a time");
  flags.text("--state", scheduler_.state, "DIR", "save prefixes there, for the next start");
  flags.text("--slot-save-path", scheduler_.slots, "DIR",
             "clients may save slots to files there, and restore them (POST /slots/{id})");
  flags.choice("--log", web_.log,
               {{"none", LogForm::none}, {"logfmt", LogForm::logfmt}, {"json", LogForm::json}}, "none",
               "FORM", "a line on stderr for each request and each answer");
  flags.number("--max-stall", scheduler_.max_stall, {1.05, 100.0},
               "a prompt may make the steps of other answers about this many times as long");
  flags.choice(
      "--pooling", pooling_, {"mean", "cls", "last"}, "NAME",
      "embed texts with models whose file does not say how their states become one row: mean cls last");
  flags.number("--max-body", max_body_mib_, {1, 1024}, "maximum of MiB of a request's body");
  ChatOptions::add_template(flags);
  RunningOptions::add_to(
      flags, "tokens of context of each answer; 0: trained, at most 32768, of several models 8192");
  add_ranks(flags);
  add_sampling(flags);
  add_governor(flags);
}

void Serve::check() const {
  MICA_CHECK(choice.kv == "segmented" || choice.kv == "paged", usage, "--kv ", choice.kv,
             ": a server shares the pages of its answers; leave --kv out");
  MICA_CHECK(choice.evict == "none", usage, "--evict ", choice.evict,
             ": a server evicts no tokens of an answer; leave --evict out, or use a larger -c");
  MICA_CHECK(sampler_texts.biases.empty() && sampler_texts.breakers.empty(), usage,
             "--logit-bias and --dry-sequence-breaker belong to a request here; leave them out");
}

/// A key on each line; empty lines are none.
void Serve::add_keys(const std::string& path) {
  const std::string text = read_text(path);
  const std::size_t before = web_.keys.size();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string key = text.substr(begin, end - begin);
    if (key.ends_with('\r')) key.pop_back();
    if (!key.empty()) web_.keys.push_back(std::move(key));
    begin = end + 1;
  }
  MICA_CHECK(web_.keys.size() > before, usage, "--api-key-file: ", path, " has no key");
}

/// At once: a connection that is closed in order takes time, in which the process would be killed. Answers
/// have ended with their errors.
[[noreturn]] void end_lost(const OutputOptions& output) {
  note(output, "mica: stopped: other processes took the memory, and nothing is left to release");
  constexpr int out_of_memory = 4;
  std::_Exit(out_of_memory);
}

/// Waits while other processes have the memory. False: the server ends before.
bool load_first(serve::Scheduler& scheduler, const std::function<bool()>& ends) {
  while (!ends()) {
    try {
      static_cast<void>(scheduler.model(""));
      return true;
    } catch (const serve::Refusal& refusal) {
      if (!refusal.retry_after) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  return false;
}

std::uint64_t Serve::budget() const {
  const budget::Ceiling ceiling = budget::ceiling_of(memory_bytes, limits);
  if (ceiling.lowered()) note(*this, join("mica: memory budget: ", budget::text(ceiling)));
  return ceiling.bytes;
}

/// stdout has one line, for programs that start the server; people read stderr.
void Serve::announce(int port, const std::string& first) const {
  const bool is_v6 = listen_.host.find(':') != std::string::npos;
  const std::string url = join("http://", is_v6 ? "[" : "", listen_.host, is_v6 ? "]" : "", ":", port);
  print(join("{\"url\":\"", url, "\",\"port\":", port, "}\n"));
  note(*this, join("mica: ", url, " serves ", cell_text(first), "; Ctrl-C ends"));
  if (!is_loopback(listen_.host) && web_.keys.empty())
    note(*this,
         "mica: warning: every machine that reaches this address may use the server; --api-key KEY asks "
         "for a key");
}

std::vector<serve::ModelCard> Serve::cards() const {
  MICA_CHECK(!model_path.empty(), usage, "serve needs a model: a file, a folder of models, or a name");
  std::vector<std::string> models{model_path};
  models.insert(models.end(), more_.begin(), more_.end());
  std::vector<serve::ModelCard> cards = model_cards(models, alias_);
  if (!link) return cards;
  MICA_CHECK(cards.size() == 1, unsupported, "several processes of mpirun serve one model, found ",
             cards.size(), "; name one file");
  MICA_CHECK(cards[0].writes && !cards[0].ranks, unsupported, cards[0].path,
             ": a model that embeds or ranks texts is served by one process; start it without mpirun");
  cards[0].embeds = false;
  return cards;
}

void Serve::follow() {
  check();
  FileLoader loader(*this, scheduler_.parallel, false, nullptr);
  loader.follow(cards().front(), std::make_shared<budget::Ledger>(budget()));
}

int Serve::run() {
  check();
  std::vector<serve::ModelCard> cards = this->cards();
  if (!key_file_.empty()) add_keys(key_file_);
  web_.host = listen_.host;
  web_.sampler = sampler;
  web_.sampler.seed = seed >= 0 ? static_cast<std::uint64_t>(seed) : serve::any_seed;
  web_.parallel = scheduler_.parallel;
  web_.version = MICA_PROGRAM_VERSION;
  listen_.max_body = max_body_mib_ << 20;
  web_.max_tokens = limit();
  web_.pooling = arch::pooling_named(pooling_);
  if (keep_alive_ >= 0) scheduler_.keep_alive = std::chrono::seconds(keep_alive_);

  if (!scheduler_.state.empty()) serve::make_folder(scheduler_.state);
  if (!scheduler_.slots.empty()) serve::make_folder(scheduler_.slots);
  scheduler_.slots_hint = "start it with --slot-save-path DIR";
  scheduler_.process_bytes = plan::any_process_bytes + server_bytes + (link ? mpi_bytes : 0);
  scheduler_.resident_bytes = resident_bytes;
  scheduler_.release_memory = release_memory;
  scheduler_.memory_hint = "use a larger --memory";
  scheduler_.log = log_to_stderr(*this);
  scheduler_.on_ended = [this](const serve::AnswerNote& note) { log_answer(web_.log, note); };
  listen_.socket = inherited_socket();
  const auto ledger = std::make_shared<budget::Ledger>(budget());
  scheduler_.constraint_bytes = std::min(scheduler_.constraint_bytes, ledger->left() / 8);
  if (governor) scheduler_.watch = std::make_shared<MemoryWatch>(MemoryWatchOptions{.governor = thresholds});
  FileLoader loader(*this, scheduler_.parallel, cards.size() > 1, scheduler_.watch);
  const std::string first = cards.front().id;
  serve::Scheduler scheduler(std::move(cards), loader, ledger, scheduler_);
  std::thread computes([&] {
    scheduler.run();
    if (scheduler.is_lost()) end_lost(*this);
  });
  std::function<void()> stop_listening;
  std::exception_ptr failure;
  std::atomic<bool> listening{false}, ended{false};
  std::thread listens([&] {
    try {
      serve_http(listen_, web_handler(scheduler, web_), [&](int port, std::function<void()> stop) {
        stop_listening = std::move(stop);
        announce(port, first);
        listening = true;
      });
    } catch (...) {
      failure = std::current_exception();
    }
    ended = true;
  });
  // The first model is loaded at once: what is wrong with it is said now.
  try {
    while (!listening && !ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const bool loaded = load_first(scheduler, [&] { return ended || interrupted(); });
    if (loaded) notify_manager("READY=1");
    while (!interrupted() && !ended) {
      MICA_CHECK(!link || !link->lost(), failed,
                 "another rank is gone, or did not answer in time; answers have ended");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (interrupted()) note(*this, "mica: answers that run are completed; the same signal again ends at once");
  notify_manager("STOPPING=1");
  if (listening) stop_listening();
  failure ? scheduler.stop() : scheduler.drain();
  computes.join();
  listens.join();
  if (failure) std::rethrow_exception(failure);
  return 0;
}

}  // namespace

AnyVerb make_serve() { return std::make_unique<Serve>(); }

}  // namespace mica::program
