// SPDX-License-Identifier: Apache-2.0
//
// mica pack, and packed folders in every verb that takes a model: the same bytes out, whatever kills the
// packer, and memory that processes share.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include "mica/base/rng.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

namespace mica::test::pack_test {
namespace {

namespace fs = std::filesystem;

/// The names of a folder with what is in the files.
std::map<std::string, std::string> everything(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::directory_iterator(folder))
    all[entry.path().filename().string()] = contents(entry.path().string());
  return all;
}

/// A number of the plan of a model in memory.
std::uint64_t planned(const std::string& model, const std::string& key) {
  return number(
      mica({"plan", model, "-c", "64", "-t", "1", "--weights", "resident", "--json", "--memory", "1G"}), key);
}

/// Starts the program and answers its process.
::pid_t start(const Words& words, int out = -1) {
  std::vector<std::string> all = Words{MICA_PROGRAM} + words;
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_RDWR);
    ::dup2(nowhere, STDIN_FILENO);
    ::dup2(out < 0 ? nowhere : out, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  return child;
}

/// A line of /proc/PID/smaps_rollup in bytes, summed over mappings of the whole process; empty where it
/// cannot be read.
std::optional<std::uint64_t> memory_line(::pid_t process, const std::string& name) {
  std::ifstream in("/proc/" + std::to_string(process) + "/smaps_rollup");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a packed model writes the text of its file, mapped, resident and streamed, in every family") {
  const auto folder = shared_dir("packed models of several families", "conformance/models");
  if (!folder) return;
  const TemporaryFolder packed;
  for (const std::string name : {"llama3-gqa.Q4_K_M", "llama3-gqa.F32", "gemma3.Q8_0", "gemma4.Q8_0",
                                 "qwen35.Q8_0", "qwen3next.Q8_0", "mixtral.Q4_K_M", "qwen3moe.MXFP4_MOE",
                                 "gpt-oss.MXFP4_MOE", "llama4.Q8_0", "phi3.Q8_0", "qwen2.BF16"}) {
    CAPTURE(name);
    const std::string file = (*folder / (name + ".gguf")).string(), dir = packed.path(name);
    const Ran ran = mica({"pack", file, dir});
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
    const Words rest = {"Once upon", "-n", "12", "--temp", "0", "-q", "-c", "64", "-t", "1"};
    const Ran expected = mica(Words{"complete", file} + rest);
    REQUIRE_MESSAGE(expected.code == 0, expected.err);
    for (const Words& how : {Words{"--weights", "mapped"}, Words{"--weights", "resident"},
                             Words{"--weights", "streamed", "--memory", "100M"}}) {
      CAPTURE(how.back());
      const Ran got = mica(Words{"complete", dir} + rest + how);
      CHECK_MESSAGE(got.code == 0, got.err);
      CHECK(got.out == expected.out);
    }
    const std::uint64_t peak = planned(dir, "peak_bytes");
    const Words resident = {"--weights", "resident", "-ctk", "f16", "-ctv", "f16"};
    CHECK(mica(Words{"complete", dir} + rest + resident + Words{"--memory", std::to_string(peak)}).code == 0);
    CHECK(mica(Words{"complete", dir} + rest + resident + Words{"--memory", std::to_string(peak - 1)}).code ==
          4);
    const std::uint64_t less = peak - planned(dir, "weight_bytes") / 4;
    const Ran streamed = mica(Words{"complete", dir} + rest +
                              Words{"--weights", "streamed", "--memory", std::to_string(less)});
    CHECK_MESSAGE(streamed.code == 0, streamed.err);
    CHECK(streamed.out == expected.out);
    CHECK(mica({"pack", dir, "--verify"}).code == 0);
  }
}

TEST_CASE("verbs take a packed folder where they take a file") {
  const auto folder = shared_dir("a packed model in all verbs", "conformance/models");
  if (!folder) return;
  const TemporaryFolder work;
  const std::string file = (*folder / "qwen3.Q8_0.gguf").string(), dir = work.path("packed");
  REQUIRE(mica({"pack", file, dir, "-q"}).code == 0);
  const auto same = [&](const Words& before, const Words& after) {
    CAPTURE(before.front());
    const Ran a = mica(before + Words{file} + after), b = mica(before + Words{dir} + after);
    CHECK_MESSAGE(b.code == 0, b.err);
    CHECK(a.code == 0);
    CHECK(a.out == b.out);
  };
  same({"tokenize"}, {"hello world"});
  same({"detokenize"}, {"--ids", "1,2,3"});
  const std::string text = work.file("text", std::string(3000, 'a'));
  same({"perplexity"}, {"-f", text, "-c", "32", "--chunks", "3", "-q"});
  CHECK(has(mica({"inspect", dir}).out, "packed in"));
  CHECK(mica({"bench", dir, "-p", "8", "-n", "2", "-r", "1"}).code == 0);
  REQUIRE(mica({"logits", file, "--ids", "1,2,3", "-o", work.path("a"), "-q"}).code == 0);
  REQUIRE(mica({"logits", dir, "--ids", "1,2,3", "-o", work.path("b"), "-q"}).code == 0);
  CHECK(contents(work.path("a")) == contents(work.path("b")));
  const Words quiet = {"-q", "-n", "4", "--temp", "0"};
  REQUIRE(mica(Words{"complete", file, "Once", "--session", work.path("s")} + quiet).code == 0);
  CHECK(mica(Words{"complete", dir, "--session", work.path("s")} + quiet).code == 0);
  // The way back, twice: tensors of a folder lie in another order than those of the file.
  REQUIRE(mica({"quantize", dir, work.path("back.gguf"), "COPY", "-q"}).code == 0);
  REQUIRE(mica({"pack", work.path("back.gguf"), work.path("again"), "-q"}).code == 0);
  REQUIRE(mica({"quantize", work.path("again"), work.path("back2.gguf"), "COPY", "-q"}).code == 0);
  CHECK(contents(work.path("back.gguf")) == contents(work.path("back2.gguf")));
  REQUIRE(mica({"quantize", file, work.path("a.gguf"), "Q4_0", "--allow-requantize", "-q"}).code == 0);
  REQUIRE(mica({"quantize", dir, work.path("b.gguf"), "Q4_0", "--allow-requantize", "-q"}).code == 0);
  const Ran a = mica(Words{"complete", work.path("a.gguf"), "Once"} + quiet),
            b = mica(Words{"complete", work.path("b.gguf"), "Once"} + quiet);
  CHECK(a.code == 0);
  CHECK(a.out == b.out);
  CHECK(mica({"quantize", dir, work.path("c.gguf"), "COPY", "--keep-split"}).code == 2);
}

TEST_CASE("damage of a packed folder is not copied") {
  const TemporaryFolder work;
  const std::string dir = work.path("packed"), part = dir + "/layer-001.bin";
  REQUIRE(mica({"pack", std::string(MICA_SOURCE) + "/examples/models/fairy.gguf", dir, "-q"}).code == 0);
  {
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000).put('X');
    REQUIRE(file.flush());
  }
  for (const Words& words :
       {Words{"pack", dir, work.path("copy")}, Words{"quantize", dir, work.path("copy.gguf"), "COPY"},
        Words{"quantize", dir, work.path("copy.gguf"), "Q8_0", "--allow-requantize"}}) {
    CAPTURE(words);
    const Ran ran = mica(words);
    CHECK(ran.code == 3);
    CHECK(has(ran.err, "layer-001.bin: tensor 'blk.1."));
  }
  CHECK_FALSE(std::filesystem::exists(work.path("copy.gguf")));
  std::filesystem::remove(part);
  CHECK(has(mica({"run", dir, "x"}).err, "layer-001.bin: is missing; pack the model again"));
}

TEST_CASE("pack says what it would write, and refuses what it cannot") {
  const auto folder = shared_dir("pack's refusals", "conformance/models");
  if (!folder) return;
  const TemporaryFolder work;
  const std::string file = (*folder / "mixtral.Q4_K_M.gguf").string(), dir = work.path("packed");
  const Ran dry = mica({"pack", file, dir, "--dry-run"});
  CHECK(dry.code == 0);
  CHECK(has(dry.out, "layer-001-experts.bin"));
  CHECK(has(dry.out, "free"));
  CHECK_FALSE(fs::exists(dir));
  CHECK(has(mica({"pack", file, "--dry-run", "--json"}).out, "\"free_bytes\":null"));
  CHECK(mica({"pack", file}).code == 2);
  CHECK(mica({"pack", file, dir, "more"}).code == 2);
  CHECK(mica({"pack", file, "--verify"}).code == 2);
  CHECK(mica({"pack", work.path("none.gguf"), dir}).code == 3);
  work.file("words", "text");
  CHECK(mica({"pack", file, work.path("")}).code == 2);  // holds other things
  CHECK(mica({"pack", file, work.path("a/b")}).code == 3);
  const Ran full = ProgramRun("/bin/sh", {"-c", "trap '' XFSZ; ulimit -f 300; exec \"$0\" pack \"$1\" \"$2\"",
                                          MICA_PROGRAM, file, dir})
                       .run();
  CHECK(full.code == 1);
  CHECK(has(full.err, "layer-000-experts.bin: writing failed"));
  CHECK(has(mica({"complete", dir, "x"}).err, "packing was not finished"));
  CHECK(mica({"complete", dir, "x"}).code == 3);
  const Ran rest = mica({"pack", file, dir});
  CHECK(rest.code == 0);
  CHECK(has(rest.err, "of them there already"));
  CHECK(rest.err.find("all of them") == std::string::npos);
  CHECK(has(mica({"pack", file, dir}).err, ", all of them there already"));
  std::fstream(work.path("packed/layer-001.bin"), std::ios::in | std::ios::out | std::ios::binary)
      .put('\xAA');
  const Ran damaged = mica({"pack", dir, "--verify"});
  CHECK(damaged.code == 3);
  CHECK(has(damaged.err, "layer-001.bin: tensor 'blk.1."));
  for (const std::string weights : {"resident", "streamed"}) {
    CAPTURE(weights);
    const Ran run = mica({"complete", dir, "x", "-n", "3", "-q", "-c", "64", "--weights", weights});
    CHECK(run.code != 0);
    CHECK(has(run.err, "layer-001.bin: tensor 'blk.1."));
    CHECK(run.out.empty());
  }
}

TEST_CASE("a packer that is killed leaves no half model, and the next run ends what it began") {
  const auto folder = shared_dir("a packer that is killed", "conformance/models");
  if (!folder) return;
  const TemporaryFolder work;
  const std::string file = (*folder / "qwen3next.Q8_0.gguf").string(), dir = work.path("packed");
  const auto begun = std::chrono::steady_clock::now();
  REQUIRE(mica({"pack", file, work.path("whole"), "-q"}).code == 0);
  const auto takes =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begun);
  const auto whole = everything(work.path("whole"));
  CounterRng rng(7);
  int unfinished = 0;
  for (int i = 0; i < 12; ++i) {
    fs::remove_all(dir);
    const ::pid_t child = start({"pack", file, dir});
    ::usleep(static_cast<::useconds_t>(rng.next() % static_cast<std::uint64_t>(takes.count() + 1)));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    const bool finished = fs::exists(dir + "/manifest.gguf");
    CHECK(mica({"pack", dir, "--verify", "-q"}).code == (finished ? 0 : 3));
    unfinished += finished ? 0 : 1;
    REQUIRE(mica({"pack", file, dir, "-q"}).code == 0);
    CHECK(everything(dir) == whole);
  }
  MESSAGE("killed before the end: ", unfinished, " of 12");
}

TEST_CASE("processes that map one packed model have its weights in memory once") {
  const auto folder = shared_dir("mapped weights that are shared", "conformance/models");
  if (!folder || sanitized) return;
  if (!memory_line(::getpid(), "Pss"))
    return skipped("mapped weights that are shared", "no smaps_rollup here");
  const TemporaryFolder work;
  const std::string small = (*folder / "llama3-gqa.F32.gguf").string(), dir = work.path("packed");
  REQUIRE(mica({"pack", small, dir, "-q"}).code == 0);
  std::uint64_t weights = 0;
  for (const auto& entry : fs::directory_iterator(dir)) weights += entry.file_size();
  // Programs that go on writing until they are ended, each of which has touched all weights.
  const Words words = {"complete", dir,  "Once", "-n", "-1", "--ignore-eos", "--on-full",
                       "shift",    "-c", "64",   "-t", "1",  "--weights",    "mapped-populated"};
  std::vector<::pid_t> processes;
  for (int i = 0; i < 2; ++i) {
    const std::string out = work.file("out" + std::to_string(i), "");
    processes.push_back(start(words, ::open(out.c_str(), O_WRONLY)));
  }
  for (int i = 0; i < 2; ++i) {
    std::error_code error;
    for (int tries = 0; tries < 3000 && fs::file_size(work.path("out" + std::to_string(i)), error) < 20;
         ++tries)
      ::usleep(10'000);
  }
  std::uint64_t shared = UINT64_MAX;
  bool read = true;
  for (const ::pid_t process : processes) {
    const auto rss = memory_line(process, "Rss"), pss = memory_line(process, "Pss");
    read = read && rss && pss;
    if (read) shared = std::min(shared, *rss - *pss);  // what others have a part of
  }
  for (const ::pid_t process : processes) {
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
  }
  if (!read) return skipped("mapped weights that are shared", "smaps_rollup of a child cannot be read");
  CHECK(shared >= weights / 10 * 4);  // half of the weights is another process's share
}

}  // namespace mica::test::pack_test

#endif
