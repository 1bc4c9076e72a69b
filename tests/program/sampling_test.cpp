// SPDX-License-Identifier: Apache-2.0
//
// The flags of sampling: what they do to a story, where their values come from, and what is refused. Their
// formulas are tested in tests/sample.

#include "../../examples/run/sampler_texts.hpp"
#include "mica/base/error.hpp"
#include "program/help_page.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#ifdef MICA_PROGRAM

namespace mica::test::sampling_test {
namespace {

constexpr const char* standard_order = "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";

/// A story of the bundled model.
std::string story(const Words& words) {
  const Ran ran = mica(Words{"run", "-no-cnv", "-p", "The king", "-n", "40", "-s", "3", "-q"} + words);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return ran.out;
}

std::string refusal(const Words& words) {
  const Ran ran = mica(Words{"run", "-no-cnv", "-p", "x", "-n", "1"} + words);
  CHECK(ran.code == 2);
  CHECK(ran.out.empty());
  return ran.err;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST_CASE("samplers that are off change no byte, and each that is on does") {
  const std::string plain = story({});
  CHECK(story({"--dry-multiplier", "0", "--dry-base", "3", "--xtc-probability", "0", "--xtc-threshold",
               "0.01", "--typical", "1", "--top-n-sigma", "-1", "--dynatemp-range", "0", "--mirostat", "0",
               "--mirostat-ent", "2"}) == plain);
  CHECK(story({"--samplers", standard_order}) == plain);
  const Words changes[] = {{"--dry-multiplier", "5", "--dry-allowed-length", "1"},
                           {"--xtc-probability", "1", "--xtc-threshold", "0.05"},
                           {"--typical-p", "0.2"},
                           {"--top-nsigma", "0.5"},
                           {"--dynatemp-range", "0.7", "--dynatemp-exp", "0.5"},
                           {"--mirostat", "2", "--mirostat-ent", "1", "--mirostat-lr", "0.2"},
                           {"--mirostat", "1", "--mirostat-ent", "1"},
                           {"-l", " king+5"},
                           {"--samplers", "top_k;temperature"}};
  for (const Words& words : changes) {
    CAPTURE(words[0]);
    CAPTURE(words[1]);
    const std::string changed = story(words);
    CHECK(changed != plain);
    CHECK(changed == story(words));
  }
}

TEST_CASE("DRY ends a loop of a greedy story, and a breaker lets it be") {
  const std::string loop = story({"--temp", "0"});
  REQUIRE(count(loop, "very much astonished") >= 3);
  const Words dry = {"--temp", "0", "--dry-multiplier", "2", "--dry-penalty-last-n", "-1"};
  CHECK(count(story(dry), "very much astonished") < 3);
  CHECK(story(dry + Words{"--dry-sequence-breaker", "none"}) ==
        story(dry + Words{"--dry-sequence-breaker", "zzz"}));
  // Each word but the last one of a text is before a breaker: nothing repeats two tokens.
  CHECK(story(dry + Words{"--dry-sequence-breaker", " ", "--dry-sequence-breaker", "\\n"}) == loop);
}

TEST_CASE("a bias forbids or forces a token, by id and by text") {
  const std::string plain = story({"--temp", "0"});
  REQUIRE(count(plain, "astonished") > 0);
  CHECK(count(story({"--temp", "0", "-l", " aston-inf"}), "astonished") == 0);
  CHECK(story({"-l", "521+1e6", "-n", "3"}) == " king king king\n");
  CHECK(story({"-l", " king+1e6", "-n", "3"}) == " king king king\n");
  CHECK(story({"--logit-bias", "521+1e6", "--logit-bias", "521-1e6"}) == story({}));
  CHECK(refusal({"-l", "99999999+1"}).find("--logit-bias: token 99999999 is outside the vocabulary of ") !=
        std::string::npos);
  CHECK(refusal({"-l", "the king had+1"})
            .find("no token has the text 'the king had'; its tokens are 1326 521 338") != std::string::npos);
}

TEST_CASE("a story over two runs is that of one run, with every state of a sampler") {
  const TemporaryFolder folder;
  for (const std::string mirostat : {"0", "1", "2"}) {
    CAPTURE(mirostat);
    const std::string file = folder.path("story" + mirostat);
    const Words tell = {"run",
                        "-q",
                        "--mirostat",
                        mirostat,
                        "--mirostat-ent",
                        "3",
                        "--dry-multiplier",
                        "0.8",
                        "--xtc-probability",
                        "0.5",
                        "--dry-penalty-last-n",
                        "200"};
    const auto said = [&](const Words& words) {
      std::string text = mica(tell + words).out;
      if (!text.empty() && text.back() == '\n') text.pop_back();
      return text;
    };
    const std::string whole = said({"-n", "60", "--seed", "5"});
    const std::string first = said({"-n", "25", "--seed", "5", "--session", file});
    CHECK(whole == first + said({"-n", "35", "--session", file}));
  }
}

TEST_CASE("the order of stages is read by name and by letter") {
  CHECK(story({"--samplers", "Top-K;temp"}) == story({"--samplers", "top_k;temperature"}));
  CHECK(story({"--samplers", "typical-p;nucleus"}) == story({"--samplers", "typ_p;top_p"}));
  CHECK(story({"--sampler-seq", "edskypmxt"}) == story({"--samplers", standard_order}));
  CHECK(story({"--samplers", "top_k", "--top-k", "1"}) == story({"--temp", "0"}));
  CHECK(story({"--sampler-seq", "kt"}) == story({"--samplers", "top_k;temperature"}));
  CHECK(refusal({"--samplers", "top_k;tpo_p"}).find("found 'tpo_p', allowed: penalties;dry;top_n_sigma;") !=
        std::string::npos);
  CHECK(refusal({"--samplers", "top_k;tpo_p"}).find("Did you mean top_p?") != std::string::npos);
  CHECK(refusal({"--samplers", "top_k;temp;top_k"}).find("found 'top_k' twice") != std::string::npos);
  CHECK(refusal({"--sampler-seq", "kq"}).find("found 'q', allowed: e penalties, d dry") != std::string::npos);
}

TEST_CASE("a bias is a token, a sign and a number") {
  for (const char* right :
       {"15043+1", "15043-1.5", "15043-inf", "15043+1e-2", "well-known-3", "+-2", "--2"}) {
    CAPTURE(right);
    CHECK(mica({"run", "--print-config", "-l", right}).code == 0);
  }
  CHECK(story({"-l", "521+1e-2"}) == story({"-l", "521+0.01"}));
  for (const char* wrong :
       {"15043", "15043+", "+1", "15043+x", "15043+inf", "15043+nan", "15043+1e10", "15043+-1x"}) {
    CAPTURE(wrong);
    CHECK(refusal({"-l", wrong}).find(": found '" + std::string(wrong) + "', allowed: TOKEN+N and TOKEN-N") !=
          std::string::npos);
  }
}

TEST_CASE("values of samplers come from the environment and the configuration file too") {
  ProgramRun run(MICA_PROGRAM, {"complete", "--print-config", "--dry-base", "2"});
  const Ran ran = run.set("MICA_ARG_XTC_PROBABILITY", "0.5").set("MICA_ARG_SAMPLERS", "xtc;temp").run();
  CHECK(ran.code == 0);
  for (const char* line : {"xtc-probability = \"0.5\"", "samplers = \"xtc;temp\"", "dry-base = \"2\""})
    CHECK_MESSAGE(has(ran.out, line), ran.out);
  const TemporaryFolder folder;
  const Ran file = mica({"complete", "--print-config", "--config",
                         folder.file("c.toml",
                                     "xtc-threshold = 0.2\nlogit-bias = [\"1+1\", \"2-inf\"]\n"
                                     "dry-sequence-breaker = [\"\\n\", \"User:\"]\n")});
  for (const char* line : {"xtc-threshold = \"0.2\"", "logit-bias = [\"1+1\", \"2-inf\"]",
                           "dry-sequence-breaker = [\"\\n\", \"User:\"]"})
    CHECK_MESSAGE(has(file.out, line), file.out);
}

TEST_CASE("values out of range name what is allowed, and an empty breaker is refused") {
  const std::pair<Words, const char*> cases[] = {
      {{"--mirostat", "3"}, "--mirostat needs a whole number from 0 to 2, found '3'."},
      {{"--xtc-probability", "1.5"}, "--xtc-probability needs a number from 0 to 1, found '1.5'."},
      {{"--typical", "-1"}, "--typical needs a number from 0 to 1, found '-1'."},
      {{"--dry-allowed-length", "0"},
       "--dry-allowed-length needs a whole number from 1 to 1048576, found '0'."},
      {{"--dry-base", "nan"}, "--dry-base needs a number from 1 to 1000, found 'nan'."},
      {{"--dry-multiplier", "1", "--dry-sequence-breaker", ""},
       "--dry-sequence-breaker: found an empty text"}};
  for (const auto& [words, sentence] : cases) {
    const auto& the_sentence = sentence;
    CAPTURE(std::string(the_sentence));
    CHECK(has(refusal(words), sentence));
  }
}

TEST_CASE("a chat sets samplers for its next answer") {
  const Ran ran = mica({"chat", bundled_file(), "--chat-template", "plain", "-n", "4", "--temp", "0"},
                       "/set mirostat 2\n/set dry_multiplier 0.8\n/set samplers top_k;temp\n/set typical 2\n"
                       "/set xtc_probabilty 1\nhello\n/exit\n");
  CHECK(ran.code == 0);
  for (const char* said :
       {"mirostat is 2, from the next answer on", "dry_multiplier is 0.8", "samplers is top_k;temp",
        "/set typical needs a number from 0 to 1, found '2'.", "Did you mean xtc_probability?"})
    CHECK_MESSAGE(has(ran.err, said), ran.err);
}

}  // namespace
}  // namespace mica::test::sampling_test

#endif
