// SPDX-License-Identifier: Apache-2.0
//
// Perplexity, and divergence from base logits, on the bundled model: no kit is needed.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include <string>

namespace mica::test::perplexity_test {
namespace {

/// A text long enough for some windows of 32 tokens.
std::string some_text() {
  std::string text;
  for (int i = 0; i < 12; ++i)
    text += "Once upon a time there was a king who had three daughters, and the youngest was kind. ";
  return text;
}

bool bundled() { return mica({"doctor"}).out.find("bundled_model_bytes   0 B") == std::string::npos; }

/// The number behind a label at the beginning of a line.
double number_after(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  REQUIRE_MESSAGE(at != std::string::npos, label, " is missing in ", text);
  return std::stod(text.substr(at + label.size()));
}

TEST_CASE("a model does not diverge from its own base logits") {
  if (!bundled()) return skipped("divergence from a base", "this program carries no model");
  const TemporaryFolder folder;
  const std::string text = folder.file("text.txt", some_text());
  const std::string base = folder.path("base.kld");
  const Ran ran = mica({"perplexity", "-f", text, "-c", "32", "--kl-divergence-base", base});
  REQUIRE(ran.code == 0);
  CHECK(has(ran.out, " +/- "));
  const double ppl = number_after(ran.out, "PPL = ");
  const Ran compared = mica({"perplexity", "--kl-divergence", "--kl-divergence-base", base});
  REQUIRE(compared.code == 0);
  CHECK(number_after(compared.out, "PPL(Q)") == doctest::Approx(ppl).epsilon(1e-4));
  CHECK(number_after(compared.out, "PPL(base)") == doctest::Approx(ppl).epsilon(1e-2));
  CHECK(number_after(compared.out, "KL mean") < 1e-4);
  CHECK(number_after(compared.out, "same top") > 99);
  const Ran coarse =
      mica({"perplexity", "--kl-divergence", "--kl-divergence-base", base, "--chunks", "1", "--json"});
  REQUIRE(coarse.code == 0);
  CHECK(has(coarse.out, "\"windows\":1,\"n_ctx\":32,\"tokens_counted\":15,"));
  CHECK(has(coarse.out, "\"kl_percentiles\":{\"100\":"));
}

TEST_CASE("base logits that are missing, damaged or of another width are refused with a sentence") {
  const TemporaryFolder folder;
  const Ran none = mica({"perplexity", "--kl-divergence"});
  CHECK(none.code == 2);
  CHECK(has(none.err, "--kl-divergence-base FILE"));
  CHECK(mica({"perplexity", "--kl-divergence", "--kl-divergence-base", folder.path("nowhere")}).code == 3);
  const std::string bad = folder.file("bad.kld", "_logits_ and then nothing of the kind");
  const Ran damaged = mica({"perplexity", "--kl-divergence", "--kl-divergence-base", bad});
  CHECK(damaged.code == 3);
  CHECK(has(damaged.err, "bad.kld"));
}

TEST_CASE("a text shorter than a window is refused with both numbers") {
  if (!bundled()) return skipped("short texts", "this program carries no model");
  const TemporaryFolder folder;
  const Ran ran = mica({"perplexity", "-f", folder.file("text.txt", "Too short."), "-c", "64"});
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "a window takes 64"));
  CHECK(mica({"perplexity", "-f", folder.path("text.txt"), "-c", "3"}).code == 2);
}

TEST_CASE("a window is no longer than the training, and a longer one is used with a line") {
  if (!bundled()) return skipped("windows", "this program carries no model");
  const TemporaryFolder folder;
  const std::string text = folder.file("text.txt", some_text() + some_text() + some_text());
  const Ran usual = mica({"perplexity", "-f", text, "--chunks", "1", "--json"});
  REQUIRE_MESSAGE(usual.code == 0, usual.err);
  CHECK(has(usual.out, "\"n_ctx\":256,"));
  CHECK(usual.err.find("trained for") == std::string::npos);
  const Ran longer = mica({"perplexity", "-f", text, "--chunks", "1", "-c", "320"});
  REQUIRE_MESSAGE(longer.code == 0, longer.err);
  CHECK(has(longer.err, "a context of 320 tokens is more than the 256 that the model was trained for"));
  CHECK(has(mica({"bench", "-p", "320", "-n", "0", "-r", "1"}).err, "a context of 320 tokens is more than"));
}

}  // namespace
}  // namespace mica::test::perplexity_test

#endif
