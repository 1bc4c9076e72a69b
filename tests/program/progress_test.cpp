// SPDX-License-Identifier: Apache-2.0
//
// Progress: its texts, the width of a terminal, the lines of a pipe, and the end after an interrupt.

#include "../../examples/run/progress_text.hpp"
#include "program/terminal.hpp"

#include <algorithm>

namespace mica::test::progress_test {
namespace {

using program::WorkState, program::WorkUnit;

std::string line_of(const WorkState& work, double now = -1, std::size_t columns = 79) {
  return program::progress_line(work, now < 0 ? work.at : now, columns);
}

TEST_CASE("durations and rates have few digits") {
  using program::duration_text, program::rate_text;
  CHECK(duration_text(-1) == "0 s");
  CHECK(duration_text(12.4) == "12 s");
  CHECK(duration_text(600) == "10 min");
  CHECK(duration_text(3 * 3600 + 300) == "3 h 05 min");
  CHECK(rate_text(WorkUnit::bytes, 120.0 * 1024 * 1024) == "120.0 MiB/s");
  CHECK(rate_text(WorkUnit::weights, 34e6) == "34 M weights/s");
  CHECK(rate_text(WorkUnit::tokens, 7.25) == "7.2 t/s");
  CHECK(rate_text(WorkUnit::pieces, 7).empty());
  CHECK(rate_text(WorkUnit::tokens, -1) == "0.0 t/s");
}

TEST_CASE("a line has a bar, percent, rate and remaining time") {
  const std::string dots(15, '.'), marks(15, '#');
  CHECK(line_of({.what = "packing", .done = 0, .all = 10}) == "packing: [" + dots + dots + "]   0 %");
  CHECK(line_of({.what = "packing", .done = 5, .all = 10, .at = 3}) ==
        "packing: [" + marks + dots + "]  50 %, 3 s left");
  CHECK(line_of({.what = "packing", .done = 12, .all = 10, .at = 3}) ==
        "packing: [" + marks + marks + "] 100 %, 0 s left");
  CHECK(line_of({.what = "packing",
                 .done = 5 << 20,
                 .all = 10 << 20,
                 .at = 1,
                 .unit = WorkUnit::bytes,
                 .more = "x"}) == "packing: [" + marks + dots + "]  50 %, 5.0 MiB/s, 1 s left, x");
  WorkState prompt{.what = "reading", .done = 300, .all = 900, .at = 3, .unit = WorkUnit::tokens};
  CHECK(line_of(prompt, 5) ==
        "reading: [" + std::string(10, '#') + std::string(20, '.') + "]  33 %, 100 t/s, 4 s left");
  CHECK(line_of(prompt, 50).ends_with("100 t/s, 0 s left"));
}

TEST_CASE("work of unknown size shows its seconds") {
  CHECK(line_of({.what = "loading"}, 0.5) == "loading");
  CHECK(line_of({.what = "loading"}, 12) == "loading: 12 s");
  CHECK(line_of({.what = "loading", .done = 4 << 20, .at = 2, .unit = WorkUnit::bytes}, 2) ==
        "loading: 2.0 MiB/s, 2 s");
}

TEST_CASE("a line is never wider than the terminal, whatever is in it") {
  const WorkState states[] = {
      {.what = "quantizing",
       .done = 31,
       .all = 100,
       .at = 10,
       .unit = WorkUnit::weights,
       .more = "blk.3.ffn_up"},
      {.what = "reading \xC3\xA4\xC3\xB6\xC3\xBC", .done = 1, .all = 3, .at = 1, .unit = WorkUnit::tokens},
      {.what = std::string(300, 'w'), .done = 1, .all = 3, .at = 1, .more = std::string(300, 'm')},
      {.what = ""}};
  for (const WorkState& state : states) {
    for (std::size_t columns = 0; columns < 200; ++columns) {
      const std::string line = line_of(state, 12, columns);
      CAPTURE(line);
      CHECK(line.size() <= columns);
      const bool cut = !line.empty() && (static_cast<unsigned char>(line.back()) & 0xC0) == 0xC0;
      CHECK_FALSE(cut);  // half a character
    }
  }
  CHECK(line_of(states[0], 10, 80).find("blk.3") != std::string::npos);
  CHECK(line_of(states[0], 10, 40).find("blk.3") == std::string::npos);
  CHECK(line_of(states[0], 10, 17) == "quantizing:  31 %");
}

TEST_CASE("a pipe gets a line for each tenth of long work, and none of short work") {
  program::TenthLines lines;
  const auto due = [&](std::uint64_t done, double at) {
    return lines.due({.what = "x", .done = done, .all = 100, .at = at});
  };
  CHECK_FALSE(due(15, 1));  // short so far
  CHECK(due(25, 3.5));
  CHECK_FALSE(due(29, 4));
  CHECK(due(30, 5));
  CHECK(due(72, 6));
  CHECK_FALSE(due(71, 7));  // never backwards
  CHECK_FALSE(due(100, 8));
  CHECK_FALSE(lines.due({.what = "x", .done = 9, .all = 0, .at = 9}));
  program::TenthLines resumed;  // the tenths of an earlier run are no news
  CHECK_FALSE(resumed.due({.what = "x", .done = 55, .all = 100, .at = 4, .before = 50}));
  CHECK(resumed.due({.what = "x", .done = 60, .all = 100, .at = 5, .before = 50}));
  std::size_t written = 0;
  program::TenthLines whole;
  for (std::uint64_t i = 0; i <= 1000; ++i)
    written += whole.due({.what = "x", .done = i, .all = 1000, .at = 10}) ? 1 : 0;
  CHECK(written == 9);
  CHECK(program::tenth_text({.what = "packing", .done = 37, .all = 100, .at = 10}) ==
        "packing: 30 %, 17 s left");
  CHECK(program::tenth_text({.what = "downloading", .done = 60, .all = 100, .at = 5, .before = 50}) ==
        "downloading: 60 %, 20 s left");  // 2 a second, and not 12
}

#ifdef MICA_PROGRAM

const std::string fairy = std::string(MICA_SOURCE) + "/examples/models/fairy.gguf";

/// A prompt whose reading takes long on any machine: steps of one token, most of the time at rest.
Words long_reading(const TemporaryFolder& folder) {
  std::string story;
  while (story.size() < 12'000) story += "Once upon a time there was a king who had a daughter. ";
  return {"complete", fairy,  "-f",     folder.file("story", story),
          "-c",       "4096", "-n",     "2",
          "-t",       "1",    "-b",     "1",
          "--pace",   "10%",  "--temp", "0"};
}

/// The texts between the carriage returns of a terminal, without the sequences around them.
std::vector<std::string> drawn(const std::string& output) {
  std::vector<std::string> lines;
  for (std::size_t at = output.find('\r'); at != std::string::npos; at = output.find('\r', at + 1)) {
    const std::size_t end = output.find("\x1b[K", at);
    if (end == std::string::npos) break;
    lines.push_back(output.substr(at + 1, end - at - 1));
  }
  return lines;
}

TEST_CASE("the line follows the width of the terminal, and an interrupt leaves no trace of it") {
  const TemporaryFolder folder;
  TerminalRun run(long_reading(folder));
  run.start().expect("reading the prompt: [").expect(" t/s, ").expect(" left");
  run.resize(30).expect("\x1b[K").expect("\x1b[K");  // one that was on its way
  const std::size_t narrow = run.output().size();
  run.expect("\x1b[K").expect("\x1b[K").expect("\x1b[K").type("\x03");
  CHECK(run.finish() == 130);
  const auto lines = drawn(run.output().substr(narrow));
  CHECK(std::all_of(lines.begin(), lines.end(), [](const std::string& line) { return line.size() < 30; }));
  CHECK(drawn(run.output()).back().empty());
}

TEST_CASE("a second interrupt removes the line too") {
  const TemporaryFolder folder;
  TerminalRun run(long_reading(folder) + Words{"-b", "512"});
  run.start().expect("reading the prompt").type("\x03\x03");
  CHECK(run.finish() == 130);
  CHECK(drawn(run.output()).back().empty());
}

TEST_CASE("files that are read and written show bytes a second") {
  const TemporaryFolder folder;
  TerminalRun run({"synth", "llama-1b", "F16", folder.path("out"), "-t", "1"});
  run.start().expect("writing: [").expect(" %, ").expect("iB/s, ").expect(" left").type("\x03");
  CHECK(run.finish() == 130);
  CHECK(drawn(run.output()).back().empty());
  CHECK_FALSE(std::filesystem::exists(folder.path("out")));
}

#endif

}  // namespace
}  // namespace mica::test::progress_test
