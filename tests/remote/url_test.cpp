// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/remote/url.hpp"

#include "io/temporary_folder.hpp"
#include "mica_tools/remote/token.hpp"
#include "remote/variable.hpp"

#include <doctest/doctest.h>

#include <utility>

namespace mica::test::url_test {
namespace {

using remote::Url;

TEST_CASE("a URL is told from a path by its scheme") {
  for (const char* url : {"http://h/x", "https://h", "HTTPS://h/x", "ftp://h/x", "s3://bucket/x"})
    CHECK(remote::is_url(url));
  for (const char* path : {"", "model.gguf", "/a/b", "://x", "a/b://x", "./http://x", "C:\\x", "-"})
    CHECK_FALSE(remote::is_url(path));
}

TEST_CASE("a URL comes apart into what a client needs, and nothing is encoded anew") {
  const Url url = Url::parse("HTTPS://me:p%40ss@Host.Example:8443/a%20b/m.gguf?sig=a+b%2B&x=1#part");
  CHECK(url.scheme == "https");
  CHECK(url.credentials == "me:p%40ss");
  CHECK(url.host == "host.example");
  CHECK(url.port == 8443);
  CHECK(url.target() == "/a%20b/m.gguf?sig=a+b%2B&x=1");
  CHECK(url.origin() == "https://host.example:8443");
  CHECK(Url::parse("http://h").target() == "/");
  CHECK(Url::parse("http://h:80/x").origin() == "http://h");
  CHECK(Url::parse("https://h:80/x").origin() == "https://h:80");
  CHECK(Url::parse("http://h?q").target() == "/?q");
  CHECK(Url::parse("http://[::1]:8080/x").origin() == "http://[::1]:8080");
  CHECK(Url::parse("http://[fe80::1]/x").port == 80);
}

TEST_CASE("what is shown of a URL holds neither user, password nor query") {
  CHECK(Url::parse("https://me:secret@h/m.gguf?token=secret#secret").shown() == "https://h/m.gguf");
  for (const char* text : {"https://me:secret@h:99999/m?token=secret", "https://me:sec ret@h/m",
                           "ftp://me:secret@h/m?secret", "https://me:secret@/m", "https://me:s/ecret@h/m",
                           "secret@h", "https://?secret", "https://h\x01/?secret"}) {
    CAPTURE(text);
    const Error error = refusal([&] { return Url::parse(text); });
    CHECK(error.message().find("ecret") == std::string::npos);
  }
}

TEST_CASE("what is no URL is refused with what it lacks") {
  CHECK(mentions(refusal([] { return Url::parse("https:///m.gguf"); }), "no host"));
  CHECK(mentions(refusal([] { return Url::parse("https://h:0/m"); }), "https://h:0/m", "port"));
  CHECK(mentions(refusal([] { return Url::parse("https://h:65536/m"); }), "port"));
  CHECK(mentions(refusal([] { return Url::parse("https://h:80x/m"); }), "port"));
  CHECK(mentions(refusal([] { return Url::parse("https://h o/m"); }), "no blanks"));
  CHECK(mentions(refusal([] { return Url::parse("https://h/a\r\nHost: x"); }), "no blanks"));
  CHECK(mentions(refusal([] { return Url::parse("https://h!/m"); }), "no host"));
  CHECK(mentions(refusal([] { return Url::parse("https://[]/m"); }), "no host"));
  const Error scheme = refusal([] { return Url::parse("ftp://h/m.gguf"); });
  CHECK(scheme.code() == ErrorCode::unsupported);
  CHECK(mentions(scheme, "ftp", "https and http", "download"));
}

TEST_CASE("a redirect may name a whole URL, another host, or a part of a path") {
  const Url from = Url::parse("https://h:1/a/b/m.gguf?old=1");
  const std::pair<const char*, const char*> cases[] = {
      {"http://other/x?y", "http://other/x?y"},
      {"//other/x", "https://other/x"},
      {"/x?y=2#z", "https://h:1/x?y=2"},
      {"n.gguf", "https://h:1/a/b/n.gguf"},
      {"../n.gguf", "https://h:1/a/n.gguf"},
      {"../../../n.gguf", "https://h:1/n.gguf"},
      {"./c/../n.gguf", "https://h:1/a/b/n.gguf"},
      {"?new=2", "https://h:1/a/b/m.gguf?new=2"},
      {"..", "https://h:1/a/"},
      {"/a/./b", "https://h:1/a/b"},
  };
  for (const auto& each : cases) {
    const Url to = from.resolved(each.first);
    CAPTURE(each.first);
    CHECK(join(to.origin(), to.target()) == each.second);
  }
  CHECK(refusal([&] { return from.resolved("file:///etc/passwd"); }).code() == ErrorCode::unsupported);
  CHECK(refusal([&] { return from.resolved("https://"); }).code() == ErrorCode::usage);
}

TEST_CASE("the token of the environment is for one site and one scheme") {
  const Variable home("HF_HOME", "/nowhere"), path("HF_TOKEN_PATH", nullptr);
  const Variable token("HF_TOKEN", "hf_secret");
  {
    const Variable endpoint("HF_ENDPOINT", nullptr);
    CHECK(remote::token_for(Url::parse("https://huggingface.co/a/m.gguf")) == "hf_secret");
    for (const char* other :
         {"http://huggingface.co/m", "https://huggingface.co:444/m", "https://huggingface.co.evil/m",
          "https://evil/huggingface.co", "https://huggingface.co@evil/m"}) {
      CAPTURE(other);
      CHECK(remote::token_for(Url::parse(other)).empty());
    }
  }
  const Variable endpoint("HF_ENDPOINT", "http://127.0.0.1:99/");
  CHECK(remote::token_for(Url::parse("http://127.0.0.1:99/m")) == "hf_secret");
  CHECK(remote::token_for(Url::parse("https://huggingface.co/m")).empty());
  const Variable empty("HF_TOKEN", "");
  CHECK(remote::token_for(Url::parse("http://127.0.0.1:99/m")).empty());
  const Variable broken("HF_TOKEN", "hf_secret\r\nX: y");
  const Error error = refusal([] { return remote::token_for(Url::parse("http://127.0.0.1:99/m")); });
  CHECK(mentions(error, "HF_TOKEN"));
  CHECK(error.message().find("secret") == std::string::npos);
}

TEST_CASE("the token is that of the environment, else that of the login of Hugging Face's tools") {
  const TemporaryFolder folder;
  folder.file("token", "hf_home\n");
  const std::string other = folder.file("other", "hf_path");
  const Url site = Url::parse("https://huggingface.co/m");
  const Variable endpoint("HF_ENDPOINT", nullptr), token("HF_TOKEN", nullptr), path("HF_TOKEN_PATH", nullptr),
      implicit("HF_HUB_DISABLE_IMPLICIT_TOKEN", nullptr), home("HF_HOME", folder.path("").c_str());
  CHECK(remote::token_for(site) == "hf_home");
  CHECK(remote::token_for(Url::parse("https://evil/m")).empty());
  const Variable at("HF_TOKEN_PATH", other.c_str());
  CHECK(remote::token_for(site) == "hf_path");
  const Variable off("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1");
  CHECK(remote::token_for(site).empty());
  const Variable said("HF_TOKEN", "hf_said");
  CHECK(remote::token_for(site) == "hf_said");
}

}  // namespace
}  // namespace mica::test::url_test
