// SPDX-License-Identifier: Apache-2.0
//
// How well a model predicts a text: windows of n_ctx tokens, each begun with BOS where the vocabulary asks
// for it, the second half of each counted. The chunking is that of the common tool, so numbers can be
// compared.
#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "load.hpp"
#include "mica/base/assert.hpp"
#include "mica/runtime/stats.hpp"
#include "progress.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace mica::program {
namespace {

constexpr std::size_t default_window = 512;
constexpr std::size_t rows_at_once = 16;

/// Negative log-likelihoods, summed.
struct Likelihood {
  std::size_t count = 0;
  double sum = 0;
  double squares = 0;

  void add(double nll) noexcept {
    ++count;
    sum += nll;
    squares += nll * nll;
  }
  [[nodiscard]] double mean() const noexcept { return sum / static_cast<double>(count); }
  [[nodiscard]] double perplexity() const noexcept { return std::exp(mean()); }
  /// The standard error of perplexity(), by the error of the mean.
  [[nodiscard]] double error() const noexcept {
    if (count < 2) return 0;
    const double n = static_cast<double>(count);
    const double variance = std::max(0.0, squares / n - mean() * mean());
    return std::sqrt(variance / (n - 1)) * perplexity();
  }
};

/// -log softmax(logits)[id], in double.
double negative_log_likelihood(std::span<const float> logits, TokenId id) {
  const double most = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
  return most + std::log(sum) - static_cast<double>(logits[id]);
}

class Measure {
 public:
  Measure(const Options& options, Model& model)
      : options_(options), model_(model), session_(model.session()), progress_(options) {}

  /// False when somebody interrupts.
  [[nodiscard]] bool run(const std::vector<TokenId>& tokens, std::size_t windows, std::size_t width) {
    for (std::size_t i = 0; i < windows; ++i) {
      if (!window(std::span(tokens).subspan(i * width, width))) return false;
      progress_.update(join("window ", i + 1, " of ", windows, ": ", fixed(sum_.perplexity(), 4)));
      if (options_.verbose) note(options_, join("[", i + 1, "] ", fixed(sum_.perplexity(), 4)));
    }
    progress_.clear();
    return true;
  }
  [[nodiscard]] const Likelihood& sum() const noexcept { return sum_; }

 private:
  [[nodiscard]] bool window(std::span<const TokenId> text) {
    std::vector<TokenId> fed(text.begin(), text.end());
    const text::Vocabulary& vocabulary = model_.tokenizer().vocabulary();
    if (vocabulary.add_bos()) fed.front() = *vocabulary.special().bos;
    session_.rewind(0);
    const auto status = session_.feed_rows(fed, &interrupted(), [&](std::size_t first, std::size_t count) {
      count_rows(text, first, first + count);
    });
    MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
    MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
    return !interrupted();
  }

  /// Rows [first, last) of the window have logits now; those of the second half that have a next token count.
  void count_rows(std::span<const TokenId> text, std::size_t first, std::size_t last) {
    last = std::min(last, text.size() - 1);
    std::vector<std::size_t> rows;
    for (std::size_t row = std::max(first, text.size() / 2); row < last; ++row) {
      rows.push_back(row);
      if (rows.size() < rows_at_once && row + 1 < last) continue;
      const auto logits = session_.logits(rows);  // (rows, n_vocab)
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const double nll = negative_log_likelihood(logits[r], text[rows[r] + 1]);
        MICA_CHECK(std::isfinite(nll), failed, "non-finite logits after token ", rows[r], " of a window");
        sum_.add(nll);
      }
      rows.clear();
    }
  }

  const Options& options_;
  Model& model_;
  Session<AnyModel> session_;
  Progress progress_;
  Likelihood sum_;
};

}  // namespace

int perplexity(const Options& options) {
  const auto text = prompt_of(options);
  MICA_CHECK(text, usage, "perplexity: no text; give -f FILE");
  Options sized = options;
  if (sized.n_ctx == 0) sized.n_ctx = default_window;
  const std::size_t width = sized.n_ctx;
  MICA_CHECK(width >= 4, usage, "perplexity: a window of ", width,
             " tokens has no second half; use a larger -c");
  Model model = open_model(sized, rows_at_once);
  const auto tokens = model.tokenizer().encode(*text, {.add_special = true, .parse_special = false});
  const std::size_t whole = tokens.size() / width;
  MICA_CHECK(whole > 0, usage, "perplexity: the text has ", tokens.size(), " tokens; a window takes ", width,
             ": use a smaller -c");
  const std::size_t windows = options.chunks == 0 ? whole : std::min(whole, options.chunks);
  const Stopwatch watch;
  Measure measure(options, model);
  if (!measure.run(tokens, windows, width)) return 130;
  const Likelihood& sum = measure.sum();
  if (options.json) {
    print(join("{\"ppl\":", fixed(sum.perplexity(), 6), ",\"se\":", fixed(sum.error(), 6),
               ",\"nll\":", fixed(sum.mean(), 8), ",\"windows\":", windows, ",\"n_ctx\":", width,
               ",\"tokens_counted\":", sum.count, ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  } else {
    print(join("PPL = ", fixed(sum.perplexity(), 4), " +/- ", fixed(sum.error(), 4), "\n"));
  }
  note(options, join(windows, " windows of ", width, " tokens, ",
                     fixed(static_cast<double>(windows * width) / watch.seconds(), 2), " t/s"));
  return 0;
}

}  // namespace mica::program
