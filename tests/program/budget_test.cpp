// SPDX-License-Identifier: Apache-2.0
//
// One number for memory: the smaller one of what is asked for and what limits leave; what a plan allows runs,
// and what it refuses is told with numbers that add up and with the smallest budget that runs.

#include "program/memory_cage.hpp"
#include "program/program.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#ifdef MICA_PROGRAM

namespace mica::test::budget_test {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// A Llama of 15 M weights and a vocabulary of 32,000, made once.
const std::string& model() {
  static const TemporaryFolder folder;
  static const std::string path = [] {
    std::string file = folder.path("model.gguf");
    REQUIRE(mica({"synth", "stories-15m", "Q4_K_M", file, "-q"}).code == 0);
    return file;
  }();
  return path;
}

Ran caged(const MemoryCage& cage, const Words& words) {
  return ProgramRun("/bin/sh", cage.inside(Words{MICA_PROGRAM} + words)).run();
}

/// A size in a sentence, and by how much it may be rounded; empty where there is none.
struct Size {
  double bytes, grain;
};
std::optional<Size> size_at(const std::string& text, std::size_t at) {
  const char* const begin = text.c_str() + at;
  char* end = nullptr;
  const double count = std::strtod(begin, &end);
  if (end == begin || *end != ' ') return std::nullopt;
  for (const auto& [unit, bytes] :
       {std::pair{" B", 1.0}, {" KiB", 1024.0}, {" MiB", 1048576.0}, {" GiB", 1073741824.0}}) {
    if (std::string_view(end).starts_with(unit)) return Size{count * bytes, bytes == 1 ? 0 : bytes / 20};
  }
  return std::nullopt;
}

/// Whether the parts of "needs X, budget Y (weights A, kv B at N tokens, ...)" are X, as far as they are
/// rounded.
bool adds_up(const std::string& sentence) {
  const std::size_t needs = sentence.find("needs "), open = sentence.find('(', needs),
                    close = sentence.find(')', open);
  REQUIRE_MESSAGE(close != std::string::npos, sentence);
  const auto whole = size_at(sentence, needs + 6);
  REQUIRE(whole);
  double sum = 0, grain = whole->grain;
  for (std::size_t at = open; at < close; at = sentence.find(", ", at + 1)) {
    const auto part = size_at(sentence, sentence.find(' ', at == open ? at : at + 2) + 1);
    REQUIRE_MESSAGE(part, sentence);
    sum += part->bytes;
    grain += part->grain;
  }
  return std::abs(sum - whole->bytes) <= grain;
}

/// What follows "The minimum is --memory " in a refusal.
std::string min_budget(const Ran& ran) {
  constexpr std::string_view words = "The minimum is --memory ";
  const std::size_t at = ran.err.find(words);
  REQUIRE_MESSAGE(at != std::string::npos, ran.err);
  return ran.err.substr(at + words.size(),
                        ran.err.find_first_of(" ,", at + words.size()) - at - words.size());
}

std::string less_by_a_tenth(const std::string& mebibytes) {
  const double count = std::strtod(mebibytes.c_str(), nullptr);
  return std::to_string(static_cast<std::uint64_t>((count - 0.2) * 1048576));
}

const Words brief = {"-n", "3", "--temp", "0", "-p", "Once", "-t", "1"};

}  // namespace

TEST_CASE("sizes of --memory that are none are usage errors, 0 among them") {
  for (const char* size :
       {"0", "0%", "0GiB", "101%", "200%", "-1", "-5GiB", "1e9", "99999999T", "much", "nan"}) {
    CAPTURE(size);
    const Ran ran = mica({"complete", "x.gguf", std::string("--memory=") + size});
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "--memory"));
  }
}

TEST_CASE("--memory beyond what the machine has is lowered, and one line says so") {
  const Words words = Words{"complete", model(), "-c", "64"} + brief;
  const Ran ran = mica(words + Words{"--memory", "999TiB"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.err, "mica: --memory 999.0 TiB is more than "));
  CHECK(has(ran.err, " leaves; "));
  const Ran plan = mica({"plan", model(), "-c", "64", "--memory", "999TiB", "--json"});
  CHECK(number(plan, "budget_bytes") == 999ULL << 40);  // of another machine, perhaps
  CHECK(has(plan.err, " count in a run here"));
}

TEST_CASE("--memory beyond what a control group leaves is lowered, and nothing is killed") {
  if (sanitized) return;
  const std::uint64_t needed =
      number(mica({"plan", model(), "--json", "-c", "256", "-t", "1"}), "peak_bytes");
  for (const std::uint64_t room : {needed / 2, needed + 2 * mib, needed + 16 * mib}) {
    CAPTURE(room);
    const MemoryCage cage(room);
    if (!cage) {
      MESSAGE("skipped: no control group of memory can be made here");
      return;
    }
    const Ran ran = caged(
        cage,
        Words{"complete", model(), "-c", "256", "--memory", std::to_string(2 * needed + 64 * mib)} + brief);
    CHECK(cage.kills() == 0);
    CHECK_MESSAGE((ran.code == 0 || ran.code == 4), ran.err);
    CHECK(has(ran.err, "is more than the control group leaves; "));
    if (ran.code == 0) CHECK(ran.out.size() > 1);
  }
}

TEST_CASE(
    "what a plan allows in a control group or under RLIMIT_AS runs there, however weights come into memory") {
  if (sanitized) return;
  const auto agree = [](const std::function<Ran(const Words&)>& run, const std::string& weights) {
    const Words words = {model(), "-c", "256", "-t", "1", "--weights", weights};
    const Ran plan = run(Words{"plan"} + words),
              ran = run(Words{"complete"} + words + Words{"-n", "3", "-p", "Once"});
    CAPTURE(weights);
    if (plan.code == 0) CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE((ran.code == 0 || ran.code == 4), ran.err);
    return ran.code;
  };
  const std::uint64_t needed =
      number(mica({"plan", model(), "--json", "-c", "256", "-t", "1"}), "peak_bytes");
  std::size_t ran = 0, refused = 0;
  const auto count = [&](int code) { ++(code == 0 ? ran : refused); };
  for (const char* weights : {"mapped", "resident", "streamed"}) {
    for (std::uint64_t room = needed / 2; room < needed + 16 * mib; room += 3 * mib) {
      CAPTURE(room);
      const std::string kib = std::to_string((room + 24 * mib) / 1024);  // the program itself is mapped, too
      count(agree(
          [&](const Words& words) {
            return ProgramRun("/bin/sh",
                              Words{"-c", "ulimit -v \"$0\"; exec \"$@\"", kib, MICA_PROGRAM} + words)
                .run();
          },
          weights));
      const MemoryCage cage(room);
      if (!cage) continue;
      count(agree([&](const Words& words) { return caged(cage, words); }, weights));
      CHECK(cage.kills() == 0);
    }
  }
  CHECK(ran > 0);
  CHECK(refused > 0);
}

TEST_CASE("the parts of a refusal add up to what it needs") {
  const std::vector<Words> runs = {{"-c", "256"},
                                   {"-c", "256", "--weights", "streamed"},
                                   {"-c", "256", "--weights", "mapped", "--chunk", "32"},
                                   {"-c", "4096", "--weights", "streamed", "-ctk", "q8_0", "-ctv", "q8_0"},
                                   {"-c", "2048", "--kv", "spilled"},
                                   {"-c", "64", "--weights", "streamed", "--chunk", "16", "-np", "8"}};
  for (const Words& run : runs) {
    for (const char* budget : {"1MiB", "9MiB", "14MiB"}) {
      const Ran ran = mica(Words{"plan", model(), "--memory", budget} + run);
      CAPTURE(run.back());
      REQUIRE(ran.code == 4);
      CHECK_MESSAGE(adds_up(ran.err), ran.err);
    }
  }
}

TEST_CASE("a refusal names the smallest budget that runs, and below it nothing does") {
  const std::vector<Words> runs = {
      {}, {"-c", "256"}, {"--weights", "resident"}, {"--weights", "streamed", "-c", "512"}};
  for (const Words& run : runs) {
    const Words words = Words{"complete", model()} + run + brief;
    const Ran refused = mica(words + Words{"--memory", "9MiB"});
    REQUIRE_MESSAGE(refused.code == 4, refused.err);
    const std::string min = min_budget(refused);
    CAPTURE(min);
    const Ran ran = mica(words + Words{"--memory", min});
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(mica(words + Words{"--memory", less_by_a_tenth(min)}).code == 4);
  }
}

TEST_CASE("a plan that does not fit says what a run would change, and a run changes that") {
  const std::uint64_t needed = number(mica({"plan", model(), "--json"}), "peak_bytes");
  const std::string budget = std::to_string(needed - 7 * mib);
  const Ran plan = mica({"plan", model(), "--memory", budget});
  CHECK(plan.code == 4);
  constexpr std::string_view uses = "\nmica run uses:            ";
  REQUIRE(has(plan.out, uses));
  const std::size_t at = plan.out.find(uses) + uses.size();
  const std::string changes = plan.out.substr(at, plan.out.find('\n', at) - at);
  const Ran ran = mica(Words{"complete", model(), "--memory", budget, "-n", "3", "-p", "Once"});
  CHECK(ran.code == 0);
  CHECK(has(ran.err, ": " + changes));
}

TEST_CASE("several sequences on streamed weights run where the plan says so, however many they are") {
  const Words words = {model(), "-c", "64", "-t", "1", "--weights", "streamed", "--chunk", "16"};
  const std::uint64_t one =
                          number(mica(Words{"plan"} + words + Words{"--json", "-np", "1", "--memory", "1G"}),
                                 "peak_bytes"),
                      eight =
                          number(mica(Words{"plan"} + words + Words{"--json", "-np", "8", "--memory", "1G"}),
                                 "peak_bytes");
  CHECK(eight > one);
  for (const std::uint64_t budget : {one, (one + eight) / 2}) {
    for (int n = 1; n <= 8; ++n) {
      CAPTURE(n);
      const Words more = {"-np", std::to_string(n), "--memory", std::to_string(budget)};
      const Ran plan = mica(Words{"plan"} + words + more);
      const Ran bench = mica(Words{"bench"} + words + more + Words{"-p", "0", "-n", "64", "-r", "1"});
      CHECK_MESSAGE(bench.code == plan.code, bench.err);
    }
  }
}

TEST_CASE("a context beyond all bounds is refused at once, one beyond the training with a line") {
  for (const char* verb : {"plan", "complete", "bench"}) {
    const Ran ran = mica({verb, model(), "-c", "20000000", "--memory", "100MiB"});
    CAPTURE(verb);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "-c needs a whole number from 0 to 16777216, found '20000000'"));
  }
  CHECK(mica({"plan", model(), "-c", "16000000", "--memory", "100MiB"}).code == 4);
  const Ran longer = mica(Words{"complete", model(), "-c", "4096"} + brief);
  CHECK(
      has(longer.err, "mica: a context of 4096 tokens is more than the 256 that the model was trained for"));
  CHECK(mica(Words{"complete", model(), "-c", "256"} + brief).err.find("trained") == std::string::npos);
}

TEST_CASE("a spill folder that is missing is named, and is no lack of memory") {
  const Words words = {"complete", model(), "-c", "2048", "--kv", "spilled",
                       "--chunk",  "16",    "-n", "3",    "-p",   "Once"};
  ProgramRun run(MICA_PROGRAM, words);
  run.set("TMPDIR", "/nonexistent/here");
  const Ran ran = run.run();
  CHECK(ran.code == 3);
  CHECK(has(ran.err, "/nonexistent/here: "));
  CHECK(has(ran.err, "No such file or directory"));
  CHECK(ran.err.find("no memory") == std::string::npos);
}

TEST_CASE("bench names a file as the file names itself") {
  const Ran ran = mica({"bench", model(), "-p", "8", "-n", "0", "-r", "1", "-o", "json"});
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(ran.out, " Q4_K_M\""));
}

}  // namespace mica::test::budget_test

#endif
