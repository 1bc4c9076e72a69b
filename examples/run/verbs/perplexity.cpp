// SPDX-License-Identifier: Apache-2.0
//
// The perplexity of a model on a text, and with --kl-divergence its divergence from the base logits of
// --kl-divergence-base. Windows, figures and file are those of llama-perplexity, so numbers can be compared.
#include "budgeted.hpp"
#include "columns.hpp"
#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "load.hpp"
#include "mica/base/assert.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/measure/base_logits.hpp"
#include "mica_tools/measure/divergence.hpp"
#include "mica_tools/measure/windows.hpp"
#include "progress.hpp"
#include "verbs.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace mica::program {
namespace {

class Perplexity final : public RunningVerb, public PromptOptions {
 public:
  Perplexity()
      : RunningVerb({"perplexity", "how well a model predicts a text",
                     "mica perplexity model.gguf -f text.txt -c 512"}) {}
  int run() override;

  std::size_t chunks = 0;
  std::string kl_base;  // base logits, written or, with kl_divergence, read
  bool kl_divergence = false;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    PromptOptions::add_to(flags);
    RunningOptions::add_to(flags,
                           "tokens of a window; 0: 512, or the trained context if that is shorter; with "
                           "--kl-divergence the base file sets them",
                           "0");
    flags.group("Perplexity");
    flags.number("--chunks", chunks, {}, "maximum of windows; 0: all");
    flags.text("--kl-divergence-base,--save-all-logits", kl_base, "FILE",
               "base logits: written, and with --kl-divergence read");
    flags.toggle("--kl-divergence", kl_divergence, "compare with base logits, on their text");
  }
};

constexpr std::size_t rows_at_once = 16;

std::optional<TokenId> bos_of(const text::Vocabulary& vocabulary) {
  if (!vocabulary.add_bos()) return std::nullopt;
  return vocabulary.special().bos;
}

/// Feeds windows and shows progress: a line that is rewritten on a terminal, elsewhere ten lines.
class Measure {
 public:
  Measure(const Perplexity& verb, Model& model, const Windows& windows, std::size_t count)
      : verb_(verb),
        model_(model),
        windows_(windows),
        count_(count),
        progress_(verb, Progress::Elsewhere::nothing) {}

  /// Calls on_row(probabilities, next) for each prediction that counts; running() gives the perplexity so
  /// far. False after an interrupt.
  template <class OnRow, class Running>
  [[nodiscard]] bool run(OnRow&& on_row, Running&& running) {
    auto session = model_.session();
    for (std::size_t i = 0; i < count_; ++i) {
      const auto status =
          windows_.run(session, i, &interrupted(), [&](std::span<const float> logits, TokenId next) {
            const LogProbabilities row(logits);
            MICA_CHECK(std::isfinite(row.log_sum()), failed, "non-finite logits in window ", i);
            on_row(row, next);
          });
      if (interrupted()) return false;
      MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
      MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
      show(i + 1, running());
    }
    progress_.clear();
    return true;
  }
  [[nodiscard]] std::size_t windows() const noexcept { return count_; }
  [[nodiscard]] double seconds() const noexcept { return watch_.seconds(); }

  /// The last line on stderr.
  void note_speed() const {
    const double tokens = static_cast<double>(count_ * windows_.width());
    note(verb_,
         join(count_, " windows of ", windows_.width(), " tokens, ", fixed(tokens / seconds(), 2), " t/s"));
  }

 private:
  void show(std::size_t done, const Estimate& ppl) {
    const std::string value = join(fixed(ppl.value, 4), " +/- ", fixed(ppl.error, 4));
    progress_.update({.what = join("window ", done, " of ", count_),
                      .done = done * windows_.width(),
                      .all = count_ * windows_.width(),
                      .unit = WorkUnit::tokens,
                      .more = value});
    const bool tenth = done * 10 / count_ != (done - 1) * 10 / count_;
    if (verb_.verbose || (tenth && !verb_.json && !shows_progress(verb_)))
      note(verb_, join("[", done, "] ", value));
  }

  const Perplexity& verb_;
  Model& model_;
  const Windows& windows_;
  std::size_t count_;
  Progress progress_;
  Stopwatch watch_;
};

std::string perplexity_json(const RunningMean& nll, const Windows& windows, const Measure& measure) {
  const Estimate ppl = nll.estimate().exp();
  return join("{\"ppl\":", fixed(ppl.value, 6), ",\"se\":", fixed(ppl.error, 6),
              ",\"nll\":", fixed(nll.mean(), 8), ",\"windows\":", measure.windows(),
              ",\"n_ctx\":", windows.width(), ",\"tokens_counted\":", nll.count(),
              ",\"seconds\":", fixed(measure.seconds(), 3), ",\"peak_bytes\":", peak_bytes(), "}\n");
}

/// Perplexity of a text; with a file named, writes its logits for later comparisons.
int measure_text(const Perplexity& verb, Model& model, const Windows& windows) {
  const std::size_t count = verb.chunks == 0 ? windows.size() : std::min(windows.size(), verb.chunks);
  std::optional<BaseLogitsWriter> base;
  if (!verb.kl_base.empty()) base.emplace(verb.kl_base, windows, count, model.config().n_vocab);
  Measure measure(verb, model, windows, count);
  RunningMean nll;
  const auto on_row = [&](const LogProbabilities& row, TokenId next) {
    nll.add(-row[next]);
    if (base) base->write(row);
  };
  if (!measure.run(on_row, [&] { return nll.estimate().exp(); })) throw Stop{130, {}};
  if (base) base->commit();
  const Estimate ppl = nll.estimate().exp();
  MICA_CHECK(std::isfinite(ppl.value), failed, model.document().path(), ": the mean loss is ", nll.mean(),
             ", so the perplexity is no finite number; the weights may be damaged: make the file again");
  print(verb.json ? perplexity_json(nll, windows, measure)
                  : join("PPL = ", fixed(ppl.value, 4), " +/- ", fixed(ppl.error, 5), "\n"));
  measure.note_speed();
  return 0;
}

constexpr double percentiles[] = {0.999, 0.99, 0.95, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 0.001};

/// "99.9 %" and the like; for the ends "maximum" and "minimum".
std::string rank_name(double part) {
  if (part >= 1) return "maximum";
  return part <= 0 ? "minimum" : part == 0.5 ? "median" : fixed(100 * part, 1) + " %";
}

std::string line(std::string name, const Estimate& e, int decimals, double factor = 1,
                 std::string_view unit = {}) {
  return join(at_left(std::move(name), 23), "  ", at_right(fixed(factor * e.value, decimals), 11), " +/- ",
              fixed(factor * e.error, decimals), unit, "\n");
}

std::string ranks(std::string_view name, const Sorted& values, int decimals, double factor,
                  std::string_view unit) {
  std::string out;
  const auto add = [&](double part) {
    out += join(at_left(join(name, " ", rank_name(part)), 23), "  ",
                at_right(fixed(factor * values.at(part), decimals), 11), unit, "\n");
  };
  add(1);
  for (const double part : percentiles) add(part);
  add(0);
  return out;
}

std::string divergence_text(const Divergence& d) {
  return join(line("PPL(Q)", d.perplexity(), 6), line("PPL(base)", d.perplexity_base(), 6),
              line("ln(PPL(Q)/PPL(base))", d.log_ratio(), 6),
              line("PPL(Q)/PPL(base)", d.log_ratio().exp(), 6), line("PPL(Q)-PPL(base)", d.difference(), 6),
              "correlation of both      ", fixed(100 * d.correlation(), 2), " %\n\n",
              line("KL mean", d.kl(), 6), ranks("KL", d.kl_values(), 6, 1, ""), "\n",
              line("dp mean", d.dp(), 3, 100, " %"), line("dp RMS", d.dp_rms(), 3, 100, " %"),
              ranks("dp", d.dp_values(), 3, 100, " %"), line("same top", d.same_top(), 3, 100, " %"));
}

std::string json_pair(std::string_view name, const Estimate& e) {
  return join(",\"", name, "\":", fixed(e.value, 8), ",\"", name, "_se\":", fixed(e.error, 8));
}

std::string json_ranks(std::string_view name, const Sorted& values) {
  std::string out = join(",\"", name, "_percentiles\":{\"100\":", fixed(values.at(1), 8));
  for (const double part : percentiles)
    out += join(",\"", shortest(100 * part), "\":", fixed(values.at(part), 8));
  return join(out, ",\"0\":", fixed(values.at(0), 8), "}");
}

std::string divergence_json(const Divergence& d, const Windows& windows, const Measure& measure) {
  return join("{\"windows\":", measure.windows(), ",\"n_ctx\":", windows.width(),
              ",\"tokens_counted\":", d.count(), json_pair("ppl", d.perplexity()),
              json_pair("ppl_base", d.perplexity_base()), json_pair("ln_ppl_ratio", d.log_ratio()),
              json_pair("ppl_difference", d.difference()), ",\"correlation\":", fixed(d.correlation(), 8),
              json_pair("kl", d.kl()), json_ranks("kl", d.kl_values()), json_pair("dp", d.dp()),
              json_pair("dp_rms", d.dp_rms()), json_ranks("dp", d.dp_values()),
              json_pair("same_top", d.same_top()), ",\"seconds\":", fixed(measure.seconds(), 3),
              ",\"peak_bytes\":", peak_bytes(), "}\n");
}

/// Compares the model with the base; text and windows are those of the file.
int measure_divergence(Perplexity& verb) {
  MICA_CHECK(!verb.kl_base.empty(), usage,
             "perplexity: --kl-divergence compares with base logits; give --kl-divergence-base FILE");
  BaseLogitsReader base(verb.kl_base);
  MICA_CHECK(verb.n_ctx == 0 || verb.n_ctx == base.n_ctx(), usage, base.path(), ": windows of ", base.n_ctx(),
             " tokens; -c ", verb.n_ctx, " requests another width");
  verb.n_ctx = base.n_ctx();
  Model model = open_model(verb, rows_at_once);
  MICA_CHECK(base.n_vocab() == model.config().n_vocab, usage, base.path(),
             ": base logits of a vocabulary of ", base.n_vocab(), " tokens; the model has ",
             model.config().n_vocab, ": they cannot be compared");
  const Windows windows(base.tokens(), base.n_ctx(), bos_of(model.tokenizer().vocabulary()));
  const std::size_t count = verb.chunks == 0 ? windows.size() : std::min(windows.size(), verb.chunks);
  Measure measure(verb, model, windows, count);
  Divergence divergence;
  const auto on_row = [&](const LogProbabilities& row, TokenId next) {
    divergence.add(row, base.next(), next);
  };
  if (!measure.run(on_row, [&] { return divergence.perplexity(); })) throw Stop{130, {}};
  print(verb.json ? divergence_json(divergence, windows, measure) : divergence_text(divergence));
  measure.note_speed();
  return 0;
}

int Perplexity::run() {
  refuse_own_input(kl_divergence ? std::string() : kl_base, {prompt_file});
  if (kl_divergence) return measure_divergence(*this);
  const auto text = full_prompt();
  MICA_CHECK(text, usage, "perplexity: no text; give -f FILE");
  if (n_ctx == 0) n_ctx = default_window(open_document(*this));
  MICA_CHECK(n_ctx >= Windows::min_width, usage, "perplexity: a window of ", n_ctx,
             " tokens has no second half; use a larger -c");
  Model model = open_model(*this, rows_at_once);
  auto tokens = model.tokenizer().encode(*text, {.add_special = true, .parse_special = false});
  const Windows windows(std::move(tokens), n_ctx, bos_of(model.tokenizer().vocabulary()));
  return measure_text(*this, model, windows);
}

}  // namespace

AnyVerb make_perplexity() { return std::make_unique<Perplexity>(); }

}  // namespace mica::program
