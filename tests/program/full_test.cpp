// SPDX-License-Identifier: Apache-2.0
//
// What the program does when a context or a cache is full: it says so with numbers, shifts, or forgets.

#include "program/program.hpp"

#include <string>
#include <utility>

#if defined(MICA_PROGRAM)
namespace mica::test::full_test {
namespace {

const std::string fairy = std::string(MICA_SOURCE) + "/examples/models/fairy.gguf";

Ran complete(std::vector<std::string> more) {
  std::vector<std::string> words = {"complete", fairy, "Once upon a time", "--temp", "0", "--ignore-eos",
                                    "-t",       "1"};
  words.insert(words.end(), more.begin(), more.end());
  return mica(words);
}

}  // namespace

TEST_CASE("a full context ends the answer with tokens, bytes and ways out") {
  const Ran ran = complete({"-c", "64", "-n", "100"});
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "the context of 64 tokens is full, 192.0 KiB of keys and values"), ran.err);
  CHECK_MESSAGE(has(ran.err, "-c 128, which takes 384.0 KiB"), ran.err);
  CHECK(has(ran.err, "--on-full shift"));
  CHECK(lacks(ran.err, "was trained for"));
  CHECK(has(complete({"-c", "250", "-n", "300"}).err, "(the model was trained for 256 tokens)"));
}

TEST_CASE("a prompt that does not fit is refused with the context that it needs") {
  const Ran ran = complete({"-c", "4"});
  CHECK(ran.code == 6);
  CHECK_MESSAGE(has(ran.err, "and the context (-c 4) has space for 4; use -c 16, which takes 48.0 KiB"),
                ran.err);
}

TEST_CASE("an answer goes on over a full context, and says how much it has left behind") {
  const Ran whole = complete({"-c", "64", "-n", "60"});
  const Ran ran = complete({"-c", "64", "-n", "300", "--on-full", "shift", "--keep", "4", "--json"});
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "\"stop_reason\":\"length\",\"tokens_predicted\":300,\"tokens_shifted\":"),
                ran.out);
  CHECK(lacks(ran.out, "\"tokens_shifted\":0"));
  const Ran text = complete({"-c", "64", "-n", "300", "--on-full", "shift", "--keep", "4"});
  CHECK(text.out.starts_with(whole.out.substr(0, whole.out.size() - 20)));  // as long as nothing had to go
  CHECK(text.out.size() > 3 * whole.out.size());
  CHECK(has(text.err, "tokens shifted out"));
  CHECK(text.out ==
        complete({"-c", "64", "-n", "300", "--on-full", "shift", "--keep", "4", "-b", "7", "--kv", "paged"})
            .out);
}

TEST_CASE("two runs that shift give the text of one, with the first tokens that --keep names") {
  const auto content = [](const Ran& ran) {  // with the escapes of JSON
    const std::size_t at = ran.out.find("\"content\":\"") + 11;
    return ran.out.substr(at, ran.out.find("\",\"stop\":") - at);
  };
  for (const std::string keep : {"0", "3", "-1"}) {
    CAPTURE(keep);
    const TemporaryFolder folder;
    const Words shifting = {"-c", "64", "--on-full", "shift", "--keep", keep, "--json"};
    const Ran whole = complete(shifting + Words{"-n", "150"});
    const Words session = {"--session", folder.path("session")};
    const Ran first = complete(shifting + session + Words{"-n", "80"});
    const Ran second = mica(Words{"complete", fairy, "--temp", "0", "--ignore-eos", "-t", "1", "-n", "70"} +
                            shifting + session);
    CHECK(second.code == 0);
    CHECK(lacks(second.out, "\"tokens_shifted\":0,"));
    CHECK(content(first) + content(second) == content(whole));
  }
}

TEST_CASE("what cannot be kept is refused") {
  const Ran all = complete({"-c", "64", "--on-full", "shift", "--keep", "63"});
  CHECK(all.code == 6);
  CHECK_MESSAGE(has(all.err, "leave no capacity in a context of 64"), all.err);
  for (const std::string words :
       {"sinks", "sinks:100", "heavy:200", "sinks:256,200", "window:256", "sinks:256,16,2"}) {
    CAPTURE(words);
    const Ran ran = complete({"--evict", words});
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, ": --evict: eviction"), ran.err);
  }
  const std::pair<std::string, std::string> too_small[] = {{"sinks:0", "192"},
                                                           {"sinks:0,64", "192"},
                                                           {"heavy:0", "256"},
                                                           {"heavy:0,64", "192"},
                                                           {"heavy:256,1000", "1152"}};
  for (const auto& [words, least] : too_small) {
    const auto& the_words = words;
    CAPTURE(the_words);
    const Ran ran = complete({"--evict", words});
    CHECK_MESSAGE(has(ran.err, "the minimum is " + least), ran.err);
    CHECK(lacks(ran.err, "Did you mean"));
  }
  CHECK(complete({"--on-full", "explode"}).code == 2);
  CHECK(complete({"-c", "1024", "--evict", "sinks:256", "-ctk", "kivi2", "-ctv", "kivi2"}).code == 5);
}

TEST_CASE("a cache that forgets holds what it may, as planned, and writes on") {
  const auto kv = [](std::vector<std::string> more) {
    std::vector<std::string> words = {"plan", fairy, "-c", "2048", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const std::string out = mica(words).out;
    const std::size_t at = out.find("\"kv\":");
    return at == out.npos ? 0 : std::stoull(out.substr(at + 5));
  };
  CHECK(kv({}) == 2048u * 3072);
  const std::size_t table = 2 * 256 / 16 * 4;  // who lies where
  CHECK(kv({"--evict", "sinks:256"}) == 256u * 3072 + table);
  CHECK(kv({"--evict", "heavy:256"}) > 256u * 3072 + table);
  CHECK(has(mica({"plan", fairy, "-c", "2048", "--evict", "sinks:256"}).out,
            "per token, at most 256 tokens resident"));
  const Ran ran = complete({"-c", "2048", "-n", "1000", "--evict", "sinks:192", "--json"});
  CHECK(has(ran.out, "\"tokens_predicted\":1000"));
  for (const char* const storage : {"contiguous", "paged", "spilled"}) {
    CHECK(has(complete({"-c", "2048", "-n", "1000", "--evict", "sinks:192", "--kv", storage, "--json"}).out,
              ran.out.substr(0, ran.out.find("\",\"stop\""))));
  }
}

TEST_CASE("a chat goes on when its conversation has become longer than the context") {
  const std::string turn =
      "Tell me of the king and of his daughter and of the wolf, and of all that came to pass.\n";
  ProgramRun run(MICA_PROGRAM, {"chat", fairy, "--chat-template", "chatml", "-c", "200", "-n", "40", "--temp",
                                "0", "-q", "--on-full", "shift", "--ignore-eos"});
  const Ran ran = run.input(turn + turn + turn + turn + turn).run();
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(lacks(ran.err, "has space for"));
  ProgramRun stops(MICA_PROGRAM, {"chat", fairy, "--chat-template", "chatml", "-c", "200", "-n", "40",
                                  "--temp", "0", "-q", "--ignore-eos"});
  CHECK(has(stops.input(turn + turn + turn + turn + turn).run().err, "has space for"));
}

}  // namespace mica::test::full_test
#endif
