// SPDX-License-Identifier: Apache-2.0
//
// How much faster an answer is with the model's own head (multi-token prediction), for a given part of right
// drafts. Heads of random weights are never right, so the head runs, and its drafts are replaced: each is the
// token of the answer with probability A, and another one otherwise. With A = 0 it shows what a head costs
// that never helps.
//
// usage: mtp_bench MODEL [--accept 0.8,0.65,0] [--drafts 3] [--tokens 96] [--prompt 64] [--repeats 5]
//                  [--threads 0] [--vocabulary 32768] [--json FILE]
//
// Answers without and with drafts take turns; the medians are compared. Each answer has the tokens of the
// first one, or the program ends with 1. `mica synth llama-8b Q4_K_M l8.gguf --mtp` makes a model.
#include "mica/base/rng.hpp"
#include "mica/runtime/generate.hpp"
#include "mica/runtime/mtp_drafter.hpp"
#include "mica/runtime/open.hpp"
#include "mica/sample/standard.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using mica::TokenId;

struct Options {
  std::string model;
  std::vector<double> accept = {0.8, 0.65, 0};
  std::size_t drafts = 3;
  std::size_t tokens = 96;
  std::size_t prompt = 64;
  std::size_t repeats = 5;
  std::size_t threads = 0;
  std::size_t vocabulary = mica::MtpOptions{}.vocabulary;
  std::string json;
};

std::vector<double> numbers(const char* text) {
  std::vector<double> all;
  for (char* end = nullptr;; text = end + 1) {
    all.push_back(std::strtod(text, &end));
    if (end == text || *end != ',') return all;
  }
}

Options read(int count, char** words) {
  Options o;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&] {
      if (++i == count) throw std::runtime_error(word + " needs a value");
      return words[i];
    };
    const auto size = [&] { return static_cast<std::size_t>(std::strtoull(value(), nullptr, 10)); };
    if (word == "--accept")
      o.accept = numbers(value());
    else if (word == "--drafts")
      o.drafts = size();
    else if (word == "--tokens")
      o.tokens = size();
    else if (word == "--prompt")
      o.prompt = size();
    else if (word == "--repeats")
      o.repeats = std::max<std::size_t>(size(), 1);
    else if (word == "--threads")
      o.threads = size();
    else if (word == "--vocabulary")
      o.vocabulary = size();
    else if (word == "--json")
      o.json = value();
    else if (o.model.empty() && !word.starts_with("-"))
      o.model = word;
    else
      throw std::runtime_error("unknown: " + word);
  }
  if (o.model.empty()) throw std::runtime_error("usage: mtp_bench MODEL [OPTIONS], see the head of the file");
  return o;
}

/// Runs a drafter, and answers tokens of a known text with a probability.
template <class Inner>
class Replaced {
 public:
  Replaced(Inner& inner, std::vector<TokenId> text, double right)
      : inner_(inner), text_(std::move(text)), right_(right) {}

  // Required by Drafter
  [[nodiscard]] std::size_t max_drafts() const noexcept { return inner_.max_drafts(); }
  [[nodiscard]] std::size_t draft(std::span<const TokenId> before, TokenId last,
                                  std::span<TokenId> drafts) noexcept {
    const std::size_t n = inner_.draft(before, last, drafts);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = before.size() + 1 + i;
      const TokenId token = at < text_.size() ? text_[at] : 0;
      drafts[i] = rng_.uniform() < right_ ? token : token ^ 1;
    }
    return n;
  }
  // Required by FollowingDrafter
  void follow(std::span<const TokenId> before, TokenId last) noexcept { inner_.follow(before, last); }

 private:
  Inner& inner_;
  std::vector<TokenId> text_;
  double right_;
  mica::CounterRng rng_{1};
};

struct Run {
  double seconds = 0;  // of the answer
  mica::GenerateResult result;
};

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

class Bench {
 public:
  explicit Bench(const Options& o)
      : options_(o),
        model_(mica::open(o.model, {.n_ctx = o.prompt + o.tokens + 8,
                                    .logits_rows = 1 + o.drafts,
                                    .drafts = true,
                                    .mtp = true,
                                    .threads = o.threads})) {
    mica::CounterRng rng(7);
    for (std::size_t i = 0; i < o.prompt; ++i)
      prompt_.push_back(static_cast<TokenId>(3 + rng.next() % (model_.tokenizer().vocabulary().size() - 3)));
    mica::NoDrafter none;
    auto session = model_.session();
    expected_ = answer(session, none).result.tokens;
    text_ = prompt_;
    text_.insert(text_.end(), expected_.begin(), expected_.end());
  }

  /// One line of the table. False: an answer with drafts was another one.
  bool measure(double accept, std::string& json) {
    std::vector<double> plain, drafted, ratios;
    mica::DraftCounts counts;
    for (std::size_t i = 0; i < options_.repeats; ++i) {
      mica::NoDrafter none;
      auto first = model_.session();
      const Run without = answer(first, none);
      auto session = model_.session();
      mica::MtpDrafter head(session, *model_.mtp_head(),
                            {.drafts = options_.drafts, .vocabulary = options_.vocabulary});
      Replaced drafter(head, text_, accept);
      const Run with = answer(session, drafter);
      if (without.result.tokens != expected_ || with.result.tokens != expected_) return false;
      plain.push_back(static_cast<double>(expected_.size()) / without.seconds);
      drafted.push_back(static_cast<double>(expected_.size()) / with.seconds);
      ratios.push_back(drafted.back() / plain.back());
      counts = with.result.drafts;
    }
    std::printf("| %.2f | %.2f | %.2f | %.2f | %zu of %zu |\n", accept, median(plain), median(drafted),
                median(ratios), counts.accepted, counts.drafted);
    char line[256];
    std::snprintf(line, sizeof line,
                  "%s{\"accept\": %.2f, \"tokens_per_second\": %.3f, \"with_drafts\": %.3f, \"ratio\": %.3f, "
                  "\"accepted\": %zu, \"drafted\": %zu}",
                  json.empty() ? "" : ",\n  ", accept, median(plain), median(drafted), median(ratios),
                  counts.accepted, counts.drafted);
    json += line;
    return true;
  }

 private:
  template <class D>
  Run answer(mica::Session<mica::AnyModel>& session, D& drafter) {
    mica::sample::Standard<> sampler({.temperature = 0, .repeat_penalty = 1.3f, .repeat_last_n = 64},
                                     model_.config().n_vocab);
    mica::GenerateOptions how{.max_tokens = options_.tokens};
    how.stop_at_end = false;
    Run run;
    run.result = mica::generate(session, model_.tokenizer(), sampler, drafter, prompt_, how,
                                [](std::string_view) { return true; });
    run.seconds = run.result.timings.predicted.seconds;
    return run;
  }

  const Options& options_;
  mica::Model model_;
  std::vector<TokenId> prompt_, expected_, text_;
};

}  // namespace

int main(int count, char** words) try {
  const Options options = read(count, words);
  Bench bench(options);
  std::printf("| right drafts | tokens/s without | with | ratio | accepted |\n|---|---|---|---|---|\n");
  std::string json;
  for (const double accept : options.accept) {
    if (!bench.measure(accept, json)) {
      std::fprintf(stderr, "another answer with drafts\n");
      return 1;
    }
    std::fflush(stdout);
  }
  if (options.json.empty()) return 0;
  std::ofstream out(options.json);
  out << "{\"command\": \"mtp_bench MODEL --drafts " << options.drafts << " --tokens " << options.tokens
      << " --prompt " << options.prompt << " --repeats " << options.repeats << "\",\n \"results\": [\n  "
      << json << "\n]}\n";
  return out ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "mtp_bench: %s\n", error.what());
  return 2;
}
