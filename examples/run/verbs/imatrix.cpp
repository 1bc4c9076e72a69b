// SPDX-License-Identifier: Apache-2.0
//
// Collects an importance matrix: runs a model on a text in evaluation windows and sums the squares of the
// inputs of its matrices. mica quantize --imatrix and llama.cpp read the file.
#include "budgeted.hpp"
#include "console.hpp"
#include "input.hpp"
#include "mica/alloc/booking.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/team.hpp"
#include "mica/model/chosen.hpp"
#include "mica/runtime/session.hpp"
#include "mica/runtime/stats.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/measure/windows.hpp"
#include "mica_tools/quantize/importance.hpp"
#include "mica_tools/quantize/importance_collector.hpp"
#include "progress.hpp"
#include "running_options.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace mica::program {
namespace {

class Imatrix final : public RunningVerb, public PromptOptions {
 public:
  Imatrix()
      : RunningVerb({"imatrix", "collect an importance matrix from a text, for quantize",
                     "mica imatrix model-f16.gguf -f text.txt -o imatrix.gguf"}) {}
  int run() override;

  std::string output;
  std::size_t chunks = 0;
  bool process_output = false;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    PromptOptions::add_to(flags);
    RunningOptions::add_to(flags, "tokens of a window; 0: 512, or the trained context if that is shorter",
                           "0");
    flags.group("Importance");
    flags.text("-o,--output,--output-file", output, "FILE",
               "the importance matrix; imatrix.gguf if not given");
    flags.number("--chunks", chunks, {}, "maximum of windows; 0: all");
    flags.toggle("--process-output", process_output, "also the output matrix, from one row of each step");
  }
};

using Memory = alloc::Budgeted<alloc::Huge>;
using Observed = model::Chosen<arch::AnyOf<arch::All>, Memory,
                               exec::Team>::With<WithObserver<quantize::ImportanceCollector>>;

/// A model that shows its products to a collector.
class Collection {
 public:
  Collection(const Imatrix& verb, const gguf::Document& document, const OpenOptions& open)
      : verb_(verb),
        ledger_(budget_of(document, open)),
        team_(open.threads == 0 ? budget::cpu_limits().threads() : open.threads, open.log),
        collector_(document, verb.process_output),
        model_(model::make_chosen<Observed>(document, team_, numbers_of(open),
                                            Memory(ledger_, budget::Account::weights), open.choice)) {
    model_.observe(&collector_);
  }

  /// False after an interrupt.
  [[nodiscard]] bool read(const Windows& windows, std::size_t count) {
    Session<Observed> session(model_);
    Progress progress(verb_);
    for (std::size_t i = 0; i < count && !interrupted(); ++i) {
      session.rewind(0);
      const auto status =
          session.feed_rows(windows.fed(i), &interrupted(), [&](std::size_t first, std::size_t n) {
            if (!verb_.process_output) return;
            const std::size_t last = first + n - 1;  // the output matrix has one row of each step
            static_cast<void>(session.logits(std::span(&last, 1)));
          });
      MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
      MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
      progress.update({.what = join("window ", i + 1, " of ", count),
                       .done = (i + 1) * windows.width(),
                       .all = count * windows.width(),
                       .unit = WorkUnit::tokens});
    }
    return !interrupted();
  }
  [[nodiscard]] quantize::Importance importance() const { return collector_.importance(); }

 private:
  static ModelOptions numbers_of(const OpenOptions& open) {
    ModelOptions numbers;
    numbers.n_ctx = open.n_ctx;
    numbers.chunk = open.chunk;
    numbers.log = open.log;
    return numbers;
  }

  const Imatrix& verb_;
  budget::Ledger ledger_;
  exec::Team team_;
  quantize::ImportanceCollector collector_;
  Observed model_;
};

Windows windows_of(const gguf::Document& document, const std::string& text, std::size_t width, LogSink log) {
  const auto tokenizer = text::make_tokenizer(text::vocabulary_from(document.metadata(), log));
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  std::optional<TokenId> bos;
  if (vocabulary.add_bos()) bos = vocabulary.special().bos;
  return {tokenizer.encode(text, {.add_special = true, .parse_special = false}), width, bos};
}

int Imatrix::run() {
  if (output.empty()) output = "imatrix.gguf";
  refuse_own_input(output, {prompt_file});
  const auto text = full_prompt();
  MICA_CHECK(text, usage, "imatrix: no text; give -f FILE");
  const gguf::Document document = open_document(*this);
  OpenOptions open = open_options(*this);
  if (open.n_ctx == 0) open.n_ctx = default_window(document);
  open.log = log_to_stderr(*this);
  if (open.memory_bytes) refuse_what_does_not_fit(document, open);
  const Windows windows = windows_of(document, *text, open.n_ctx, open.log);
  const std::size_t count = chunks == 0 ? windows.size() : std::min(windows.size(), chunks);
  const Stopwatch watch;
  Collection collection(*this, document, open);
  if (!collection.read(windows, count)) throw Stop{130, {}};
  quantize::Importance importance = collection.importance();
  importance.datasets = {prompt_file.empty() ? "prompt" : prompt_file};
  importance.chunk_count = static_cast<std::uint32_t>(count);
  importance.chunk_size = static_cast<std::uint32_t>(windows.width());
  quantize::write_importance(importance, output);
  if (json) {
    print(join("{\"entries\":", importance.entries.size(), ",\"windows\":", count, ",\"n_ctx\":",
               windows.width(), ",\"seconds\":", watch.seconds(), ",\"peak_bytes\":", peak_bytes(), "}\n"));
  }
  note(*this, join(output, ": ", importance.entries.size(), " matrices from ", count, " windows of ",
                   windows.width(), " tokens"));
  return 0;
}

}  // namespace

AnyVerb make_imatrix() { return std::make_unique<Imatrix>(); }

}  // namespace mica::program
