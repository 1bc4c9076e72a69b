// SPDX-License-Identifier: Apache-2.0
//
// Downloads from a hub that works, and from one that breaks off, stalls and lies: either the bytes of the
// listing, or an error and no file.

#include "remote/hub_server.hpp"
#include "shared.hpp"

#if defined(MICA_HAS_SERVER) && defined(MICA_HAS_TEXT)

#include "mica_tools/hub/download.hpp"
#include "mica_tools/hub/repository.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

namespace mica::test::download_test {
namespace {

using namespace std::chrono_literals;

std::string sum_of(std::span<const std::byte> bytes) {
  hub::Sha256 sum;
  sum.add(bytes);
  return sum.digits();
}

HubFile hub_file(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes = random_bytes(size, seed);
  std::string sum = sum_of(bytes);
  return {std::move(bytes), std::move(sum)};
}

/// Pieces of 1,000 bytes and short waits.
hub::DownloadOptions quick() {
  hub::DownloadOptions options;
  options.piece_bytes = 1000;
  options.pause = 1ms;
  options.look = 5ms;
  options.patience = 3;
  options.remote.connect = 2s;
  options.remote.silence = 300ms;
  options.remote.answer = 3s;
  options.remote.pause = 1ms;
  options.remote.longest_pause = 20ms;
  options.remote.tries = 2;
  return options;
}

/// A hub, and a folder of models beside it.
struct Place {
  HubServer server;
  TemporaryFolder folder;
  Variable endpoint;
  Variable token{"HF_TOKEN", "hf_secret"};

  explicit Place(HubFiles files, HubServer::Fault of_store = {}, HubServer::Fault of_site = {})
      : server(std::move(files), std::move(of_store), std::move(of_site)),
        endpoint("HF_ENDPOINT", server.site().origin().c_str()) {}

  [[nodiscard]] hub::Cache cache() const { return hub::Cache(folder.path("hub")); }
  [[nodiscard]] hub::Listing listing() const {
    remote::Options options = quick().remote;
    return hub::Repository({"org/model"}, options).listing();
  }
  [[nodiscard]] hub::Fetch request() const {
    const hub::Listing listed = listing();
    return {{"org/model"}, listed.commit, listed.files, cache().folder(), 4};
  }
  bool fetch(const hub::Watch& watch = {}, const hub::DownloadOptions& options = quick()) const {
    return hub::fetch(request(), watch, options);
  }
  [[nodiscard]] std::string text(const std::string& path) const {
    return contents(cache().path("org/model", test_commit, path));
  }
  /// Names of blobs that do not end in digits of a sum.
  [[nodiscard]] std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    for (const std::string& name : io::detail::names_in(cache().repo_folder("org/model") + "/blobs")) {
      if (name.size() != 64) names.push_back(name);
    }
    return names;
  }
};

std::string text_of(const HubFile& file) {
  return {reinterpret_cast<const char*>(file.file.bytes.data()), file.file.bytes.size()};
}

TEST_CASE("OpenSSL's sum is SHA-256") {
  const std::string abc = "abc";  // FIPS 180-4
  CHECK(sum_of(std::as_bytes(std::span(abc))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("files of a hub come whole, in the layout of its own tools, and the token goes to no other host") {
  const HubFile a = hub_file(12'345, 1), b = hub_file(1, 2), c = hub_file(4000, 3);
  Place place({{"m-Q4_0.gguf", a}, {"tiny.gguf", b}, {"Q8_0/m-Q8_0.gguf", c}});
  std::vector<std::uint64_t> seen;
  CHECK(place.fetch({[&](std::uint64_t done) { seen.push_back(done); }, {}, {}}));
  CHECK(place.text("m-Q4_0.gguf") == text_of(a));
  CHECK(place.text("tiny.gguf") == text_of(b));
  CHECK(place.text("Q8_0/m-Q8_0.gguf") == text_of(c));
  CHECK(place.cache().commit_of("org/model", "main") == test_commit);
  CHECK(place.leftovers().empty());
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.back() == 12'345 + 1 + 4000);
  for (const Asked& asked : place.server.site().asked())
    CHECK(asked.field("authorization") == "Bearer hf_secret");
  REQUIRE(!place.server.store().asked().empty());
  for (const Asked& asked : place.server.store().asked()) CHECK(asked.field("authorization").empty());
  const std::size_t before = place.server.store().asked().size();
  CHECK(place.fetch());  // nothing is read again
  CHECK(place.server.store().asked().size() == before);
}

TEST_CASE("a download that breaks off at any point continues to the same bytes") {
  const HubFile file = hub_file(80'500, 4);
  std::mt19937 random(5);
  std::atomic<std::int64_t> left = 0;  // bytes until the store goes
  Place place({{"m-Q4_0.gguf", file}}, [&](const Asked& asked, Peer& peer) {
    const std::string answer = range_text(asked, file.file);
    const auto size = static_cast<std::int64_t>(answer.size());
    const std::int64_t before = left.fetch_sub(size);
    if (before >= size) return false;
    peer.send(
        std::string_view(answer).substr(0, static_cast<std::size_t>(std::max<std::int64_t>(before, 0))));
    peer.reset();
    return true;
  });
  const hub::Fetch request = place.request();
  hub::DownloadOptions options = quick();
  options.patience = 0;
  options.remote.tries = 1;
  int breaks = 0;
  for (int i = 0; i < 50; ++i) {
    left = static_cast<std::int64_t>(random() % 3000);
    try {
      if (hub::fetch(request, {}, options)) break;
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::failed);
      ++breaks;
    }
    CHECK(place.cache().snapshots("org/model", "main").empty());
  }
  CHECK(breaks == 50);
  left = 1'000'000'000;
  CHECK(hub::fetch(request, {}, options));
  CHECK(place.text("m-Q4_0.gguf") == text_of(file));
  CHECK(place.leftovers().empty());
  CHECK(place.server.store().sent() < 3 * file.size);  // finished pieces are not read again
}

TEST_CASE("a download that its user stops at any point continues to the same bytes") {
  const HubFile file = hub_file(50'000, 6);
  Place place({{"m-Q4_0.gguf", file}}, [](const Asked&, Peer&) {
    std::this_thread::sleep_for(1ms);
    return false;
  });
  const hub::Fetch request = place.request();
  bool done = false;
  for (int i = 0; i < 50 && !done; ++i) {
    std::optional<std::uint64_t> first;
    std::uint64_t now = 0;
    done = hub::fetch(request,
                      {[&](std::uint64_t bytes) {
                         first = first.value_or(bytes);
                         now = bytes;
                       },
                       [&] { return now >= first.value_or(now) + 2000 && now != file.size; },
                       {}},
                      quick());
  }
  CHECK(done);
  CHECK(place.text("m-Q4_0.gguf") == text_of(file));
}

/// The time from the first request of the store until a fetch that is stopped then ends.
std::chrono::milliseconds stopping_time(const HubServer::Fault& fault) {
  std::atomic<bool> was_asked = false;
  Place place({{"m-Q4_0.gguf", hub_file(50'000, 16)}}, [&](const Asked& asked, Peer& peer) {
    was_asked = true;
    return fault(asked, peer);
  });
  hub::DownloadOptions options = quick();
  options.remote.silence = 20s;
  options.remote.answer = 20s;
  options.remote.longest_pause = 60s;
  std::optional<std::chrono::steady_clock::time_point> stopped;
  const auto stop = [&] {
    if (was_asked && !stopped) {
      std::this_thread::sleep_for(100ms);  // the answer is there
      stopped = std::chrono::steady_clock::now();
    }
    return stopped.has_value();
  };
  CHECK(!place.fetch({{}, stop, {}}, options));
  REQUIRE(stopped);
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - *stopped);
}

TEST_CASE("a download that waits for a server is stopped at once") {
  CHECK(stopping_time([](const Asked&, Peer& peer) { return peer.wait(), true; }) <
        1s);  // silent from the start
  CHECK(stopping_time([](const Asked& asked, Peer& peer) {
          peer.send(join("HTTP/1.1 206 Partial Content\r\nContent-Range: bytes ", asked.first, "-",
                         asked.last, "/50000\r\nContent-Length: 1000\r\n\r\nx"));
          return peer.wait(), true;
        }) < 1s);
  CHECK(stopping_time([](const Asked&, Peer& peer) {
          return peer.send(answer_text("429 Too Many", "Retry-After: 50\r\n")), true;
        }) < 1s);
}

TEST_CASE("simultaneous failures of several connections count once") {
  const HubFile file = hub_file(20'000, 17);
  std::atomic<int> left = 8;  // requests that fail
  Place place({{"m-Q4_0.gguf", file}}, [&](const Asked&, Peer& peer) {
    if (--left < 0) return false;
    peer.reset();
    return true;
  });
  hub::Fetch request = place.request();
  request.connections = 8;
  hub::DownloadOptions options = quick();
  options.pause = 100ms;
  options.remote.tries = 1;
  CHECK(hub::fetch(request, {}, options));  // 8 failures are more than the 3 in a row that are allowed
  CHECK(place.text("m-Q4_0.gguf") == text_of(file));
  left = 1'000'000;
  std::filesystem::remove_all(place.cache().folder());
  const std::size_t before = place.server.store().asked().size();
  const auto begin = std::chrono::steady_clock::now();
  CHECK(refusal([&] { return hub::fetch(request, {}, options); }).code() == ErrorCode::failed);
  CHECK(std::chrono::steady_clock::now() - begin >= 700ms);   // 100 + 200 + 400
  CHECK(place.server.store().asked().size() - before <= 64);  // 4 of each connection; more if busy
}

TEST_CASE("wrong bytes are refused, and the damaged file is removed") {
  const HubFile good = hub_file(5000, 7);
  HubFile bad = good;
  bad.file.bytes[2500] ^= std::byte{1};
  std::atomic<bool> lies = true;
  Place place({{"m-Q4_0.gguf", good}}, [&](const Asked& asked, Peer& peer) {
    if (lies) peer.send(range_text(asked, bad.file));
    return lies.load();
  });
  const Error error = refusal([&] { return place.fetch(); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "m-Q4_0.gguf", good.sha256, sum_of(bad.file.bytes), "removed"));
  CHECK(place.leftovers().empty());
  CHECK(place.cache().snapshots("org/model", "main").empty());
  lies = false;
  CHECK(place.fetch());
  CHECK(place.text("m-Q4_0.gguf") == text_of(good));
}

TEST_CASE("what a store does wrong ends with its reason, and no file") {
  const HubFile file = hub_file(5000, 8);
  const auto answer = [](std::string text) {
    return [text = std::move(text)](const Asked&, Peer& peer) {
      peer.send(text);
      peer.close();
      return true;
    };
  };
  WebFile longer = file.file;
  longer.size = 6000;
  const std::tuple<const char*, HubServer::Fault, ErrorCode, const char*> cases[] = {
      {"ignores ranges", answer(answer_text("200 OK", "", text_of(file))), ErrorCode::unsupported,
       "whole files"},
      {"401", answer(answer_text("401 Unauthorized", "")), ErrorCode::file, "restricted"},
      {"403", answer(answer_text("403 Forbidden", "")), ErrorCode::file, "restricted"},
      {"404", answer(answer_text("404 Not Found", "")), ErrorCode::file, "no such file"},
      {"429", answer(answer_text("429 Too Many", "")), ErrorCode::failed, "429"},
      {"429 for long", answer(answer_text("429 Too Many", "Retry-After: 3600\r\n")), ErrorCode::failed,
       "3600"},
      {"500", answer(answer_text("500 Error", "")), ErrorCode::failed, "500"},
      {"is silent", [](const Asked&, Peer& peer) { return peer.wait(), true; }, ErrorCode::failed, "silent"},
      {"has another size",
       [&](const Asked& asked, Peer& peer) { return peer.send(range_text(asked, longer)), true; },
       ErrorCode::file, "6000"},
      {"sends another range",
       [&](const Asked& asked, Peer& peer) {
         Asked other = asked;
         ++other.first;
         return peer.send(range_text(other, file.file)), true;
       },
       ErrorCode::failed, "were requested"},
      {"sends too much",
       [&](const Asked& asked, Peer& peer) {
         peer.send(answer_text("206 Partial Content",
                               join("Content-Range: bytes ", asked.first, "-", asked.last, "/5000\r\n"),
                               std::string(5000, 'x')));
         return true;
       },
       ErrorCode::failed, "sends more than"},
      {"encodes",
       [&](const Asked& asked, Peer& peer) {
         WebFile encoded = file.file;
         encoded.fields += "Content-Encoding: br\r\n";
         return peer.send(range_text(asked, encoded)), true;
       },
       ErrorCode::unsupported, "encodes"},
  };
  for (const auto& [what, fault, code, text] : cases) {
    const auto& the_what = what;
    CAPTURE(the_what);
    Place place({{"m-Q4_0.gguf", file}}, fault);
    const Error error = refusal([&] { return place.fetch(); });
    CHECK(error.code() == code);
    CHECK(mentions(error, text, "m-Q4_0.gguf"));
    CHECK(error.message().find("secret") == std::string::npos);
    CHECK(place.cache().snapshots("org/model", "main").empty());
    CHECK(place.leftovers().empty());
  }
}

TEST_CASE("what was read is removed once the server has another size, and stays after other errors") {
  const HubFile file = hub_file(5000, 15);
  WebFile longer = file.file;
  longer.size = 6000;
  std::atomic<int> answers = 0;
  std::atomic<bool> contradicts = false;
  Place place({{"m-Q4_0.gguf", file}}, [&](const Asked& asked, Peer& peer) {
    if (++answers <= 2) return false;
    peer.send(contradicts ? range_text(asked, longer) : answer_text("404 Not Found", ""));
    return true;
  });
  hub::Fetch request = place.request();
  request.connections = 1;
  CHECK(mentions(refusal([&] { return hub::fetch(request, {}, quick()); }), "no such file"));
  REQUIRE(hub::unfinished(place.cache(), "org/model").size() == 1);
  CHECK(hub::unfinished(place.cache(), "org/model")[0].path == "m-Q4_0.gguf");
  contradicts = true;
  const Error error = refusal([&] { return hub::fetch(request, {}, quick()); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "5000", "6000", "removed"));
  CHECK(place.leftovers().empty());
}

TEST_CASE("an unfinished download of an earlier version is removed when the new one is there") {
  const HubFile file = hub_file(3000, 14);
  Place place({{"m-Q4_0.gguf", file}});
  std::filesystem::create_directories(place.cache().repo_folder("org/model") + "/blobs");
  const std::string old(64, 'a'), other(64, 'b');
  static_cast<void>(hub::PartialFile(place.cache().blob("org/model", old), 10, 4, "m-Q4_0.gguf"));
  static_cast<void>(hub::PartialFile(place.cache().blob("org/model", other), 10, 4, "m-Q8_0.gguf"));
  CHECK(place.fetch());
  const auto left = hub::unfinished(place.cache(), "org/model");
  REQUIRE(left.size() == 1);
  CHECK(left[0].path == "m-Q8_0.gguf");
}

TEST_CASE("an address that expires is asked for again") {
  const HubFile file = hub_file(9000, 9);
  std::atomic<int> answers = 0;
  Place place({{"m-Q4_0.gguf", file}}, [&](const Asked&, Peer& peer) {
    if (++answers % 2 != 0) return false;
    peer.send(answer_text("403 Forbidden", ""));
    return true;
  });
  hub::Fetch request = place.request();
  request.connections = 1;
  CHECK(hub::fetch(request, {}, quick()));
  CHECK(place.text("m-Q4_0.gguf") == text_of(file));
}

TEST_CASE("what a site does wrong ends with its reason") {
  const auto site = [](std::string status, std::string body) {
    return [status = std::move(status), body = std::move(body)](const Asked&, Peer& peer) {
      peer.send(answer_text(status, "", body));
      return true;
    };
  };
  const std::tuple<const char*, HubServer::Fault, ErrorCode, const char*> cases[] = {
      {"401", site("401 Unauthorized", "{}"), ErrorCode::file, "does not have"},
      {"404", site("404 Not Found", "{}"), ErrorCode::file, "is there a repository org/model"},
      {"500", site("500 Error", "{}"), ErrorCode::failed, "500"},
      {"a page", site("200 OK", "<html>"), ErrorCode::file, "not JSON"},
      {"endless", site("200 OK", std::string(hub::max_page_bytes + 1, ' ')), ErrorCode::failed, "more than"},
      {"a range", site("206 Partial Content", "{}"), ErrorCode::file, "whole text"},
  };
  for (const auto& [what, fault, code, text] : cases) {
    const auto& the_what = what;
    CAPTURE(the_what);
    Place place({}, {}, fault);
    const Error error = refusal([&] { return place.listing(); });
    CHECK(error.code() == code);
    CHECK(mentions(error, text, place.server.site().origin()));
  }
}

TEST_CASE("a list of several pages is read to its end, and not on another server") {
  const HubFile file = hub_file(10, 10);
  std::string next;
  Place place({{"m-Q4_0.gguf", file}}, {}, [&](const Asked& asked, Peer& peer) {
    if (!asked.target.ends_with("?recursive=1")) {
      if (!asked.target.ends_with("cursor=2")) return false;
      peer.send(answer_text("200 OK", "", "[]"));
      return true;
    }
    const std::string entry =
        join("[{\"type\":\"file\",\"path\":\"a-Q8_0.gguf\",\"size\":10,\"lfs\":{\"oid\":\"", file.sha256,
             "\",\"size\":10}}]");
    peer.send(answer_text("200 OK", join("Link: <", next, ">; rel=\"next\"\r\n"), entry));
    return true;
  });
  next = "/api/models/org/model/tree?cursor=2";
  CHECK(place.listing().files.size() == 1);
  CHECK(place.server.site().asked().back().target == next);
  next = join(place.server.store().origin(), "/x?cursor=2");
  const Error error = refusal([&] { return place.listing(); });
  CHECK(mentions(error, "another server"));
}

TEST_CASE("two downloads of one file at once read it once") {
  const HubFile file = hub_file(40'000, 11);
  Place place({{"m-Q4_0.gguf", file}}, [](const Asked&, Peer&) {
    std::this_thread::sleep_for(2ms);
    return false;
  });
  const hub::Fetch request = place.request();
  std::atomic<int> notes = 0;
  const auto run = [&] {
    return hub::fetch(request, {{}, {}, [&](const std::string&) { ++notes; }}, quick());
  };
  bool first = false, second = false;
  std::thread one([&] { first = run(); }), two([&] { second = run(); });
  one.join();
  two.join();
  CHECK(first);
  CHECK(second);
  CHECK(notes <= 1);
  CHECK(place.text("m-Q4_0.gguf") == text_of(file));
  CHECK(place.server.store().asked().size() == 40);
}

TEST_CASE("a blob of another size is replaced, and unfinished files of other tools stay") {
  const HubFile file = hub_file(3000, 12);
  Place place({{"m-Q4_0.gguf", file}});
  const std::string blob = place.cache().blob("org/model", file.sha256);
  std::filesystem::create_directories(place.cache().repo_folder("org/model") + "/blobs");
  std::ofstream(blob) << "short";
  std::ofstream(blob + ".incomplete") << "theirs";
  CHECK(place.fetch());
  CHECK(place.text("m-Q4_0.gguf") == text_of(file));
  CHECK(contents(blob + ".incomplete") == "theirs");
}

TEST_CASE("a file that no disk has space for is refused before its first byte") {
  HubFile file = hub_file(3000, 13);
  file.size = std::uint64_t{1} << 60;
  Place place({{"m-Q4_0.gguf", file}});
  const Error error = refusal([&] { return place.fetch(); });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "1152921504606846976 bytes", "free"));
  CHECK(place.server.store().asked().empty());
  CHECK(place.leftovers().empty());
}

}  // namespace
}  // namespace mica::test::download_test

#endif
