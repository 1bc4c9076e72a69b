// SPDX-License-Identifier: Apache-2.0
//
// Speed of reading prompts and of writing tokens, in the fields and the table that llama-bench has, with the
// memory it took. Ids are random; every step of writing computes its logits, as generation does. Several
// sequences may decode in shared steps; prompts are read alone.
#include "choice.hpp"
#include "columns.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "load.hpp"
#include "machine_speed.hpp"
#include "meter.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/size.hpp"
#include "mica/kv/elements.hpp"
#include "mica/runtime/shared_step.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/fit/speed.hpp"
#include "mica_tools/quantize/recipe.hpp"
#include "progress.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

enum class BenchFormat : std::uint8_t { markdown, csv, json, jsonl };

class BenchVerb final : public RunningVerb {
 public:
  BenchVerb() : RunningVerb({"bench", "speed of prefill and decode", "mica bench model.gguf -p 512 -n 64"}) {}
  int run() override;
  [[nodiscard]] ErrorForm error_form() const override {
    if (jsonl || format == BenchFormat::jsonl) return ErrorForm::jsonl;
    return format == BenchFormat::json ? ErrorForm::json : Verb::error_form();
  }

  std::vector<std::size_t> n_prompt = {512};
  std::vector<std::size_t> n_gen = {128};
  std::vector<std::size_t> n_depth = {0};
  std::size_t parallel = 1;  // sequences that write together
  std::size_t repetitions = 5;
  BenchFormat format = BenchFormat::markdown;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    RunningOptions::add_to(flags, "tokens of context; 0: what the tests need");
    constexpr Range<std::size_t> tokens{0, std::numeric_limits<std::uint32_t>::max()};
    flags.group("Bench");
    flags.numbers("-p,--n-prompt", n_prompt, tokens, "prompt lengths to read; 0: none");
    flags.numbers("-n,--n-gen", n_gen, tokens, "tokens to write; 0: none");
    flags.numbers("-d,--n-depth", n_depth, tokens, "tokens in the context before");
    flags.number("-np,--parallel", parallel, {1, 1024},
                 "sequences in shared steps; the speed is the sum of theirs");
    flags.number("-r,--repetitions", repetitions, {1, 1000}, "runs of each test");
    flags.choice("-o,--output", format,
                 {{"md", BenchFormat::markdown},
                  {"csv", BenchFormat::csv},
                  {"json", BenchFormat::json},
                  {"jsonl", BenchFormat::jsonl}},
                 "md", "FORMAT", "md, csv, json, jsonl");
    flags.at_end([this](std::vector<std::string>&) {
      if (format != BenchFormat::markdown) return;
      if (json) format = BenchFormat::json;
      if (jsonl) format = BenchFormat::jsonl;
    });
  }
};

struct Test {
  std::size_t n_prompt = 0;
  std::size_t n_gen = 0;
  std::size_t n_depth = 0;
  std::size_t parallel = 1;  // sequences that write
};

struct Result {
  Test test;
  std::vector<double> seconds;  // one for each repetition
  std::string time;             // when it began
  std::uint64_t peak_bytes = 0;
  std::uint64_t booked_bytes = 0;  // the peak of the ledger
  std::uint64_t kv_bytes = 0;      // of keys and values of all sequences, afterwards
  Costs costs = {};                // of the repetitions
  std::uint64_t token_bytes = 0;   // that a token written in the middle of the test reads
  std::uint64_t token_macs = 0;    // multiply-adds that a token read there takes
  double predicted = 0;            // tokens a second; 0: this machine was not measured

  [[nodiscard]] std::size_t tokens() const noexcept { return test.n_prompt + test.parallel * test.n_gen; }
};

struct Spread {
  double mean = 0;
  double deviation = 0;
};

/// Mean and sample standard deviation.
Spread spread_of(const std::vector<double>& samples) {
  Spread spread;
  const double n = static_cast<double>(samples.size());
  for (const double x : samples) spread.mean += x / n;
  for (const double x : samples) spread.deviation += (x - spread.mean) * (x - spread.mean);
  spread.deviation = samples.size() < 2 ? 0 : std::sqrt(spread.deviation / (n - 1));
  return spread;
}

std::vector<double> rates(const Result& result) {
  std::vector<double> rates;
  for (const double s : result.seconds) rates.push_back(static_cast<double>(result.tokens()) / s);
  return rates;
}

std::vector<double> nanoseconds(const Result& result) {
  std::vector<double> out;
  for (const double s : result.seconds) out.push_back(std::round(s * 1e9));
  return out;
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// The tests in the order of llama-bench: for each depth, prompts and then generation.
std::vector<Test> tests_of(const BenchVerb& verb) {
  std::vector<Test> tests;
  for (const std::size_t depth : verb.n_depth) {
    for (const std::size_t n : verb.n_prompt) {
      if (n > 0) tests.push_back({n, 0, depth});
    }
    for (const std::size_t n : verb.n_gen) {
      if (n > 0) tests.push_back({0, n, depth, verb.parallel});
    }
  }
  MICA_CHECK(!tests.empty(), usage, "bench: nothing to do; -p and -n are both 0");
  return tests;
}

/// The number of sequences, and the max tokens of those beside the first one.
plan::Sequences sequences_of(const std::vector<Test>& tests) {
  plan::Sequences sequences;
  for (const Test& test : tests) {
    if (test.parallel == 1) continue;
    sequences.count = test.parallel;
    sequences.tokens = std::max(sequences.tokens, test.n_depth + test.n_gen);
  }
  return sequences;
}

/// Ids that no cache or branch can foresee, the same for every run.
std::vector<TokenId> random_ids(std::size_t n, std::size_t n_vocab) {
  std::vector<TokenId> ids(n);
  std::uint64_t state = 1;
  for (TokenId& id : ids) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    id = static_cast<TokenId>((state >> 33) % n_vocab);
  }
  return ids;
}

class Bench {
 public:
  Bench(const BenchVerb& verb, Model& model, std::size_t tests)
      : verb_(verb),
        model_(model),
        elements_(elements_of(choice_of(verb.choice))),
        together_(model.transformer()),
        known_(known_speed(model.threads(), largest_file(model.document()))),
        runs_(tests * (verb.repetitions + 1)),
        progress_(verb) {
    for (std::size_t i = 0; i < verb.parallel; ++i) sessions_.push_back(model.session());
    rows_.resize(verb.parallel);
    std::iota(rows_.begin(), rows_.end(), std::size_t{0});
  }

  /// One run to warm up, then the repetitions; seconds is empty after an interrupt.
  [[nodiscard]] Result run(const Test& test) {
    Result result{test, {}, time_now()};
    const plan::Work middle = work_at(test.n_depth + (test.n_prompt + test.n_gen) / 2);
    result.token_bytes = static_cast<std::uint64_t>(middle.decode_bytes());
    result.token_macs = static_cast<std::uint64_t>(middle.prefill_macs());
    result.predicted = predicted_rate(test);
    ids_ = random_ids(test.n_depth + test.n_prompt + test.n_gen, model_.config().n_vocab);
    for (std::size_t i = 0; i < test.parallel; ++i) {
      sessions_[i].rewind(0);
      const std::size_t had =
          i == 0 ? 0 : sessions_[i].adopt(sessions_[0], test.n_depth);  // where caches share
      check(sessions_[i].feed(std::span(ids_).first(test.n_depth).subspan(had)));
    }
    static_cast<void>(once(test));
    Meter meter(model_.transformer());
    for (std::size_t i = 0; i < verb_.repetitions && !interrupted(); ++i)
      result.seconds.push_back(once(test));
    progress_.clear();
    if (interrupted()) result.seconds.clear();
    result.costs = meter.lap();
    result.peak_bytes = peak_bytes();
    result.booked_bytes = model_.ledger().peak();
    result.kv_bytes = model_.ledger().used(budget::Account::kv);
    return result;
  }

 private:
  [[nodiscard]] std::uint64_t resident_bytes() const {
    return model_.ledger().used(budget::Account::weights);
  }
  [[nodiscard]] plan::StepReads reads_of(const plan::Work& work, std::size_t sequences) const {
    const auto& transformer = model_.transformer();
    plan::StepReads reads = plan::reads_of(work, transformer.weight_bytes(), resident_bytes(),
                                           transformer.streamed_bytes(), verb_.chunk, sequences);
    reads.ahead = paging::reads_ahead(transformer.weight_capacity());
    return reads;
  }
  /// Of a token at that position.
  [[nodiscard]] plan::Work work_at(std::size_t tokens) const {
    return plan::work_of(model_.document(), model_.config(), elements_, tokens,
                         model_.transformer().kv_capacity());
  }
  /// Tokens per second of all sequences; 0: this machine was not measured.
  [[nodiscard]] double predicted_rate(const Test& test) const {
    if (!known_) return 0;
    const plan::Work work = work_at(test.n_depth + test.n_prompt + test.n_gen / 2);
    const double as_in_file = plan::part_as_in_file(model_.document(), choice_of(verb_.choice).weights,
                                                    model_.transformer().weight_bytes(), resident_bytes());
    const plan::Steps steps{std::max<std::size_t>(test.n_prompt, 1), verb_.chunk, test.parallel, as_in_file};
    const plan::Speed speed = plan::predict(work, *known_, reads_of(work, test.parallel), steps);
    return test.n_gen > 0 ? speed.decode : speed.prefill;
  }
  [[nodiscard]] double once(const Test& test) {
    const auto sessions = std::span(sessions_).first(test.parallel);
    for (Session<AnyModel>& session : sessions) {
      session.rewind(test.n_depth);
      check(session.feed({}));  // what a recurrent state must run again is not measured
    }
    const auto ids = std::span(ids_).subspan(test.n_depth);
    const Stopwatch watch;
    if (test.n_prompt > 0) {
      check(sessions[0].feed(ids.first(test.n_prompt)));
      static_cast<void>(sessions[0].logits());
    }
    for (std::size_t i = 0; i < test.n_gen && !interrupted(); ++i) {
      feeds_.clear();
      // Each sequence has tokens of its own, so that each chooses its experts.
      for (std::size_t s = 0; s < sessions.size(); ++s)
        feeds_.push_back({&sessions[s], ids.subspan((test.n_prompt + i + s) % ids.size(), 1)});
      check(together_.step(feeds_).status);
      static_cast<void>(model_.transformer().logits(std::span(rows_).first(test.parallel)));
    }
    const double seconds = watch.seconds();
    progress_.update({.what = "bench", .done = ++done_, .all = runs_});
    return seconds;
  }
  static void check(model::StepStatus status) {
    MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
    MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
  }

  const BenchVerb& verb_;
  Model& model_;
  kv::AnyElements<> elements_;
  SharedStep<AnyModel> together_;
  std::optional<plan::MachineSpeed> known_;
  std::vector<Session<AnyModel>> sessions_;
  std::vector<SharedStep<AnyModel>::Feed> feeds_;
  std::vector<std::size_t> rows_;
  std::vector<TokenId> ids_;
  std::size_t runs_, done_ = 0;  // with those that warm up
  Progress progress_;
};

/// Values that are the same for all tests.
struct Subject {
  std::string file;
  std::string type;  // "llama Q4_K"
  std::uint64_t bytes = 0;
  std::uint64_t parameters = 0;
  std::size_t threads = 0;
};

/// The type that the file states, such as Q4_K_M; else the type of most of its bytes. A statement
/// that fits no tensor is ignored.
std::string main_type(const gguf::Document& document) {
  const auto type = document.metadata().get<std::uint32_t>("general.file_type");
  if (const auto recipe = type ? quantize::find_recipe(join(*type)) : std::nullopt) {
    const quantize::RecipeInfo& known = quantize::info(*recipe);
    const auto bears_out = [&](const gguf::TensorInfo& tensor) { return tensor.format.id == known.base; };
    if (std::any_of(document.tensors().begin(), document.tensors().end(), bears_out))
      return std::string(known.name);
  }
  std::vector<std::pair<std::uint64_t, std::string_view>> sums;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    const auto at = std::find_if(sums.begin(), sums.end(),
                                 [&](const auto& sum) { return sum.second == tensor.format.name; });
    if (at == sums.end()) {
      sums.emplace_back(tensor.bytes, tensor.format.name);
    } else {
      at->first += tensor.bytes;
    }
  }
  return sums.empty() ? std::string() : std::string(std::max_element(sums.begin(), sums.end())->second);
}

Subject subject_of(const Model& model) {
  Subject subject;
  subject.file = model.document().path();
  const std::string& name = model.config().name;
  subject.type =
      join(name.empty() ? model.config().arch : escaped(name, 40), " ", main_type(model.document()));
  for (const gguf::TensorInfo& tensor : model.document().tensors()) {
    subject.bytes += tensor.bytes;
    subject.parameters += tensor.elements();
  }
  subject.threads = model.threads();
  return subject;
}

using Fields = std::vector<std::pair<std::string_view, std::string>>;

/// A row of numbers, without brackets.
std::string numbers(const std::vector<double>& values, int decimals) {
  std::string text;
  for (const double value : values) text += join(text.empty() ? "" : ", ", fixed(value, decimals));
  return text;
}

/// The fields of one result, values as JSON; samples only where a format has lists.
Fields fields_of(const BenchVerb& verb, const Subject& subject, const Result& result, bool with_samples) {
  const Spread ns = spread_of(nanoseconds(result)), ts = spread_of(rates(result));
  const paging::Reads& reads = result.costs.reads;
  const std::size_t runs = std::max<std::size_t>(result.seconds.size(), 1);
  Fields fields = {{"build_number", json_string(MICA_PROGRAM_VERSION)},
                   {"backends", json_string("CPU")},
                   {"model_filename", json_string(subject.file)},
                   {"model_type", json_string(subject.type)},
                   {"model_size", join(subject.bytes)},
                   {"model_n_params", join(subject.parameters)},
                   {"n_batch", join(verb.chunk)},
                   {"n_ubatch", join(verb.chunk)},
                   {"n_threads", join(subject.threads)},
                   {"type_k", json_string(verb.choice.cache_type_k)},
                   {"type_v", json_string(verb.choice.cache_type_v)},
                   {"kv", json_string(verb.choice.kv)},
                   {"weights", json_string(verb.choice.weights)},
                   {"n_prompt", join(result.test.n_prompt)},
                   {"n_gen", join(result.test.n_gen)},
                   {"n_depth", join(result.test.n_depth)},
                   {"n_parallel", join(result.test.parallel)},
                   {"test_time", json_string(result.time)},
                   {"avg_ns", fixed(ns.mean, 0)},
                   {"stddev_ns", fixed(ns.deviation, 0)},
                   {"avg_ts", fixed(ts.mean, 6)},
                   {"stddev_ts", fixed(ts.deviation, 6)},
                   {"peak_bytes", join(result.peak_bytes)},
                   {"ledger_peak_bytes", join(result.booked_bytes)},
                   {"kv_bytes", join(result.kv_bytes)},
                   {"faults", join(result.costs.faults)},
                   {"read_bytes", join(reads.bytes / runs)},
                   {"wait_ns", fixed(reads.waited * 1e9 / static_cast<double>(runs), 0)},
                   {"token_bytes", join(result.token_bytes)},
                   {"token_macs", join(result.token_macs)},
                   {"predicted_ts", fixed(result.predicted, 6)}};
  if (with_samples) {
    fields.emplace_back("samples_ns", join("[", numbers(nanoseconds(result), 0), "]"));
    fields.emplace_back("samples_ts", join("[", numbers(rates(result), 6), "]"));
  }
  return fields;
}

std::string object_of(const Fields& fields, std::string_view between) {
  std::string text;
  for (const auto& [name, value] : fields)
    text += join(text.empty() ? "" : between, json_string(name), ": ", value);
  return join("{", text, "}");
}

std::string test_name(const Test& test) {
  std::string name = test.n_prompt > 0 ? join("pp", test.n_prompt) : join("tg", test.n_gen);
  if (test.parallel > 1) name += join(" x", test.parallel);
  return test.n_depth > 0 ? join(name, " @ d", test.n_depth) : name;
}

std::string billions(std::uint64_t parameters) {
  const double count = static_cast<double>(parameters);
  return count >= 1e9 ? join(fixed(count / 1e9, 2), " B") : join(fixed(count / 1e6, 2), " M");
}

/// "4.79 M", "1.24 G"
std::string count_text(std::uint64_t macs) {
  const double count = static_cast<double>(macs);
  return count >= 1e9 ? join(fixed(count / 1e9, 2), " G") : join(fixed(count / 1e6, 2), " M");
}

/// The traffic of a test: bytes in decode; multiply-adds in prefill, or if several sequences share the reads.
/// Then the predicted speed, if this machine was measured.
std::string traffic_text(const Result& result) {
  const double rate = spread_of(rates(result)).mean;
  const std::string predicted =
      result.predicted == 0 ? std::string() : join("; predicted ", fixed(result.predicted, 2), " t/s");
  if (result.test.n_gen > 0 && result.test.parallel == 1)
    return join(test_name(result.test), ": ", budget::size_text(result.token_bytes), " a token, ",
                fixed(rate * static_cast<double>(result.token_bytes) / 1e9, 1), " GB/s", predicted);
  return join(test_name(result.test), ": ", count_text(result.token_macs), " multiply-adds a token, ",
              fixed(rate * static_cast<double>(result.token_macs) / 1e9, 0), " GMAC/s", predicted);
}

/// Smaller models fit in a cache and are faster than predicted, which says nothing about others.
constexpr std::uint64_t min_learnt_bytes = std::uint64_t{512} << 20;

/// Stores the ratio of measured and predicted speed; not with other kernels, nor if the run waits for a disk.
void learn_from(const BenchVerb& verb, const Subject& subject, const Result& result) {
  const bool ordinary = result.costs.reads.bytes == 0 && verb.choice.kernels == "exact";
  if (result.predicted == 0 || subject.bytes < min_learnt_bytes || !ordinary) return;
  const double ratio = spread_of(rates(result)).mean / result.predicted;
  learn_speed(subject.threads, result.test.n_gen > 0 ? ratio : 0, result.test.n_gen > 0 ? 0 : ratio);
}

/// Prints results in one of the formats, each as soon as it is there.
class Printer {
 public:
  Printer(const BenchVerb& verb, const Subject& subject) : verb_(verb), subject_(subject) {}

  void begin() {
    if (verb_.format != BenchFormat::markdown) return;
    print(join("| ", at_left("model", 30), " | ", at_right("size", 10), " | ", at_right("params", 10), " | ",
               at_left("backend", 10), " | ", at_right("threads", 7), " | ", at_right("test", 15), " | ",
               at_right("t/s", 20), " |\n"));
    print(
        "| ------------------------------ | ---------: | ---------: | ---------- | ------: | --------------: "
        "| -------------------: |\n");
  }
  void add(const Result& result) {
    switch (verb_.format) {
      case BenchFormat::markdown:
        print(row(result));
        traffic_.push_back(traffic_text(result));
        break;
      case BenchFormat::csv:
        print(csv(result));
        break;
      case BenchFormat::json:
        print(
            join(first_ ? "[\n  " : ",\n  ", object_of(fields_of(verb_, subject_, result, true), ",\n    ")));
        break;
      case BenchFormat::jsonl:
        print(object_of(fields_of(verb_, subject_, result, true), ", ") + "\n");
        break;
    }
    first_ = false;
  }
  void end() {
    end_list();
    for (const std::string& line : traffic_) note(verb_, line);
    if (verb_.format == BenchFormat::markdown)
      note(verb_, join("peak ", budget::size_text(peak_bytes()), ", ", major_faults(), " major faults"));
  }

  /// Closes a list of JSON that was begun, also when a later test fails.
  void end_list() {
    if (verb_.format == BenchFormat::json && !first_) print("\n]\n");
  }

 private:
  [[nodiscard]] std::string row(const Result& result) const {
    const Spread ts = spread_of(rates(result));
    // The sign is one column and two bytes.
    return join("| ", at_left(subject_.type, 30), " | ", at_right(budget::size_text(subject_.bytes), 10),
                " | ", at_right(billions(subject_.parameters), 10), " | ", at_left("CPU", 10), " | ",
                at_right(join(subject_.threads), 7), " | ", at_right(test_name(result.test), 15), " | ",
                at_right(join(fixed(ts.mean, 2), " \xC2\xB1 ", fixed(ts.deviation, 2)), 21), " |\n");
  }
  [[nodiscard]] std::string csv(const Result& result) const {
    std::string names, values;
    for (const auto& [name, value] : fields_of(verb_, subject_, result, false)) {
      names += join(names.empty() ? "" : ",", name);
      values += join(values.empty() ? "" : ",", value);
    }
    return first_ ? join(names, "\n", values, "\n") : join(values, "\n");
  }

  const BenchVerb& verb_;
  const Subject& subject_;
  bool first_ = true;
  std::vector<std::string> traffic_;  // lines after the table
};

int BenchVerb::run() {
  const std::vector<Test> tests = tests_of(*this);
  std::size_t needed = 0;
  for (const Test& test : tests) needed = std::max(needed, test.n_depth + test.n_prompt + test.n_gen);
  if (n_ctx == 0) n_ctx = needed;
  MICA_CHECK(n_ctx >= needed, usage, "bench: the tests need a context of ", needed, " tokens; -c is ", n_ctx);
  Model model = open_model(*this, parallel, sequences_of(tests));
  const std::size_t most = model.transformer().chunk();
  MICA_CHECK(parallel <= most, usage, "bench: ", parallel, " sequences do not fit into steps of ", most,
             " tokens; use a larger --chunk, -c or --evict");
  const Subject subject = subject_of(model);
  Bench bench(*this, model, tests.size());
  Printer printer(*this, subject);
  printer.begin();
  try {
    for (const Test& test : tests) {
      const Result result = bench.run(test);
      if (result.seconds.empty()) throw Stop{130, {}};
      printer.add(result);
      learn_from(*this, subject, result);
    }
  } catch (...) {
    printer.end_list();
    throw;
  }
  printer.end();
  return 0;
}

}  // namespace

AnyVerb make_bench() { return std::make_unique<BenchVerb>(); }

}  // namespace mica::program
