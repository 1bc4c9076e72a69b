// SPDX-License-Identifier: Apache-2.0
//
// A hub for tests: a site that speaks the API of Hugging Face and sends on to a store, which has the bytes. What
// goes wrong is chosen by the test.

#pragma once

#include "io/temporary_folder.hpp"
#include "remote/variable.hpp"
#include "remote/web_server.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace mica::test {

inline constexpr const char* test_commit = "0123456789abcdef0123456789abcdef01234567";

/// Bytes that have no order.
inline std::vector<std::byte> random_bytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  return bytes;
}

/// A file of a hub: its bytes, and what the listing says about them.
struct HubFile {
  WebFile file;
  std::string sha256;
  std::uint64_t size;

  HubFile(std::vector<std::byte> bytes, std::string sum) : file(std::move(bytes)), sha256(std::move(sum)) {
    size = file.size;
  }
};

using HubFiles = std::map<std::string, HubFile>;

/// The site of one repository, org/model, and its store. It answers many connections.
class HubServer {
 public:
  /// Answers a request in place of the server when it returns true.
  using Fault = std::function<bool(const Asked&, Peer&)>;

  explicit HubServer(HubFiles files, Fault of_store = {}, Fault of_site = {})
      : files_(std::move(files)),
        of_store_(std::move(of_store)),
        of_site_(std::move(of_site)),
        store_([this](const Asked& asked, Peer& peer) { answer_store(asked, peer); },
               WebServer::Connections::many),
        site_([this](const Asked& asked, Peer& peer) { answer_site(asked, peer); },
              WebServer::Connections::many) {}

  [[nodiscard]] WebServer& site() { return site_; }
  [[nodiscard]] WebServer& store() { return store_; }
  /// The list of files as the API has it.
  [[nodiscard]] std::string tree() const {
    std::string text = R"([{"type":"directory","oid":"x","size":0,"path":"Q8_0"})";
    text += R"(,{"type":"file","oid":"x","size":10,"path":"README.md"})";
    for (const auto& [path, file] : files_)
      text +=
          join(",{\"type\":\"file\",\"oid\":\"x\",\"size\":", file.size, ",\"path\":\"", path,
               "\",\"lfs\":{\"oid\":\"", file.sha256, "\",\"size\":", file.size, ",\"pointerSize\":134}}");
    return text + "]";
  }

 private:
  void answer_site(const Asked& asked, Peer& peer) {
    if (of_site_ && of_site_(asked, peer)) return;
    const std::string json = "Content-Type: application/json\r\n";
    const std::string api = "/api/models/org/model", resolve = join("/org/model/resolve/", test_commit, "/");
    if (asked.target.starts_with(api + "/revision/main")) {
      peer.send(answer_text("200 OK", json,
                            join(R"({"id":"org/model","sha":")", test_commit, R"(","siblings":[]})")));
    } else if (asked.target == join(api, "/tree/", test_commit, "?recursive=1")) {
      peer.send(answer_text("200 OK", json, tree()));
    } else if (asked.target.starts_with(resolve) && files_.contains(asked.target.substr(resolve.size()))) {
      const std::string path = asked.target.substr(resolve.size());
      const HubFile& file = files_.at(path);
      peer.send(answer_text(
          "302 Found",
          join("Location: ", store_.url("/store/"), path, "?sig=secret\r\nX-Linked-Etag: \"", file.sha256,
               "\"\r\nX-Linked-Size: ", file.size, "\r\nX-Repo-Commit: ", test_commit, "\r\n")));
    } else {
      peer.send(answer_text("404 Not Found", ""));
    }
  }
  void answer_store(const Asked& asked, Peer& peer) {
    if (of_store_ && of_store_(asked, peer)) return;
    const std::string path = asked.target.substr(7, asked.target.find('?') - 7);
    if (!files_.contains(path)) return peer.send(answer_text("404 Not Found", ""));
    peer.send(range_text(asked, files_.at(path).file));
  }

  HubFiles files_;
  Fault of_store_, of_site_;
  WebServer store_;
  WebServer site_;
};

}  // namespace mica::test
