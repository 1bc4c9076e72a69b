// SPDX-License-Identifier: Apache-2.0
//
// Models by name: what is asked of a hub, what comes into the cache, and what the program says.

#include "program/program.hpp"
#include "remote/hub_server.hpp"

#include <filesystem>
#include <functional>

#if defined(MICA_PROGRAM) && defined(MICA_HAS_SERVER)

#include <cstdio>

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
  CHECK(has(pull.err, "100 %: "));
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
  CHECK(has(rm.err, "5.4 MiB are free"));
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
  CHECK(has(plan.err, "hf.co/org/model: Q8_0 of 2: the largest that fits at 512 tokens"));
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

TEST_CASE("names that make no sense end with exit code 2") {
  const std::pair<Words, const char*> cases[] = {
      {{"run", "hf.co/org"}, "is no repository"},
      {{"run", "-hf", "org", "hi"}, "--hf-repo: 'org' is no repository"},
      {{"run", "-m", "a.gguf", "-hf", "org/model", "hi"}, "given twice"},
      {{"run", "-hff", "x.gguf"}, "needs a repository"},
      {{"pull", "model.gguf"}, "no model of a hub"},
      {{"rm", "model.gguf"}, "no model by name"},
      {{"rm"}, "no model was named"},
  };
  for (const auto& [words, text] : cases) {
    const Ran ran = mica(words);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, text));
  }
  const Ran near = mica({"run", "qwen2.5-0.5", "hi"});
  CHECK(near.code == 3);
  CHECK(has(near.err, "did you mean qwen2.5-0.5b?"));
  CHECK(has(mica({"list", "--known"}).out, "qwen2.5-0.5b  "));
}

}  // namespace
}  // namespace mica::test::hub_test

#endif
