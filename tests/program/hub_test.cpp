// SPDX-License-Identifier: Apache-2.0
//
// Models by name: what is asked of a hub, what comes into the cache, and what the program says.

#include "program/program.hpp"
#include "remote/hub_server.hpp"

#include <filesystem>
#include <fstream>
#include <functional>

#if defined(MICA_PROGRAM) && defined(MICA_HAS_SERVER)

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace mica::test::hub_test {
namespace {

/// The bundled model's file as a hub has it. The sum is that of sha256sum.
HubFile fairy() {
  const std::string path = MICA_SOURCE "/examples/models/fairy.gguf";
  const std::string text = contents(path);
  const auto bytes = std::as_bytes(std::span(text));
  std::string sum(64, '\0');
  std::FILE* const pipe = ::popen(("sha256sum " + path).c_str(), "r");
  REQUIRE(pipe != nullptr);
  const std::size_t got = std::fread(sum.data(), 1, sum.size(), pipe);
  ::pclose(pipe);
  REQUIRE(got == sum.size());
  return {{bytes.begin(), bytes.end()}, sum};
}

/// The program beside a hub, with a folder of models of its own.
class Beside {
 public:
  explicit Beside(HubServer& hub) : hub_(hub) {}

  [[nodiscard]] Ran run(Words words, const std::function<void(ProgramRun&)>& change = {}) const {
    ProgramRun program(MICA_PROGRAM, std::move(words));
    program.set("HF_ENDPOINT", hub_.site().origin())
        .set("HF_HUB_CACHE", folder_.path("hub"))
        .set("HF_HUB_OFFLINE", "0")
        .set("HF_TOKEN", "hf_secret");
    if (change) change(program);
    return program.run();
  }
  [[nodiscard]] std::string blobs() const { return folder_.path("hub/models--org--model/blobs"); }

 private:
  HubServer& hub_;
  TemporaryFolder folder_;
};

const Words short_run = {"Once upon", "-n", "8", "--temp", "0", "-q"};

TEST_CASE("a model by its name is downloaded once, and runs as its file does") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const Ran there = beside.run(Words{"run", "hf.co/org/model:q8_0"} + short_run);
  REQUIRE_MESSAGE(there.code == 0, there.err);
  CHECK(there.out == mica(Words{"run", MICA_SOURCE "/examples/models/fairy.gguf"} + short_run).out);
  const std::size_t asked = hub.site().asked().size();
  CHECK(asked > 0);
  for (const Asked& each : hub.store().asked()) CHECK(each.field("authorization").empty());
  for (const Words& how :
       {Words{"run", "hf.co/Org/Model"}, Words{"run", "-hf", "org/model:Q8_0"},
        Words{"complete", "hf:org/model"}, Words{"run", "-hf", "org/model", "-hff", "fairy-Q8_0.gguf"}}) {
    const Ran again = beside.run(how + short_run);
    CHECK(again.code == 0);
    CHECK(again.out == there.out);
  }
  CHECK(hub.site().asked().size() == asked);  // no request
}

TEST_CASE("pull says what a model needs, then downloads it, and list, show and rm know it") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const Ran pull = beside.run({"pull", "hf.co/org/model"});
  REQUIRE_MESSAGE(pull.code == 0, pull.err);
  CHECK(has(pull.err, "hf.co/org/model:Q8_0: needs "));
  CHECK(has(pull.err, ": fits at "));
  CHECK(pull.err.find(" %") == std::string::npos);  // it was short
  CHECK(pull.err.find("needs ") < pull.err.find("downloading"));
  CHECK(has(pull.out, test_commit));
  const Ran again = beside.run({"pull", "hf.co/org/model", "--json"});
  CHECK(has(again.out, "{\"event\":\"done\",\"name\":\"hf.co/org/model:Q8_0\""));
  CHECK(has(again.out, "\"downloaded\":false"));
  CHECK(has(beside.run({"list"}).out, "hf.co/org/model:Q8_0  "));
  CHECK(has(beside.run({"list", "--json"}).out, "\"name\":\"hf.co/org/model:Q8_0\""));
  CHECK(beside.run({"show", "hf.co/org/model"}).out == beside.run({"inspect", "hf.co/org/model"}).out);
  CHECK(beside.run({"rm", "hf.co/org/model:F16"}).code == 3);
  const Ran rm = beside.run({"rm", "hf.co/org/model:q8_0"});
  CHECK(rm.code == 0);
  CHECK(has(rm.err, "freed 5.4 MiB"));
  CHECK(!std::filesystem::exists(beside.blobs()));
  CHECK(has(beside.run({"list"}).err, "no models in "));
}

TEST_CASE(
    "the quantisation is chosen by the memory that is there, and unknown ones are answered with a list") {
  HubFile large = fairy();
  large.size += 1;  // the first of both by its size
  large.file.size = large.size;
  HubServer hub({{"fairy-Q8_0.gguf", large}, {"fairy-Q4_K_M.gguf", fairy()}});
  const Beside beside(hub);
  const Ran plan = beside.run({"plan", "hf.co/org/model", "-c", "512"});
  CHECK(plan.code == 0);
  CHECK(has(plan.err, "hf.co/org/model: chose Q8_0 of 2 quantisations: the largest that fits at 512 tokens"));
  CHECK(hub.store().sent() < 3 * large.size);
  for (const char* quant : {"latest", "Q5_K_M"}) {
    const Ran ran = beside.run({"run", join("hf.co/org/model:", quant), "hi"});
    CHECK(ran.code == 3);
    CHECK(has(ran.err, join("there is no quantisation ", quant)));
    CHECK(has(ran.err, "Q8_0 (5.4 MiB), Q4_K_M (5.4 MiB)"));
  }
  CHECK(!std::filesystem::exists(beside.blobs()));
}

TEST_CASE("a model that does not fit is not downloaded, unless it is forced") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const Ran ran = beside.run({"pull", "hf.co/org/model", "--memory", "1MiB"});
  CHECK(ran.code == 4);
  CHECK(has(ran.err, "--force"));
  CHECK(!std::filesystem::exists(beside.blobs()));
  CHECK(beside.run({"run", "hf.co/org/model", "hi", "--memory", "1MiB"}).code == 4);
  CHECK(!std::filesystem::exists(beside.blobs()));
  CHECK(beside.run({"pull", "hf.co/org/model", "--memory", "1MiB", "--force"}).code == 0);
}

TEST_CASE("offline nothing is asked") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const Ran flag = beside.run({"run", "hf.co/org/model", "hi", "--offline"});
  CHECK(flag.code == 3);
  CHECK(has(flag.err, "--offline forbids"));
  const Ran variable =
      beside.run({"pull", "hf.co/org/model"}, [](ProgramRun& run) { run.set("HF_HUB_OFFLINE", "1"); });
  CHECK(variable.code == 3);
  CHECK(has(variable.err, "HF_HUB_OFFLINE"));
  CHECK(hub.site().asked().empty());
}

TEST_CASE("a full disk ends a download with one sentence, and a wrong sum removes it") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const Ran full = beside.run({"pull", "hf.co/org/model"}, [](ProgramRun& run) { run.limit_files(1 << 20); });
  CHECK(full.code == 1);
  CHECK(has(full.err, "cannot be made here"));
  HubFile wrong = fairy();
  wrong.sha256 = std::string(64, 'a');
  HubServer lying({{"fairy-Q8_0.gguf", wrong}});
  const Beside other(lying);
  const Ran damaged = other.run({"pull", "hf.co/org/model", "--streams", "2"});
  CHECK(damaged.code == 3);
  CHECK(has(damaged.err, "the download was removed"));
  CHECK(std::filesystem::is_empty(other.blobs()));
}

TEST_CASE("a file is named as it is printed, and by the path of a repository") {
  HubServer hub({{"sub/fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const Ran there = beside.run(Words{"run", "hf.co/org/model/sub/fairy-Q8_0.gguf"} + short_run);
  REQUIRE_MESSAGE(there.code == 0, there.err);
  CHECK(there.out == mica(Words{"run", MICA_SOURCE "/examples/models/fairy.gguf"} + short_run).out);
  const Ran missing = beside.run({"pull", "hf.co/org/model/none.gguf"});
  CHECK(missing.code == 3);
  CHECK(has(missing.err, "hf.co/org/model/none.gguf: there is no file of that name"));
  CHECK(beside.run({"rm", "hf.co/org/model/sub/fairy-Q8_0.gguf"}).code == 0);
  CHECK(!std::filesystem::exists(beside.blobs()));
  const Ran wrong = beside.run({"run", "hf.co/org/model/README.md", "hi"});
  CHECK(wrong.code == 2);
  CHECK(has(wrong.err, "ORG/REPO/FILE.gguf"));
}

/// A hub that sends the first piece of the model, 4 MiB, and then keeps its other requests waiting until it may
/// answer them.
struct Waiting {
  std::atomic<bool> may_answer = false;
  HubServer hub{{{"fairy-Q8_0.gguf", fairy()}}, [this](const Asked& asked, Peer&) {
                  while (asked.first >= 1 << 22 && !may_answer)
                    std::this_thread::sleep_for(std::chrono::milliseconds(5));
                  return false;
                }};
  Beside beside{hub};
};

TEST_CASE(
    "a model that is being downloaded is not removed, and an interrupted download is listed and removed") {
  Waiting waiting;
  Ran list, rm, all;
  const Ran pull = waiting.beside.run({"pull", "hf.co/org/model", "--jsonl"}, [&](ProgramRun& run) {
    run.after_output([&](::pid_t child) {  // the first piece is there
      list = waiting.beside.run({"list"});
      rm = waiting.beside.run({"rm", "hf.co/org/model:Q8_0"});
      all = waiting.beside.run({"rm", "hf.co/org/model", "hf.co/org/none"});
      ::kill(child, SIGINT);
      waiting.may_answer = true;
    });
  });
  CHECK(pull.code == 130);
  CHECK(has(list.out,
            "unfinished: hf.co/org/model:Q8_0, 4.0 MiB of 5.4 MiB of fairy-Q8_0.gguf; a download is in "
            "progress\n"));
  CHECK(list.err.empty());
  CHECK(rm.code == 1);
  CHECK(
      has(rm.err, "hf.co/org/model:Q8_0: a download is in progress: 4.0 MiB of 5.4 MiB of fairy-Q8_0.gguf"));
  CHECK(all.code == 1);
  CHECK(has(all.err, "Nothing was removed"));
  const Ran left = waiting.beside.run({"list", "--json"});
  CHECK(
      has(left.out, "\"unfinished\":[{\"name\":\"hf.co/org/model:Q8_0\",\"repo\":\"org/model\",\"bytes\":"));
  CHECK(has(left.out, "\"in_progress\":false"));
  CHECK(waiting.beside.run({"rm", "hf.co/org/model:Q4_0"}).code == 3);
  const Ran removed = waiting.beside.run({"rm", "hf.co/org/model:q8_0"});
  CHECK(removed.code == 0);
  CHECK(has(removed.err, "unfinished download removed, "));
  CHECK(!std::filesystem::exists(waiting.beside.blobs()));
  CHECK(has(waiting.beside.run({"list"}).err, "no models in "));
}

TEST_CASE(
    "an interrupt ends a pull that waits for a silent server, or for the pause that a server requests") {
  const HubServer::Fault silent = [](const Asked& asked, Peer& peer) {
    if (asked.first >= 1 << 22) peer.wait();
    return !peer.is_open();
  };
  const HubServer::Fault busy = [](const Asked& asked, Peer& peer) {
    if (asked.first < 1 << 22) return false;
    return peer.send(answer_text("503 Busy", "Retry-After: 50\r\n")), true;
  };
  for (const HubServer::Fault& fault : {silent, busy}) {
    HubServer hub({{"fairy-Q8_0.gguf", fairy()}}, fault);
    std::chrono::steady_clock::time_point interrupted;
    const Ran pull = Beside(hub).run({"pull", "hf.co/org/model", "--jsonl"}, [&](ProgramRun& run) {
      run.after_output([&](::pid_t child) {  // the first piece is there
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        interrupted = std::chrono::steady_clock::now();
        ::kill(child, SIGINT);
      });
    });
    CHECK(pull.code == 130);
    CHECK(has(pull.err, "the same command continues"));
    // Far below the pause, however busy this machine is.
    CHECK(std::chrono::steady_clock::now() - interrupted < std::chrono::seconds(20));
  }
}

TEST_CASE("an unfinished download counts as a model, and list prints the name that removes it alone") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  REQUIRE(beside.run({"pull", "hf.co/org/model"}).code == 0);
  const std::string a(64, 'a'), b = std::string(11, 'a') + std::string(53, 'b');
  const auto fragment = [&](const std::string& sum, const std::string& notes) {
    std::ofstream(beside.blobs() + "/" + sum + ".mica.incomplete") << "some bytes";
    std::ofstream(beside.blobs() + "/" + sum + ".mica.pieces") << notes;
  };
  const auto is_there = [&](const std::string& sum) {
    return std::filesystem::exists(beside.blobs() + "/" + sum + ".mica.incomplete");
  };
  struct Case {
    const char* notes;
    std::string name;
  };
  for (const Case& each : {Case{"mica pieces 2 90 4 fairy-F32.gguf\n", "hf.co/org/model:F32"},
                           Case{"mica pieces 2 90 4 fairy-Q8_0.gguf\n", "hf.co/org/model:aaaaaaaaaaaa"},
                           Case{"", "hf.co/org/model:aaaaaaaaaaaa"},
                           Case{"mica pieces 2 90 4 ../x.gguf\n", "hf.co/org/model:aaaaaaaaaaaa"}}) {
    CAPTURE(each.notes);
    fragment(a, each.notes);
    fragment(b, "");
    CHECK(has(beside.run({"list"}).out, join("unfinished: ", each.name, ", ")));
    CHECK(has(beside.run({"list"}).out, "unfinished: hf.co/org/model:aaaaaaaaaaab, "));
    const Ran several = beside.run({"rm", "hf.co/org/model"});
    CHECK(several.code == 2);
    CHECK(has(several.err, "hf.co/org/model:Q8_0 (5.4 MiB)"));
    CHECK(has(several.err, "hf.co/org/model:aaaaaaaaaaab (unfinished, "));
    CHECK(is_there(a));
    CHECK(beside.run({"rm", each.name}).code == 0);
    CHECK(!is_there(a));
    CHECK(is_there(b));
    CHECK(beside.run({"rm", "hf.co/org/model:aaaaaaaaaaabbb"}).code == 0);
    CHECK(!is_there(b));
    CHECK(has(beside.run({"list"}).out, "hf.co/org/model:Q8_0  "));
  }
  fragment(a, "");
  CHECK(beside.run({"rm", "hf.co/org/model", "--all"}).code == 0);
  CHECK(!std::filesystem::exists(beside.blobs()));
  std::filesystem::create_directories(beside.blobs());
  fragment(a, "");
  CHECK(beside.run({"rm", "hf.co/org/model"}).code == 0);  // it is the only one
  CHECK(!std::filesystem::exists(beside.blobs()));
}

TEST_CASE("rm checks all names before it removes one, and reports all") {
  HubFile other = fairy();
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}, {"fairy-Q4_0.gguf", other}});
  const Beside beside(hub);
  for (const char* name : {"hf.co/org/model:Q8_0", "hf.co/org/model:Q4_0"})
    REQUIRE(beside.run({"pull", name}).code == 0);
  const Ran refused = beside.run({"rm", "hf.co/org/model:Q8_0", "hf.co/org/none", "hf.co/org/model:F16"});
  CHECK(refused.code == 3);
  CHECK(has(refused.err, "hf.co/org/none: not found in "));
  CHECK(has(refused.err, "hf.co/org/model:F16: not found in "));
  CHECK(has(refused.err, "Nothing was removed"));
  CHECK(has(beside.run({"list"}).out, "hf.co/org/model:Q4_0"));
  const Ran both = beside.run({"rm", "hf.co/org/model:Q8_0", "hf.co/org/model:Q4_0"});
  CHECK(both.code == 0);
  CHECK(has(both.err, "2 models removed, freed 5.4 MiB"));  // their bytes are the same blob
  CHECK(!std::filesystem::exists(beside.blobs()));
}

TEST_CASE("a repository that lacks shards says which") {
  HubServer hub({{"fairy-Q8_0-00001-of-00003.gguf", fairy()}});
  const Ran pull = Beside(hub).run({"pull", "hf.co/org/model"});
  CHECK(pull.code == 3);
  CHECK(has(pull.err, "fairy-Q8_0 has 1 of 3 shards; missing: 2, 3"));
}

TEST_CASE("a folder in which no model can be stored ends with the exit code of files") {
  HubServer hub({{"fairy-Q8_0.gguf", fairy()}});
  const Beside beside(hub);
  const TemporaryFolder folder;
  const std::string plain = folder.file("plain", "x");
  for (const Words& words : {Words{"pull", "hf.co/org/model"}, Words{"run", "hf.co/org/model", "hi"},
                             Words{"list"}, Words{"rm", "hf.co/org/model"}}) {
    CAPTURE(words[0]);
    const Ran ran = beside.run(words, [&](ProgramRun& run) { run.set("HF_HUB_CACHE", plain); });
    CHECK(ran.code == 3);
    CHECK(has(ran.err, "HF_HUB_CACHE names another folder"));
  }
}

TEST_CASE("names that make no sense end with exit code 2") {
  const std::pair<Words, const char*> cases[] = {
      {{"run", "hf.co/org"}, "is no repository"},
      {{"run", "-hf", "org", "hi"}, "--hf-repo: 'org' is no repository"},
      {{"run", "-m", "a.gguf", "-hf", "org/model", "hi"}, "given twice"},
      {{"run", "-hff", "x.gguf"}, "needs a repository"},
      {{"rm"}, "no model was named"},
  };
  for (const auto& [words, text] : cases) {
    const Ran ran = mica(words);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, text));
  }
  // A name that no model has is a file that is missing, for every verb; of a file pull and rm are wrong use.
  for (const Words& words : {Words{"pull", "model.gguf"},
                             {"rm", "model.gguf"},
                             {"run", "model.gguf", "x"},
                             {"plan", "no-such-model"},
                             {"show", "no-such-model"},
                             {"fit", "no-such-model"},
                             {"pull", "no-such-model"},
                             {"rm", "no-such-model"}}) {
    CAPTURE(words[0]);
    CHECK(mica(words).code == 3);
  }
  const TemporaryFolder folder;
  folder.file("model.gguf", "x");
  CHECK(mica({"pull", folder.path("model.gguf")}).code == 2);
  CHECK(mica({"rm", folder.path("model.gguf")}).code == 2);
  CHECK(has(mica({"pull", "qwen2.5-0.5"}).err, "did you mean qwen2.5-0.5b?"));
  CHECK(has(mica({"pull", "Qwen/Qwen3-8B-GGUF"}).err, "did you mean hf.co/Qwen/Qwen3-8B-GGUF?"));
  const Ran near = mica({"run", "qwen2.5-0.5", "hi"});
  CHECK(near.code == 3);
  CHECK(has(near.err, "did you mean qwen2.5-0.5b?"));
  CHECK(has(mica({"list", "--known"}).out, "qwen2.5-0.5b  "));
}

}  // namespace
}  // namespace mica::test::hub_test

#endif
