// SPDX-License-Identifier: Apache-2.0
//
// What keys and values in F16, Q8_0 and four bits lose on exact weights, beside llama.cpp's caches of the same types.
// Writes a table of docs/conformance.md.

#include "shared.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "conformance/run.hpp"
#include "doc_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test::kv_test {

namespace {

/// The kit's name for llama.cpp's cache of as many bits.
const char* kit_key(std::string_view element) {
  if (element == "F16") return "f16_flash";
  return element == "Q8_0" ? "q8_0_flash" : "q4_0_flash";
}

std::string row_of(const std::string& file, const std::string& element, const Figures& ours,
                   const Figures& theirs, double beside_f16) {
  char row[240];
  std::snprintf(row, sizeof row, "| %s | %s | %.2e / %.2e | %.2f | %.2e / %.2e | %.2f | %.1f |\n",
                file.c_str(), element.c_str(), ours.rms, theirs.rms, ours.rms / theirs.rms, ours.mean_kl,
                theirs.mean_kl, ours.mean_kl / theirs.mean_kl, beside_f16);
  return row;
}

/// What elements lose in the files of the kit, file by file.
class Losses {
 public:
  /// Measures every element on one file and checks it against the kit's figures.
  void add(const Kit& kit, const nlohmann::json& entry);
  /// What the median row of a file with experts loses, beside llama.cpp's dense files. Both are in units of what F16
  /// loses on the same file: how much a model makes of an error cancels there.
  void check_medians() const;

  [[nodiscard]] const std::string& table() const { return table_; }

 private:
  struct Median {
    std::string file, element;
    double beside_f16;
  };
  std::vector<Median> medians_;            // of files with experts
  std::map<std::string, double> ceiling_;  // llama.cpp's largest of dense files, by the kit's name
  std::string table_ =
      "| Model | Element | rms, mica / llama.cpp | ratio | KL, mica / llama.cpp | ratio | median row / F16's "
      "|\n"
      "|---|---|---|---|---|---|---|\n";
};

void Losses::add(const Kit& kit, const nlohmann::json& entry) {
  const std::string file = short_name(entry);
  CAPTURE(file);
  Run<Decoded> exact_run(kit, entry);
  const auto exact = exact_run.all();  // as near to exact as logits_test.cpp says
  const auto measured = [&](const std::string& element) {
    return compare(Run<Decoded>(kit, entry, kv::parse_elements(element)).all(), exact, exact_run.n_vocab());
  };
  const auto& kit_errors = entry["kv_error_on_exact_weights"];
  const double their_f16 = figures(kit_errors["f16_flash"]).rms, our_f16 = measured("F16").median_rms;
  // Experts chosen by near ties decide the mean of a file that has them, and the kit has no rows for a median.
  const bool experts = exact_run.has_experts();
  const double alarm = experts ? 1.5 : 1;
  for (const std::string element :
       {"F16", "Q8_0", "Q4_0", "Q4_0_PLAIN", "Q4_S"}) {  // the last three have 4.5 bits
    CAPTURE(element);
    const std::string key = kit_key(element);
    const Figures ours = measured(element), theirs = figures(kit_errors[key]);
    CHECK(ours.median_rms > 0);  // else nothing was compared: every element rounds
    CHECK(ours.median_rms <= theirs.rms);
    CHECK(ours.rms <= alarm * theirs.rms);
    CHECK(ours.mean_kl <= alarm * theirs.mean_kl);
    const double beside_f16 = ours.median_rms / our_f16;
    table_ += row_of(file, element, ours, theirs, beside_f16);
    if (!experts) ceiling_[key] = std::max(ceiling_[key], theirs.rms / their_f16);
    if (experts && element != "F16") medians_.push_back({file, element, beside_f16});
  }
}

void Losses::check_medians() const {
  CHECK(medians_.size() == 5 * 4);
  for (const Median& one : medians_) {
    CAPTURE(one.file);
    CAPTURE(one.element);
    CHECK(one.beside_f16 <= 1.1 * ceiling_.at(kit_key(one.element)));
  }
}

}  // namespace

TEST_CASE("keys and values in F16, Q8_0 and Q4_0 lose no more than the kit's figures for them") {
  const auto root = shared_dir("KV elements on exact weights", "conformance");
  if (!root) return;
  const Kit kit(*root);
  Losses losses;
  std::size_t files = 0;
  for (const auto& entry : kit.models()) {
    if (!entry.contains("kv_error_on_exact_weights")) continue;
    ++files;
    losses.add(kit, entry);
  }
  CHECK(files == 16);
  losses.check_medians();
  publish_table("conformance.md", "kv", losses.table());
}

}  // namespace mica::test::kv_test

#else

TEST_CASE("keys and values in F16, Q8_0 and Q4_0 lose no more than the kit's figures for them") {
  mica::test::skipped("KV elements on exact weights",
                      "nlohmann-json, which reads the kit's index, is not installed");
}

#endif
