// SPDX-License-Identifier: Apache-2.0
//
// Logits and greedy answers of every model file of the conformance kit, beside llama.cpp's. Writes a table of
// docs/conformance.md, which says what is compared with what.

#include "shared.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "conformance/run.hpp"
#include "doc_table.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace mica::test::logits_test {
namespace {

/// Errors of both engines, by one measure.
struct Errors {
  double rms = 0;
  double kl = 0;
  double their_rms = 0;
  double their_kl = 0;

  [[nodiscard]] double rms_ratio() const { return rms / their_rms; }
  [[nodiscard]] double kl_ratio() const { return kl / their_kl; }
  [[nodiscard]] bool as_good() const { return rms_ratio() <= 1.1 && kl_ratio() <= 1.1; }
};

/// One file: float arithmetic on its weights against the references, and what rounding adds here and in llama.cpp.
struct Line {
  std::string file;
  bool floats = false;   // weights that are numbers: nothing is rounded here
  bool experts = false;  // then `rows` says more than `all`
  double max_exact = 0;  // float arithmetic against the kit's exact rows
  double max_f64 = -1;   // and against the rows in f64; -1: the kit has none
  Errors all;
  Errors rows;
  Errors chosen;  // the kit's exact rows beside llama.cpp's figure over all positions
  Greedy greedy;
  Greedy float_greedy;  // of float arithmetic on the weights

  [[nodiscard]] const Errors& errors() const { return experts ? rows : all; }
};

std::string number(const char* form, double x) {
  char text[32];
  std::snprintf(text, sizeof text, form, x);
  return text;
}

/// All positions of the prompts: ours against float arithmetic on the same weights (the kit's rows in f64 where weights
/// are floats), llama.cpp's from the kit.
Errors errors_of_all(const Figures& ours, const nlohmann::json& entry) {
  if (!entry.contains("llamacpp_error")) return {ours.rms, ours.mean_kl};
  const Figures theirs = figures(entry["llamacpp_error"]);
  return {ours.rms, ours.mean_kl, theirs.rms, theirs.mean_kl};
}

/// The median of the rows that the kit has from both: a near tie in a router, which any error decides, moves a row by
/// several units, and a mean shows little else.
Errors errors_of_rows(const Kit& kit, const nlohmann::json& entry, std::span<const float> chosen,
                      std::size_t n_vocab) {
  const auto exact = kit.logits(entry, "exact_logits");
  const Figures ours = compare(chosen, exact, n_vocab);
  const Figures theirs = compare(kit.logits(entry, "llamacpp_logits"), exact, n_vocab);
  return {ours.median_rms, ours.median_kl, theirs.median_rms, theirs.median_kl};
}

Line measure(const Kit& kit, const nlohmann::json& entry) {
  Line line;
  line.file = short_name(entry);
  const std::string format = entry["format"];
  line.floats = format == "F32" || format == "F16" || format == "BF16";
  Run<Ordinary> run(kit, entry);
  Run<Decoded> decoded_run(kit, entry);
  line.experts = run.has_experts();
  const std::size_t n_vocab = run.n_vocab();
  const auto all = run.all(), chosen = run.chosen(all), decoded = decoded_run.all();
  const auto rows = line.floats ? chosen : run.chosen(decoded), f64 = kit.logits(entry, "f64_logits");
  line.max_exact = compare(rows, kit.logits(entry, "exact_logits"), n_vocab).max;
  if (!f64.empty()) line.max_f64 = compare(rows, f64, n_vocab).max;
  line.all =
      errors_of_all(line.floats ? compare(chosen, f64, n_vocab) : compare(all, decoded, n_vocab), entry);
  if (line.experts) line.rows = errors_of_rows(kit, entry, chosen, n_vocab);
  line.chosen = errors_of_all(compare(chosen, kit.logits(entry, "exact_logits"), n_vocab), entry);
  line.greedy = run.greedy();
  line.float_greedy = line.floats ? line.greedy : decoded_run.greedy();
  return line;
}

std::string cells(const Errors& e) {
  std::string text;
  const auto pair = [&](double ours, double theirs) {
    text += number("%.2e", ours);
    text += theirs == 0 ? " | | " : number(" / %.2e | ", theirs) + number("%.2f | ", ours / theirs);
  };
  pair(e.rms, e.their_rms);
  pair(e.kl, e.their_kl);
  return text;
}

std::string row_of(const Line& line) {
  const auto steps = [](const Greedy& g) {
    return " | " + std::to_string(g.equal) + " of " + std::to_string(g.safe);
  };
  std::string row = "| " + line.file + (line.experts ? ", median row | " : " | ") + cells(line.errors()) +
                    number("%.1e |", line.max_exact) +
                    (line.max_f64 < 0 ? "" : number(" %.1e", line.max_f64)) + steps(line.float_greedy) +
                    steps(line.greedy) + " |\n";
  if (line.experts) row += "| " + line.file + ", all positions | " + cells(line.all) + "| | | |\n";
  return row;
}

/// The ratios of some files.
struct Ratios {
  std::vector<double> rms;
  std::vector<double> kl;

  void add(const Errors& e) {
    rms.push_back(e.rms_ratio());
    kl.push_back(e.kl_ratio());
  }
  [[nodiscard]] std::string row(const std::string& name) const {
    return "| " + name + " | | " + number("%.2f | | ", median(rms)) + number("%.2f | | | | |\n", median(kl));
  }
};

}  // namespace

TEST_CASE("logits of every file of the kit are as near to the exact ones as they should be") {
  const auto root = shared_dir("logits of model files", "conformance");
  if (!root) return;
  const Kit kit(*root);
  std::string table =
      "| File | rms, mica / llama.cpp | ratio | KL, mica / llama.cpp | ratio | floats against exact, max "
      "| against f64, max | greedy, floats | greedy |\n|---|---|---|---|---|---|---|---|---|\n";
  Ratios quantised, rounded, chosen;
  for (const auto& entry : kit.models()) {
    const Line line = measure(kit, entry);
    CAPTURE(line.file);
    table += row_of(line);
    CHECK(line.max_exact <= exact_tolerance(entry));
    CHECK(line.max_f64 <= f64_tolerance);
    CHECK(line.float_greedy.equal == line.float_greedy.safe);
    if (line.all.their_rms != 0) rounded.add(line.errors());
    if (line.floats) {
      CHECK(line.all.rms <= 1e-5);
    } else {
      quantised.add(line.errors());
      chosen.add(line.chosen);
      CAPTURE(line.errors().rms_ratio());
      CAPTURE(line.errors().kl_ratio());
      CHECK((line.errors().as_good() || (line.experts && line.all.as_good())));
    }
  }
  table += quantised.row("median of the " + std::to_string(quantised.rms.size()) + " quantised files");
  table += chosen.row("median of the " + std::to_string(chosen.rms.size()) +
                      " quantised files, the kit's rows against its figure for llama.cpp");
  table += rounded.row("median of the " + std::to_string(rounded.rms.size()) + " that llama.cpp rounds for");
  publish_table("conformance.md", "logits", table);
  CHECK(kit.models().size() == 48);
  CHECK(quantised.rms.size() == 43);
  CHECK(median(quantised.rms) <=
        0.85);  // half of the files have formats for which both round activations alike
  CHECK(median(quantised.kl) <= 0.8);
  CHECK(median(chosen.rms) <= 0.8);
  CHECK(median(chosen.kl) <= 0.8);
  CHECK(median(rounded.rms) <= 0.8);
  CHECK(median(rounded.kl) <= 0.8);
}

}  // namespace mica::test::logits_test

#else

TEST_CASE("logits of every file of the kit are as near to the exact ones as they should be") {
  mica::test::skipped("logits of model files",
                      "nlohmann-json, which reads the kit's index, is not installed");
}

#endif
