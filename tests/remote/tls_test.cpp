// SPDX-License-Identifier: Apache-2.0
//
// Encrypted connections, to a server with a certificate made for the test. Skipped without TLS or the program openssl.

#include "remote/web_models.hpp"

#if defined(MICA_HAS_SERVER)
#include "mica_tools/remote/open.hpp"
#endif

#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)

#include "remote/variable.hpp"

namespace mica::test::tls_test {
namespace {

using namespace std::chrono_literals;

remote::Options quick() {
  remote::Options options;
  options.connect = 5s;
  options.pause = 1ms;
  return options;
}

/// A self-signed certificate for 127.0.0.1: a bare system may not know the name localhost.
class Certificate {
 public:
  Certificate() {
    const std::string command = join(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=mica -addext "
        "subjectAltName=IP:127.0.0.1 -keyout ",
        key(), " -out ", path(), " > ", folder_.path("log"), " 2>&1");
    made_ = std::system(command.c_str()) == 0;
    if (!made_) skipped("encrypted connections", "no program openssl");
  }
  [[nodiscard]] bool made() const { return made_; }
  [[nodiscard]] std::string path() const { return folder_.path("cert.pem"); }
  [[nodiscard]] std::string key() const { return folder_.path("key.pem"); }

 private:
  TemporaryFolder folder_;
  bool made_ = false;
};

/// Has one file, /m.gguf, and sends on from /away to a place of the test's.
class TlsServer {
 public:
  explicit TlsServer(const Certificate& certificate, std::string away = {})
      : server_(certificate.path().c_str(), certificate.key().c_str()) {
    const WebFile file = small_file(100'000);
    server_.Get("/m.gguf",
                [body = file.part(0, file.size - 1)](const httplib::Request&, httplib::Response& response) {
                  response.set_content(body, "application/octet-stream");
                });
    server_.Get("/away", [away](const httplib::Request&, httplib::Response& response) {
      response.set_redirect(away);
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    REQUIRE(port_ > 0);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(1ms);
  }
  ~TlsServer() {
    server_.stop();
    thread_.join();
  }
  [[nodiscard]] std::string url(std::string_view path) const {
    return join("https://127.0.0.1:", port_, path);
  }

 private:
  httplib::SSLServer server_;
  int port_ = 0;
  std::thread thread_;
};

TEST_CASE("a model is opened over an encrypted connection to a server that is trusted") {
  const Certificate certificate;
  if (!certificate.made()) return;
  const Variable trusted("SSL_CERT_FILE", certificate.path().c_str());
  const TlsServer server(certificate);
  CHECK(remote::open(server.url("/m.gguf"), quick()).tensors().size() == 1);
}

TEST_CASE("a certificate that nobody trusts ends the connection") {
  const Certificate certificate;
  if (!certificate.made()) return;
  const Variable trusted("SSL_CERT_FILE", "/dev/null");
  const TlsServer server(certificate);
  const Error error = refusal([&] { return remote::open(server.url("/m.gguf"), quick()); });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "no safe connection", "certificate"));
}

TEST_CASE("nobody is sent on from an encrypted connection to one that is not") {
  const Certificate certificate;
  if (!certificate.made()) return;
  const Variable trusted("SSL_CERT_FILE", certificate.path().c_str());
  const WebServer plain(serve({{"/m.gguf", small_file()}}));
  const TlsServer server(certificate, plain.url("/m.gguf?key=secret"));
  const Error error = refusal([&] { return remote::open(server.url("/away"), quick()); });
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK(mentions(error, "not encrypted", plain.url("/m.gguf")));
  CHECK(error.message().find("secret") == std::string::npos);
  CHECK(plain.asked().empty());
}

}  // namespace
}  // namespace mica::test::tls_test

#else

TEST_CASE("encrypted connections") { mica::test::skipped("encrypted connections", "built without TLS"); }

#endif
