// SPDX-License-Identifier: Apache-2.0
//
// Models behind URLs, from a server that works: what is opened, what is asked for, and how much is sent.

#include "remote/web_models.hpp"

#if defined(MICA_HAS_SERVER)

#include "mica/plan/plan.hpp"
#include "mica/version.hpp"
#include "mica_tools/remote/open.hpp"

#include <filesystem>

namespace mica::test::open_test {
namespace {

using namespace std::chrono_literals;

/// The defaults, but for waiting.
remote::Options quick() {
  remote::Options options;
  options.pause = 1ms;
  return options;
}

TEST_CASE("a model behind a URL is the model of the file") {
  const WebFile file = small_file();
  const WebServer server(serve({{"/a/m.gguf", file}}));
  const gguf::Document there = remote::open(server.url("/a/m.gguf?download=true"), quick());
  const gguf::Document here = gguf::parse(file.bytes, "m.gguf");
  CHECK(there.path() == server.url("/a/m.gguf"));
  CHECK(there.header_bytes() == here.header_bytes());
  CHECK(there.tensor("w").offset == here.tensor("w").offset);
  CHECK(there.metadata().require<std::string>("general.name") ==
        here.metadata().require<std::string>("general.name"));
  CHECK(there.sources()[0].size() == file.size);
  REQUIRE(server.asked().size() == 1);
  CHECK(server.asked()[0].target == "/a/m.gguf?download=true");
}

TEST_CASE("a request says who asks, wants no encoding, and tells nothing else") {
  const WebServer server(serve({{"/m.gguf", small_file()}}));
  static_cast<void>(remote::open(server.url("/m.gguf"), quick()));
  const Asked asked = server.asked().at(0);
  CHECK(asked.field("user-agent") == join("mica/", version));
  CHECK(asked.field("accept-encoding") == "identity");
  CHECK(asked.field("range") == "bytes=0-65535");
  CHECK(asked.fields.size() == 5);  // and host, accept
}

TEST_CASE("weights behind a URL are refused, with the way to get them") {
  const WebServer server(serve({{"/m.gguf", small_file()}}));
  const gguf::Document document = remote::open(server.url("/m.gguf"), quick());
  CHECK(document.sources()[0].elsewhere());
  const Error error = refusal([&] { return document.sources()[0].memory(); });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "/m.gguf", "download"));
}

TEST_CASE("a header is read in pieces that ask for the file of the first one") {
  for (const std::size_t bytes : {1000u, 65'536u, 65'537u, 300'000u, 5'000'000u}) {
    CAPTURE(bytes);
    const WebFile file = small_file(bytes);
    const WebServer server(serve({{"/m.gguf", file}}));
    const gguf::Document document = remote::open(server.url("/m.gguf"), quick());
    CHECK(document.header_bytes() == gguf::parse(file.bytes, "m").header_bytes());
    std::uint64_t next = 0;
    for (const Asked& asked : server.asked()) {
      CHECK(asked.first == next);
      CHECK(asked.last - asked.first < (2u << 20));
      CHECK(asked.field("if-range") == (next == 0 ? "" : "\"one\""));
      next = asked.last + 1;
    }
    CHECK(next >= document.header_bytes());
  }
}

TEST_CASE("the header of a model of 42 GB costs less than 20 MB") {
  const std::pair<std::size_t, std::size_t> vocabularies[] = {{128'256, 280'147}, {262'144, 514'906}};
  for (const auto& [tokens, merges] : vocabularies) {
    const WebFile file = large_file(tokens, merges);
    CHECK(file.size > 42'000'000'000u);
    const WebServer server(serve({{"/m.gguf", file}}));
    const gguf::Document document = remote::open(server.url("/m.gguf"), quick());
    CHECK(document.header_bytes() > 8'000'000);
    CHECK(server.sent() < 20'000'000);
    CHECK(server.sent() < document.header_bytes() + 2'200'000);
    MESSAGE(file.size, " bytes, header ", document.header_bytes(), ", sent ", server.sent(), " in ",
            server.asked().size(), " requests");
  }
}

TEST_CASE("the plan of a URL is the plan of the same file on disk") {
  const WebFile file = large_file(128'256, 1000);
  const WebServer server(serve({{"/m.gguf", file}}));
  const TemporaryFolder folder;
  const std::string path = folder.file("m.gguf", file.bytes);
  std::filesystem::resize_file(path, file.size);  // with a hole for the weights
  plan::Question question;
  question.model = {.n_ctx = 4096, .chunk = 512, .logits_rows = 1, .log = {}};
  question.threads = 2;
  const plan::Plan there = plan::make_plan(remote::open(server.url("/m.gguf"), quick()), question);
  const plan::Plan here = plan::make_plan(gguf::open(path), question);
  CHECK(there.peak_bytes == here.peak_bytes);
  CHECK(there.weight_bytes == here.weight_bytes);
  CHECK(there.kv_bytes_per_token == here.kv_bytes_per_token);
  there.accounts.for_each(
      [&](budget::Account account, std::uint64_t bytes) { CHECK(bytes == here.accounts[account]); });
}

TEST_CASE("any shard opens the whole model, one request for each") {
  const WebServer server(serve({{"/m-00001-of-00003.gguf", web_shard(0)},
                                {"/m-00002-of-00003.gguf", web_shard(1)},
                                {"/m-00003-of-00003.gguf", web_shard(2)}}));
  for (const char* shard : {"/m-00001-of-00003.gguf", "/m-00002-of-00003.gguf", "/m-00003-of-00003.gguf"}) {
    const std::size_t before = server.asked().size();
    const gguf::Document document = remote::open(server.url(join(shard, "?sig=1")), quick());
    CHECK(document.tensors().size() == 3);
    CHECK(document.path() == server.url("/m-00001-of-00003.gguf"));
    for (std::uint32_t i = 0; i < 3; ++i) CHECK(document.tensor(join("w", i)).source == i);
    const auto asked = server.asked();
    CHECK(asked.size() == before + 3);
    for (std::size_t i = before; i < asked.size(); ++i) CHECK(asked[i].target.ends_with(".gguf?sig=1"));
  }
}

TEST_CASE("a missing, wrong or renamed shard of a server is named") {
  const WebServer lacking(
      serve({{"/m-00001-of-00003.gguf", web_shard(0)}, {"/m-00003-of-00003.gguf", web_shard(2)}}));
  const Error missing = refusal([&] { return remote::open(lacking.url("/m-00003-of-00003.gguf"), quick()); });
  CHECK(missing.code() == ErrorCode::file);
  CHECK(mentions(missing, lacking.url("/m-00002-of-00003.gguf"), "404", "shard 2 of 3 is missing"));
  const WebServer twice(
      serve({{"/m-00001-of-00003.gguf", web_shard(0)}, {"/m-00002-of-00003.gguf", web_shard(0)}}));
  CHECK(mentions(refusal([&] { return remote::open(twice.url("/m-00001-of-00003.gguf"), quick()); }),
                 "this is shard 1 of 3", "shard 2 of 3 is needed"));
  const WebServer renamed(serve({{"/m.gguf", web_shard(1)}}));
  CHECK(mentions(refusal([&] { return remote::open(renamed.url("/m.gguf"), quick()); }),
                 "its name must end as", "-00002-of-00003.gguf"));
  const WebServer many(serve({{"/m-00001-of-60000.gguf", web_shard(0, 60000)}}));
  const Error limit = refusal([&] { return remote::open(many.url("/m-00001-of-60000.gguf"), quick()); });
  CHECK(limit.code() == ErrorCode::limit);
  CHECK(many.asked().size() <= 1);
}

TEST_CASE("a server may send on, and what follows is asked for where the file is") {
  const WebServer store(serve({{"/blob", small_file(300'000)}}));
  const WebServer front([&](const Asked& asked, Peer& peer) {
    if (asked.target == "/m.gguf") return peer.send(answer_text("302 Found", "Location: /moved/m.gguf\r\n"));
    if (asked.target == "/moved/m.gguf") return peer.send(answer_text("307 T", "Location: other?x=1\r\n"));
    peer.send(answer_text("308 P", join("Location: ", store.url("/blob?sig=a+b%2B;c,d"), "\r\n"), "a page"));
  });
  const gguf::Document document = remote::open(front.url("/m.gguf"), quick());
  CHECK(document.path() == front.url("/m.gguf"));
  const auto first = front.asked();
  REQUIRE(first.size() == 3);
  CHECK(first[2].target == "/moved/other?x=1");
  CHECK(store.asked().size() == 3);
  for (const Asked& asked : store.asked()) CHECK(asked.target == "/blob?sig=a+b%2B;c,d");
}

TEST_CASE("a token goes to the server that was asked, and to no other") {
  const WebServer store(serve({{"/blob", small_file(100'000)}}));
  const WebServer front([&](const Asked& asked, Peer& peer) {
    const std::string to = asked.target == "/m.gguf" ? "/here" : store.url("/blob");
    peer.send(answer_text("302 Found", join("Location: ", to, "\r\n")));
  });
  remote::Options options = quick();
  options.token = "hf_secret";
  static_cast<void>(remote::open(front.url("/m.gguf"), options));
  REQUIRE(front.asked().size() == 2);
  for (const Asked& asked : front.asked()) CHECK(asked.field("authorization") == "Bearer hf_secret");
  REQUIRE(store.asked().size() == 2);
  for (const Asked& asked : store.asked()) CHECK(asked.field("authorization").empty());
}

TEST_CASE("name and password of a URL go to its server, and a token then does not") {
  const WebServer store(serve({{"/blob", small_file()}}));
  const WebServer front([&](const Asked&, Peer& peer) {
    peer.send(answer_text("302 Found", join("Location: ", store.url("/blob"), "\r\n")));
  });
  remote::Options options = quick();
  options.token = "hf_secret";
  const std::string url = join("http://me:p%40ss@", front.url("/m.gguf").substr(7));
  const gguf::Document document = remote::open(url, options);
  CHECK(document.path() == front.url("/m.gguf"));
  CHECK(front.asked().at(0).field("authorization") == "Basic bWU6cEBzcw==");
  CHECK(store.asked().at(0).field("authorization").empty());
}

TEST_CASE("what may pass is tried again: busy servers, broken connections, answers that end early") {
  int tries = 0;
  const WebFile file = small_file(200'000);
  const WebServer server([&](const Asked& asked, Peer& peer) {
    const std::string good = range_text(asked, file);
    switch (tries++) {
      case 0:
        return peer.send(answer_text("503 Service Unavailable", ""));
      case 1:
        return peer.send(answer_text("429 Too Many Requests", "Retry-After: 0\r\n"));
      case 2:
        return peer.reset();
      case 4:
        peer.send(std::string_view(good).substr(0, good.size() / 2));
        return peer.close();
      case 5:
        return peer.close();
      default:
        return peer.send(good);
    }
  });
  CHECK(remote::open(server.url("/m.gguf"), quick()).tensors().size() == 1);
  CHECK(tries == 7);
}

TEST_CASE("a server that closes each connection is as good as another") {
  const WebServer server([file = small_file(200'000)](const Asked& asked, Peer& peer) {
    peer.send(range_text(asked, file));
    peer.close();
  });
  CHECK(remote::open(server.url("/m.gguf"), quick()).tensors().size() == 1);
}

TEST_CASE("an answer in chunks or without a length is as good as another") {
  const WebFile file = small_file(100'000);
  const auto head = [&](const Asked& asked, std::string_view fields) {
    const std::uint64_t last = std::min(asked.last, file.size - 1);
    return join("HTTP/1.1 206 P\r\nContent-Range: bytes ", asked.first, "-", last, "/", file.size, "\r\n",
                file.fields, fields, "\r\n");
  };
  const WebServer chunked([&](const Asked& asked, Peer& peer) {
    const std::string body = file.part(asked.first, std::min(asked.last, file.size - 1));
    peer.send(head(asked, "Transfer-Encoding: chunked\r\n"));
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", body.size());
    peer.send(join(size, body, "\r\n0\r\n\r\n"));
  });
  CHECK(remote::open(chunked.url("/m.gguf"), quick()).tensors().size() == 1);
  const WebServer closing([&](const Asked& asked, Peer& peer) {
    peer.send(head(asked, "Connection: close\r\n"));
    peer.send(file.part(asked.first, std::min(asked.last, file.size - 1)));
    peer.close();
  });
  CHECK(remote::open(closing.url("/m.gguf"), quick()).tensors().size() == 1);
}

TEST_CASE("no connection stays open when a model is") {
  std::atomic<bool> gone = false;
  const WebServer server([&, file = small_file()](const Asked& asked, Peer& peer) {
    peer.send(range_text(asked, file));
    peer.wait();
    gone = !peer.is_open();
  });
  const gguf::Document document = remote::open(server.url("/m.gguf"), quick());
  for (int i = 0; i < 5000 && !gone; ++i) std::this_thread::sleep_for(1ms);
  CHECK(gone);
}

}  // namespace
}  // namespace mica::test::open_test

#else

TEST_CASE("models behind URLs") { mica::test::skipped("models behind URLs", "built without cpp-httplib"); }

#endif
