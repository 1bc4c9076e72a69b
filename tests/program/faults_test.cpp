// SPDX-License-Identifier: Apache-2.0
//
// What happens to a run when the system takes something away: files that are cut under it, files that may not
// grow.

#include "program/program.hpp"

#ifdef MICA_PROGRAM

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace mica::test::faults_test {
namespace {

namespace fs = std::filesystem;

const std::string fairy = std::string(MICA_SOURCE) + "/examples/models/fairy.gguf";

/// A model of this test's own.
std::string copied(const TemporaryFolder& folder) {
  const std::string path = folder.path("model.gguf");
  fs::copy_file(fairy, path);
  return path;
}

/// An answer that does not end by itself, of which every step reads weights.
Words endless(const std::string& model, const Words& weights) {
  return Words{
             "complete", model, "Once upon a time", "-n", "1000000",    "--ignore-eos", "--on-full", "shift",
             "-c",       "256", "--temp",           "0",  "--governor", "off"} +
         weights;
}

/// Weights of which a part is read for each step: the process and so many bytes are the budget.
Words streamed(const std::string& model) {
  const Ran plan = mica({"plan", model, "-c", "256", "--json", "--memory", "1G"});
  return {"--weights", "streamed", "--memory", std::to_string(number(plan, "process") + (13 << 19))};
}

/// Runs it and cuts a file when something stands on stdout.
Ran cut_while(const Words& words, const std::string& file, std::uintmax_t bytes) {
  return ProgramRun(MICA_PROGRAM, words).after_output([&](::pid_t) { fs::resize_file(file, bytes); }).run();
}

/// The one line that is an error.
std::string error_of(const Ran& ran) {
  std::string found;
  for (std::size_t at = 0; at < ran.err.size();) {
    const std::size_t end = std::min(ran.err.find('\n', at), ran.err.size());
    const std::string line = ran.err.substr(at, end - at);
    if (line.starts_with("mica: ") && line.find("to fit") == std::string::npos) found += line + "\n";
    at = end + 1;
  }
  return found;
}

bool is_one_line(const std::string& text) { return text.find('\n') == text.size() - 1; }

}  // namespace

TEST_CASE("a model that is cut while it is mapped ends the run with its name and 1") {
  if (!fs::exists("/proc/self/maps"))
    return skipped("cut files that are mapped", "this system names no mapped file");
  for (const std::string weights : {"mapped", "mapped-sequential", "mapped-populated"}) {
    CAPTURE(weights);
    const TemporaryFolder folder;
    const std::string model = copied(folder);
    const Ran ran = cut_while(endless(model, {"--weights", weights}), model, 0);
    CHECK(ran.code == 1);
    const std::string error = error_of(ran);
    CHECK(is_one_line(error));
    CHECK(has(error, "mica: " + model + ": became shorter while it was mapped: 0 bytes now, byte "));
  }
}

TEST_CASE("a model that is cut while it is streamed ends the run with its name and 1, text and JSON alike") {
  const TemporaryFolder folder;
  const std::string dir = folder.path("packed");
  REQUIRE(mica({"pack", fairy, dir}).code == 0);
  const std::string layer = dir + "/layer-002.bin";
  const Words weights = streamed(dir);
  for (const std::string how : {"", "--jsonl"}) {
    CAPTURE(how);
    const std::string whole = contents(layer);
    const Ran ran = cut_while(endless(dir, weights) + (how.empty() ? Words{} : Words{how}), layer, 4096);
    CHECK(ran.code == 1);
    const std::string error = error_of(ran);
    CHECK(is_one_line(error));
    CHECK(has(error, "mica: " + layer + ": reading "));
    CHECK(has(error, "the file became shorter while it was in use"));
    if (!how.empty()) {
      CHECK(has(ran.out, "\"stop_reason\":\"read_failed\""));
      CHECK(has(ran.out, "\"error\":\"" + layer + ": reading "));
    }
    folder.file("packed/layer-002.bin", whole);
  }
  std::string damaged = contents(layer);
  damaged[damaged.size() / 2] ^= 1;
  folder.file("packed/layer-002.bin", damaged);
  const Ran ran = mica(endless(dir, weights) + Words{"--json"});
  CHECK(ran.code == 1);
  CHECK(has(error_of(ran), "mica: " + layer + ": tensor 'blk.2."));
  CHECK(has(ran.out, "\"error\":\"" + layer + ": tensor 'blk.2."));
}

TEST_CASE("a model that is cut costs no session, whether its weights are in memory or the run ends by it") {
  for (const std::string how : {"resident", "streamed"}) {
    CAPTURE(how);
    const TemporaryFolder folder;
    const std::string model = copied(folder), session = folder.path("story");
    const bool resident = how == "resident";
    const Words weights = resident ? Words{"--weights", "resident"} : streamed(model);
    const Words words = endless(model, weights) + Words{"--session", session};
    const Ran ran = ProgramRun(MICA_PROGRAM, words)
                        .after_output([&](::pid_t child) {
                          // Streamed layers cannot be read; the rows of the embedding, which is mapped, can.
                          fs::resize_file(model, resident ? 4096 : fs::file_size(model) / 2);
                          if (resident) ::kill(child, SIGINT);
                        })
                        .run();
    CHECK_MESSAGE(ran.code == (resident ? 130 : 1), ran.err);
    REQUIRE(fs::exists(session));
    const Words more = {"complete", fairy,       "-n",    "2",         "-c",
                        "256",      "--on-full", "shift", "--session", session};
    CHECK(has(mica(more).err, ": continues after "));
  }
}

TEST_CASE("a file that is cut to nothing while it is streamed ends the run with its name and 1") {
  const TemporaryFolder folder;
  const std::string model = copied(folder);
  const Ran ran = cut_while(endless(model, streamed(model)), model, 0);
  CHECK(ran.code == 1);
  CHECK(has(error_of(ran), "mica: " + model + ": "));  // rows of the embedding are mapped, layers are read
  CHECK(has(error_of(ran), "became shorter"));
}

TEST_CASE("no file of a program takes the place of a stream that is closed") {
  const TemporaryFolder folder;
  const std::string saved = folder.path("saved"), model = copied(folder);
  std::ofstream(model, std::ios::app) << "\n/save " << saved << "\n";
  const auto shell = [&](const std::string& command) {
    return ProgramRun("/bin/sh", {"-c", command, MICA_PROGRAM, model}).run();
  };
  const Ran chat = shell("\"$0\" chat \"$1\" -n 1 <&-");
  CHECK(chat.code == 0);
  CHECK(chat.out.empty());
  CHECK(!fs::exists(saved));
  const std::string before = contents(model);
  CHECK(shell("\"$0\" complete \"$1\" Once -n 3 >&-").code == 1);
  CHECK(shell("\"$0\" complete \"$1\" Once -n 3 2>&-").code == 0);
  CHECK(contents(model) == before);
}

TEST_CASE(
    "a limit on the size of files ends what writes larger ones with a sentence, and nothing is left of "
    "them") {
  const TemporaryFolder folder;
  const auto limited = [&](const Words& words) {
    const Ran ran = ProgramRun(MICA_PROGRAM, words).limit_files(64 * 1024).run();
    CAPTURE(words);
    CHECK(is_one_line(error_of(ran)));
    return ran;
  };
  const std::string out = folder.path("out.gguf"), dir = folder.path("dir"), session = folder.path("session");
  for (const Words& words : {Words{"quantize", fairy, out, "COPY"}, Words{"pack", fairy, dir},
                             Words{"synth", "stories-15m", "Q4_0", out},
                             Words{"run", "-n", "40", "-ctk", "f32", "-ctv", "f32", "--session", session}}) {
    const Ran ran = limited(words);
    CHECK(ran.code == 1);
    CHECK(has(ran.err, "File too large"));
  }
  CHECK(!fs::exists(out));
  CHECK(!fs::exists(session));
  for (const auto& entry : fs::recursive_directory_iterator(folder.path("")))
    CHECK(!entry.path().string().ends_with(".part"));
  const Ran spilled = limited({"complete", fairy, "Once upon a time", "-n", "2000", "-c", "2048", "-q",
                               "--ignore-eos", "--kv", "spilled"});
  CHECK(spilled.code == 1);
  CHECK(has(spilled.err, "File too large"));
}

}  // namespace mica::test::faults_test

#endif
