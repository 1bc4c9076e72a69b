// SPDX-License-Identifier: Apache-2.0
//
// Models named by URLs: what plan and inspect say of them, who refuses them, and how the program ends.

#include "program/program.hpp"
#include "remote/web_models.hpp"

#include <algorithm>
#include <filesystem>

#ifdef MICA_PROGRAM

namespace mica::test::remote_test {
namespace {

TEST_CASE("verbs that need weights refuse a URL before they ask anybody") {
  const WebServer server(serve({{"/m.gguf", small_file()}}));
  const std::string url = server.url("/m.gguf?key=secret");
  const Words lines[] = {
      {"run", url, "hello"},
      {"chat", url},
      {"complete", url, "hello"},
      {"logits", url, "--ids", "1"},
      {"bench", url},
      {"perplexity", url, "-f", "x"},
      {"imatrix", url, "-f", "x"},
      {"quantize", url, "out.gguf", "Q8_0"},
      {"pack", url, "out"},
      {"convert", url, "out.gguf"},
      {"doctor", url},
      {"complete", "-m", "examples/models/fairy.gguf", "--draft", url, "hello"},
  };
  for (const Words& words : lines) {
    CAPTURE(words[0]);
    const Ran ran = mica(words);
    CHECK(ran.code == 5);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, server.url("/m.gguf")));
    CHECK(has(ran.err, "download it first"));
    CHECK(ran.err.find("secret") == std::string::npos);
  }
  const Ran probe = mica({"plan", url, "--probe"});
  CHECK(probe.code == 2);
  CHECK(has(probe.err, "--probe"));
  CHECK(server.asked().empty());
}

TEST_CASE("what is no URL of the web ends with what it is") {
  CHECK(mica({"plan", "https://"}).code == 2);
  CHECK(mica({"plan", "http://h:x/m.gguf"}).code == 2);
  const Ran ftp = mica({"plan", "ftp://me:secret@h/m.gguf"});
  CHECK(ftp.code == 5);
  CHECK(ftp.err.find("secret") == std::string::npos);
}

#if defined(MICA_HAS_SERVER)

/// Runs the program with a token that is for this server.
Ran with_token(const WebServer& site, const Words& words) {
  return ProgramRun(MICA_PROGRAM, words).set("HF_TOKEN", "hf_secret").set("HF_ENDPOINT", site.origin()).run();
}

#ifdef __linux__  // elsewhere there is no module
TEST_CASE("a program without its module for URLs says so, and plans files as ever") {
  if (sanitized) return;  // whose programs are long to copy
  const TemporaryFolder folder;
  const std::string alone = folder.path("mica");
  std::filesystem::copy_file(MICA_PROGRAM, alone);
  const WebServer server(serve({{"/m.gguf", small_file()}}));
  const Ran ran = ProgramRun(alone, {"plan", server.url("/m.gguf?key=secret")}).run();
  CHECK(ran.code == 1);
  CHECK(has(ran.err, server.url("/m.gguf") + ": the module for URLs cannot be loaded: "));
  CHECK(has(ran.err, "download the file first"));
  CHECK(ran.err.find("secret") == std::string::npos);
  CHECK(server.asked().empty());
  CHECK(ProgramRun(alone, {"plan", "-c", "256"}).run().code == 0);
}
#endif

/// Advice has the memory that is free at the moment, and the name of the file.
std::string without_advice(const std::string& out) {
  return out.substr(0, std::min(out.find("\"advice\":"), out.find("\nswap ")));
}

TEST_CASE("a plan of a URL is that of the file") {
  const WebFile file = large_file(128'256, 280'147);
  const WebServer server(serve({{"/m.gguf", file}}));
  const TemporaryFolder folder;
  const std::string path = folder.file("m.gguf", file.bytes);
  std::filesystem::resize_file(path, file.size);                    // with a hole for the weights
  const Words more[] = {{"--memory", "64GiB", "-c", "8192", "-q"},  // quiet about what this machine has
                        {"--memory", "64GiB", "-c", "8192", "-q", "--json"},
                        {"--memory", "8GiB", "--weights", "streamed", "-c", "2048", "-q", "--json"}};
  for (const Words& words : more) {
    const Ran there = mica(Words{"plan", server.url("/m.gguf")} + words);
    const Ran here = mica(Words{"plan", path} + words);
    CHECK(there.code == 0);
    CHECK(here.code == 0);
    CHECK(without_advice(there.out) == without_advice(here.out));
    CHECK(there.err.empty());
  }
  CHECK(server.sent() < 3 * 20'000'000u);
  const Ran small = mica({"plan", server.url("/m.gguf"), "--memory", "1GiB"});
  CHECK(small.code == 4);
  CHECK(has(small.err, server.url("/m.gguf")));
}

TEST_CASE("inspect and tokenize read a header behind a URL") {
  const WebServer server(serve({{"/m.gguf", large_file(1000, 10)}}));
  const Ran text = mica({"inspect", server.url("/m.gguf")});
  CHECK(text.code == 0);
  CHECK(has(text.out, "llama.block_count"));
  const Ran json = mica({"inspect", server.url("/m.gguf?key=secret"), "--json"});
  CHECK(json.code == 0);
  CHECK(has(json.out, join("\"path\":\"", server.url("/m.gguf"), "\"")));
  const Ran ids = mica({"tokenize", server.url("/m.gguf"), "a", "--json"});
  CHECK(ids.code == 0);
  CHECK(has(ids.out, "\"ids\":["));
}

TEST_CASE("shards behind a URL are one model") {
  const WebServer server(
      serve({{"/m-00001-of-00002.gguf", web_shard(0, 2)}, {"/m-00002-of-00002.gguf", web_shard(1, 2)}}));
  const Ran ran = mica({"inspect", server.url("/m-00002-of-00002.gguf"), "--json"});
  CHECK(number(ran, "files") == 2);
}

TEST_CASE("the token of the environment goes to its site alone") {
  const WebServer store(serve({{"/blob", small_file()}}));
  const WebServer site([&](const Asked&, Peer& peer) {
    peer.send(answer_text("302 Found", join("Location: ", store.url("/blob"), "\r\n")));
  });
  CHECK(with_token(site, {"inspect", site.url("/m.gguf")}).code == 0);
  CHECK(site.asked().at(0).field("authorization") == "Bearer hf_secret");
  CHECK(store.asked().at(0).field("authorization").empty());
  CHECK(with_token(site, {"inspect", store.url("/blob")}).code == 0);
  CHECK(store.asked().at(1).field("authorization").empty());
  const WebServer closed([](const Asked&, Peer& peer) { peer.send(answer_text("401 Unauthorized", "")); });
  const Ran ran = with_token(closed, {"inspect", closed.url("/m.gguf")});
  CHECK(ran.code == 3);
  CHECK(has(ran.err, "HF_TOKEN"));
  CHECK(ran.err.find("hf_secret") == std::string::npos);
}

TEST_CASE("what a server does wrong ends with a code for it") {
  const std::pair<const char*, int> cases[] = {
      {"404 Not Found", 3}, {"403 Forbidden", 3}, {"500 Error", 1}, {"200 OK", 5}};
  for (const auto& [status, code] : cases) {
    const std::string said = status;
    CAPTURE(said);
    const WebServer server([said](const Asked&, Peer& peer) { peer.send(answer_text(said, "", "body")); });
    const Ran ran = mica({"plan", server.url("/m.gguf")});
    CHECK(ran.code == code);
    CHECK(ran.out.empty());
    CHECK(has(ran.err, join("mica: ", server.url("/m.gguf"))));
  }
  WebServer nobody([](const Asked&, Peer&) {});
  nobody.stop();
  CHECK(mica({"plan", nobody.url("/m.gguf")}).code == 1);
}

#else

TEST_CASE("a program without an HTTP library says what it lacks") {
  const Ran ran = mica({"plan", "https://me:secret@h/m.gguf"});
  CHECK(ran.code == 5);
  CHECK(has(ran.err, "built without cpp-httplib"));
  CHECK(ran.err.find("secret") == std::string::npos);
  skipped("models behind URLs", "built without cpp-httplib");
}

#endif

}  // namespace
}  // namespace mica::test::remote_test

#endif
