// SPDX-License-Identifier: Apache-2.0
//
// What keys and values in F16, Q8_0 and four bits lose on exact weights, beside llama.cpp's caches of the same types.
// Writes a table of docs/conformance.md.

#include "shared.hpp"

#if __has_include(<nlohmann/json.hpp>)
#include "conformance/run.hpp"
#include "doc_table.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>

namespace mica::test {

TEST_CASE("keys and values in F16, Q8_0 and Q4_0 lose no more than the kit's figures for them") {
  const auto root = shared_dir("KV elements on exact weights", "conformance");
  if (!root) return;
  const Kit kit(*root);
  std::string table =
      "| Model | Element | rms, mica / llama.cpp | ratio | KL, mica / llama.cpp | ratio |\n"
      "|---|---|---|---|---|---|\n";
  std::size_t files = 0;
  for (const auto& entry : kit.models()) {
    if (!entry.contains("kv_error_on_exact_weights")) continue;
    ++files;
    const std::string file = short_name(entry);
    CAPTURE(file);
    Run<Decoded> exact_run(kit, entry);
    const auto exact = exact_run.all();  // as near to exact as logits_test.cpp says
    // Experts chosen by near ties decide the mean of a file that has them, and the kit has no rows for a median.
    const double alarm = exact_run.has_experts() ? 1.5 : 1;
    for (const std::string element :
         {"F16", "Q8_0", "Q4_0", "Q4_0_PLAIN", "Q4_S"}) {  // the last three have 4.5 bits
      CAPTURE(element);
      const char* const key = element == "F16"    ? "f16_flash"
                              : element == "Q8_0" ? "q8_0_flash"
                                                  : "q4_0_flash";
      const Figures ours = compare(Run<Decoded>(kit, entry, element).all(), exact, exact_run.n_vocab());
      const Figures theirs = figures(entry["kv_error_on_exact_weights"][key]);
      char row[200];
      std::snprintf(row, sizeof row, "| %s | %s | %.2e / %.2e | %.2f | %.2e / %.2e | %.2f |\n", file.c_str(),
                    element.c_str(), ours.rms, theirs.rms, ours.rms / theirs.rms, ours.mean_kl,
                    theirs.mean_kl, ours.mean_kl / theirs.mean_kl);
      table += row;
      CHECK(ours.rms > 0);  // else nothing was compared: every element rounds
      CHECK(ours.rms <= alarm * theirs.rms);
      CHECK(ours.mean_kl <= alarm * theirs.mean_kl);
    }
  }
  CHECK(files == 16);
  publish_table("conformance.md", "kv", table);
}

}  // namespace mica::test

#else

TEST_CASE("keys and values in F16, Q8_0 and Q4_0 lose no more than the kit's figures for them") {
  mica::test::skipped("KV elements on exact weights",
                      "nlohmann-json, which reads the kit's index, is not installed");
}

#endif
