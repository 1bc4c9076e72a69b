// SPDX-License-Identifier: Apache-2.0
//
// Servers that lie, stall, loop and change their minds: each ends with one error that names the file, what
// was found and the way out, soon, and without the bytes that were not wanted.

#include "remote/web_models.hpp"
#include "shared.hpp"

#if defined(MICA_HAS_SERVER)

#include "mica_tools/remote/open.hpp"

#include <chrono>

namespace mica::test::hostile_test {
namespace {

using namespace std::chrono_literals;

/// So impatient that a test may wait for it.
remote::Options impatient() {
  remote::Options options;
  options.connect = 2s;
  options.silence = 400ms;
  options.answer = 3s;
  options.pause = 1ms;
  options.longest_pause = 20ms;
  return options;
}

/// What a server gets for its answers; its name stands in every text, and time and bytes are bounded.
Error refused_by(const Answer& answer, std::string_view path = "/m.gguf") {
  const WebServer server(answer);
  const auto begin = std::chrono::steady_clock::now();
  const Error error =
      refusal([&] { return remote::open(server.url(join(path, "?key=secret")), impatient()); });
  CHECK(std::chrono::steady_clock::now() - begin < 60s);
  CHECK(error.message().find("secret") == std::string::npos);
  CHECK(mentions(error, server.url(path)));
  return error;
}

/// The same for one answer that every request gets.
Error refused(std::string text) {
  return refused_by([text = std::move(text)](const Asked&, Peer& peer) {
    peer.send(text);
    peer.close();
  });
}

/// A 206 with fields of its own, and a body.
std::string part(std::string_view fields, std::string_view body) {
  return join("HTTP/1.1 206 Partial Content\r\n", fields, "\r\n", body);
}

TEST_CASE("a server without ranges is not read to the end") {
  std::atomic<std::uint64_t> sent = 0;
  const Error error = refused_by([&](const Asked&, Peer& peer) {
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 42000000000\r\n\r\n");
    const std::string piece(1 << 16, 'x');
    for (; peer.is_open() && sent < (64u << 20); sent += piece.size()) peer.send(piece);
  });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "200", "42000000000 bytes", "download"));
  CHECK(sent < (64u << 20));
}

TEST_CASE("a page in place of a file is called one, whatever its status") {
  const Error whole =
      refused(answer_text("200 OK", "Content-Type: text/html; charset=utf-8\r\n", "<!DOCTYPE html>"));
  CHECK(whole.code() == ErrorCode::file);
  CHECK(mentions(whole, "a page", "/resolve/"));
  const Error partial =
      refused(part("Content-Type: text/html\r\nContent-Range: bytes 0-14/15\r\nContent-Length: 15\r\n",
                   "<!DOCTYPE html>"));
  CHECK(partial.code() == ErrorCode::file);
  CHECK(mentions(partial, "a page"));
  const Error unnamed =
      refused(part("Content-Range: bytes 0-14/15\r\nContent-Length: 15\r\n", "<!DOCTYPE html>"));
  CHECK(unnamed.code() == ErrorCode::file);
  CHECK(mentions(unnamed, "not a GGUF file", "<!DO"));
}

TEST_CASE("statuses end with what they mean") {
  const std::tuple<const char*, ErrorCode, const char*> cases[] = {
      {"401 Unauthorized", ErrorCode::file, "HF_TOKEN"},  {"403 Forbidden", ErrorCode::file, "HF_TOKEN"},
      {"404 Not Found", ErrorCode::file, "no such file"}, {"410 Gone", ErrorCode::file, "no such file"},
      {"416 Range", ErrorCode::file, "no byte 0"},        {"418 Teapot", ErrorCode::file, "206"},
      {"204 No Content", ErrorCode::file, "206"},         {"304 Not Modified", ErrorCode::file, "206"},
      {"429 Too Many", ErrorCode::failed, "4 times"},     {"500 Error", ErrorCode::failed, "4 times"},
      {"503 Busy", ErrorCode::failed, "4 times"},
  };
  for (const auto& [status, code, text] : cases) {
    const std::string said = status;
    CAPTURE(said);
    const Error error = refused(answer_text(status, ""));
    CHECK(error.code() == code);
    CHECK(mentions(error, std::string_view(said).substr(0, 3), text));
  }
}

TEST_CASE("a server that wants to be left alone for long is") {
  int tries = 0;
  const Error error = refused_by([&](const Asked&, Peer& peer) {
    ++tries;
    peer.send(answer_text("503 Busy", "Retry-After: 3600\r\n"));
  });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "503", "3600 seconds"));
  CHECK(tries == 1);
}

TEST_CASE("a part that is another one than was asked for is refused before its bytes") {
  const std::string body(65'536, 'x');
  const std::pair<const char*, const char*> cases[] = {
      {"", "without its place"},
      {"Content-Range: bytes\r\n", "without its place"},
      {"Content-Range: bytes 9-0/100000\r\n", "without its place"},
      {"Content-Range: bytes 0-65535/99999999999999999999\r\n", "without its place"},
      {"Content-Range: bytes 0-65535/*\r\n", "how large the file is"},
      {"Content-Range: bytes 1-65536/100000\r\n", "bytes 0 to 65535 of 100000"},
      {"Content-Range: bytes 0-65534/100000\r\n", "bytes 0 to 65535 of 100000"},
      {"Content-Range: bytes 0-99999/100000\r\n", "bytes 0 to 65535 of 100000"},
      {"Content-Range: bytes 0-65535/18446744073709551615\r\nContent-Length: 1\r\n", "by its Content-Length"},
      {"Content-Range: bytes 0-65535/100000\r\nContent-Length: 42000000000\r\n", "by its Content-Length"},
      {"Content-Range: bytes 0-65535/100000\r\nContent-Length: -1\r\n", "by its Content-Length"},
      {"Content-Range: bytes 0-65535/100000\r\nContent-Encoding: gzip\r\n", "gzip"},
      {"Content-Range: bytes 0-65535/100000\r\nContent-Encoding: br\r\n", "Content-Encoding"},
      {"Content-Type: multipart/byteranges; boundary=b\r\n", "without its place"},
  };
  for (const auto& [fields, text] : cases) {
    const std::string said = fields;
    CAPTURE(said);
    CHECK(mentions(refused(part(fields, body)), text));
  }
}

TEST_CASE("a size that no header fits into is a truncated file") {
  const Error error = refused(
      part("Content-Range: bytes 0-7/8\r\nContent-Length: 8\r\n", std::string_view("GGUF\3\0\0\0", 8)));
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "truncated"));
  WebFile cut = small_file(100'000);
  cut.size -= 100;
  const Error tensor = refused_by([&](const Asked& asked, Peer& peer) { peer.send(range_text(asked, cut)); });
  CHECK(tensor.code() == ErrorCode::file);
  CHECK(mentions(tensor, "truncated or damaged"));
}

TEST_CASE("a header without an end stops at the limit of headers") {
  RawHeader raw(0, 2);
  raw.text("a").type(gguf::ValueType::array).type(gguf::ValueType::u8).number(std::uint64_t{400} << 20);
  const WebFile file({raw.bytes().begin(), raw.bytes().end()}, std::uint64_t{1} << 40);
  const Error error = refused_by([&](const Asked& asked, Peer& peer) { peer.send(range_text(asked, file)); });
  CHECK(error.code() == ErrorCode::limit);
}

TEST_CASE("an answer that is shorter or longer than it promised is refused") {
  const Error shorter =
      refused(part("Content-Range: bytes 0-65535/100000\r\nContent-Length: 65536\r\n", "GGUF"));
  CHECK(shorter.code() == ErrorCode::failed);
  CHECK(mentions(shorter, "broke after 4 of 65536 bytes"));
  const Error early = refused(part("Content-Range: bytes 0-65535/100000\r\n", "GGUF"));
  CHECK(early.code() == ErrorCode::failed);
  CHECK(mentions(early, "ends after 4 of 65536 bytes"));
  const Error longer = refused(part("Content-Range: bytes 0-65535/100000\r\n", std::string(70'000, 'x')));
  CHECK(longer.code() == ErrorCode::failed);
  CHECK(mentions(longer, "more than the 65536 bytes"));
}

/// A server whose file is another one from its second answer on.
Error changed(const char* first_fields, const char* then_fields, std::uint64_t growth = 0) {
  WebFile file = small_file(300'000), then = file;
  file.fields = first_fields;
  then.fields = then_fields;
  then.size += growth;
  return refused_by(
      [&](const Asked& asked, Peer& peer) { peer.send(range_text(asked, asked.first == 0 ? file : then)); });
}

TEST_CASE("two versions of a file are never mixed") {
  for (const Error& error : {
           changed("ETag: \"one\"\r\n", "ETag: \"two\"\r\n"),
           changed("ETag: W/\"one\"\r\n", "ETag: W/\"two\"\r\n"),
           changed("ETag: \"one\"\r\n", ""),
           changed("Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n",
                   "Last-Modified: Tue, 02 Jan 2024 00:00:00 GMT\r\n"),
           changed("", "", 1),
       }) {
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "changed while it was read"));
  }
  const Error whole = refused_by([file = small_file(300'000)](const Asked& asked, Peer& peer) {
    peer.send(asked.field("if-range").empty() ? range_text(asked, file)
                                              : answer_text("200 OK", "ETag: \"two\"\r\n", "GGUF"));
  });
  CHECK(whole.code() == ErrorCode::file);
  CHECK(mentions(whole, "changed"));
}

TEST_CASE("a silent server is not waited for without an end") {
  const Error nothing = refused_by([](const Asked&, Peer& peer) { peer.wait(); });
  CHECK(nothing.code() == ErrorCode::failed);
  CHECK(mentions(nothing, "silent for 0.4 seconds", "0 of 65536 bytes"));
  const Error midway = refused_by([file = small_file(300'000)](const Asked& asked, Peer& peer) {
    peer.send(std::string_view(range_text(asked, file)).substr(0, 10'000));
    peer.wait();
  });
  CHECK(mentions(midway, "silent for"));
}

TEST_CASE("an answer that drips is cut off") {
  const auto drip = [](Peer& peer, std::string_view text) {
    while (peer.is_open()) {
      peer.send(text);
      peer.wait(50);
    }
  };
  const Error head = refused_by([&](const Asked&, Peer& peer) {
    peer.send("HTTP/1.1 206 Partial Content\r\n");
    drip(peer, "X: y\r\n");
  });
  CHECK(head.code() == ErrorCode::failed);
  CHECK(mentions(head, "not complete after 3 seconds"));
  const Error body = refused_by([&](const Asked&, Peer& peer) {
    peer.send(part("Content-Range: bytes 0-65535/100000\r\nContent-Length: 65536\r\n", ""));
    drip(peer, "x");
  });
  CHECK(mentions(body, "not complete after 3 seconds", "of 65536 bytes"));
}

TEST_CASE("a redirect is followed five times, and nowhere where nobody asked to go") {
  std::atomic<int> asked_for = 0;
  const Error loop = refused_by([&](const Asked&, Peer& peer) {
    ++asked_for;
    peer.send(answer_text("302 Found", "Location: /m.gguf?key=secret\r\n"));
  });
  CHECK(loop.code() == ErrorCode::failed);
  CHECK(mentions(loop, "more than 5 times"));
  CHECK(asked_for == 6);
  for (const char* to : {"file:///etc/passwd", "ftp://h/m.gguf", "gopher://h"}) {
    const Error error = refused(answer_text("302 Found", join("Location: ", to, "\r\n")));
    CHECK(error.code() == ErrorCode::unsupported);
    CHECK(mentions(error, "redirects to an address that is not followed"));
  }
  for (const char* to : {"http://", "http://h:x/", "/a b", "http://u:secret@h:x/"}) {
    const Error error = refused(answer_text("302 Found", join("Location: ", to, "\r\n")));
    CHECK(error.code() == ErrorCode::failed);
  }
  CHECK(mentions(refused(answer_text("302 Found", "")), "does not say where"));
}

TEST_CASE("what is no HTTP is not taken for an answer") {
  for (const char* text : {"", "\r\n", "GGUF", "HTTP/1.1\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n",
                           "ICY 200 OK\r\n\r\n", "HTTP/9.9 206 P\r\n\r\n"}) {
    CAPTURE(text);
    const Error error = refused(text);
    CHECK(error.code() == ErrorCode::failed);
    CHECK(mentions(error, "no HTTP"));
  }
}

TEST_CASE("a head without an end, or with a line without one, is cut off") {
  if (remote::detail::httplib_version() == 19)
    return skipped("heads without an end", "cpp-httplib 0.19 reads them all");
  const std::string status = "HTTP/1.1 206 Partial Content\r\n";
  const auto endless = [](const std::string& begin, const std::string& more) {
    return refused_by([&](const Asked&, Peer& peer) {
      peer.send(begin);
      for (int i = 0; i < 4096 && peer.is_open(); ++i) peer.send(more);
      peer.close();
    });
  };
  const std::string piece(1 << 14, 'x');
  CHECK(endless("HTTP/1.1 206 ", piece).code() == ErrorCode::failed);
  CHECK(endless(status + "X: ", piece).code() == ErrorCode::failed);
  std::string lines;
  for (int i = 0; i < 1000; ++i) lines += "X: y\r\n";
  CHECK(endless(status, lines).code() == ErrorCode::failed);
}

TEST_CASE("where nobody listens there is no connection, after some tries") {
  WebServer server([](const Asked&, Peer&) {});
  server.stop();
  const Error error = refusal([&] { return remote::open(server.url("/m.gguf?key=secret"), impatient()); });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "no connection to", "4 tries"));
  CHECK(error.message().find("secret") == std::string::npos);
}

TEST_CASE("https to a server that has none ends with the reason") {
  const WebServer server([](const Asked&, Peer& peer) { peer.close(); });
  const std::string url = join("https", server.url("/m.gguf").substr(4));
  remote::Options options;  // with time for a slow machine: nothing is waited for
  options.pause = options.longest_pause = 1ms;
  const Error error = refusal([&] { return remote::open(url, options); });
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "no safe connection"));
#else
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "without TLS"));
#endif
}

}  // namespace
}  // namespace mica::test::hostile_test

#else

TEST_CASE("servers that lie") { mica::test::skipped("servers that lie", "built without cpp-httplib"); }

#endif
