// SPDX-License-Identifier: Apache-2.0

#include "mica/io/folder_file.hpp"

#include "io/temporary_folder.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

namespace mica::test::folder_file_test {
namespace {

namespace fs = std::filesystem;

/// A cache as Hugging Face keeps it, with one repository, and a file outside of it.
struct Cache {
  TemporaryFolder folder;
  std::string repository = folder.path("hub/models--owner--name");
  std::string snapshot = repository + "/snapshots/0123abcd";

  Cache() {
    fs::create_directories(snapshot + "/onnx");
    fs::create_directories(repository + "/blobs");
    fs::create_directories(folder.path("hub/models--other--one/blobs"));
    folder.file("hub/models--owner--name/blobs/deadbeef", "ours");
    folder.file("hub/models--other--one/blobs/deadbeef", "another's");
    folder.file("secret", "not for models");
  }
  /// A link of the snapshot, which replaces the one before.
  void link(const std::string& name, const std::string& target) const {
    fs::remove(snapshot + "/" + name);
    fs::create_symlink(target, snapshot + "/" + name);
  }
};

}  // namespace

TEST_CASE("files of a folder and links within it have paths, whether they are there or not") {
  const TemporaryFolder folder;
  folder.file("config.json", "{}");
  fs::create_symlink("config.json", folder.path("other.json"));
  fs::create_symlink(folder.path("config.json"), folder.path("third.json"));
  fs::create_symlink("nowhere", folder.path("hanging.json"));
  for (const std::string name : {"config.json", "other.json", "third.json", "hanging.json", "missing.json"}) {
    CAPTURE(name);
    CHECK(io::folder_file(folder.path("").substr(0, folder.path("").size() - 1), name) == folder.path(name));
  }
  CHECK(io::folder_file(folder.path("no folder"), "x") == folder.path("no folder/x"));
}

TEST_CASE("a link out of a folder is refused with where it leads and the way out") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("model"));
  fs::create_directory(folder.path("model2"));
  folder.file("secret", "not for models");
  folder.file("model2/config.json", "another's");
  fs::create_symlink("../secret", folder.path("model/chat_template.jinja"));
  fs::create_symlink(folder.path("secret"), folder.path("model/config.json"));
  fs::create_symlink("../model2/config.json",
                     folder.path("model/tokenizer.json"));  // begins with the folder's name
  fs::create_symlink("/etc/passwd", folder.path("model/by-way.json"));
  fs::create_symlink("by-way.json", folder.path("model/model.safetensors"));
  for (const std::string name :
       {"chat_template.jinja", "config.json", "tokenizer.json", "by-way.json", "model.safetensors"}) {
    CAPTURE(name);
    const Error error = refusal([&] { return io::folder_file(folder.path("model"), name); });
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, name + ": is a link to ", "outside of the folder", "put a copy of it"));
  }
  CHECK(mentions(refusal([&] { return io::folder_file(folder.path("model"), "by-way.json"); }),
                 "a link to /etc/passwd,"));
}

TEST_CASE("a folder may be a link itself") {
  const TemporaryFolder folder;
  fs::create_directory(folder.path("model"));
  folder.file("model/config.json", "{}");
  fs::create_directory_symlink("model", folder.path("link"));
  CHECK(io::folder_file(folder.path("link"), "config.json") == folder.path("link/config.json"));
}

TEST_CASE("links of a Hugging Face cache lead to the bytes of their own repository") {
  const Cache cache;
  cache.link("config.json", "../../blobs/deadbeef");
  CHECK(io::folder_file(cache.snapshot, "config.json") == cache.snapshot + "/config.json");
  fs::create_symlink("../../../blobs/deadbeef", cache.snapshot + "/onnx/config.json");
  CHECK(io::folder_file(cache.snapshot + "/onnx", "config.json") == cache.snapshot + "/onnx/config.json");
  fs::create_directory_symlink(cache.snapshot, cache.folder.path("my-model"));
  CHECK(io::folder_file(cache.folder.path("my-model"), "config.json") ==
        cache.folder.path("my-model/config.json"));

  cache.folder.file("hub/models--owner--name/notes", "not among the bytes");
  for (const std::string target :
       {"../../../../secret", "../../../models--other--one/blobs/deadbeef", "/etc/passwd", "../../notes"}) {
    CAPTURE(target);
    cache.link("config.json", target);
    CHECK(mentions(refusal([&] { return io::folder_file(cache.snapshot, "config.json"); }),
                   "outside of the folder"));
  }
}

TEST_CASE("a cache whose bytes are a link has none") {
  const Cache cache;
  fs::remove_all(cache.repository + "/blobs");
  fs::create_directory_symlink(cache.folder.path("hub/models--other--one/blobs"),
                               cache.repository + "/blobs");
  cache.link("config.json", "../../blobs/deadbeef");
  CHECK(mentions(refusal([&] { return io::folder_file(cache.snapshot, "config.json"); }),
                 "outside of the folder"));
}

TEST_CASE("a folder that only looks like a cache keeps its files to itself") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path("model/snapshots/1"));
  fs::create_directories(folder.path("model/blobs"));
  folder.file("model/blobs/x", "bytes");
  fs::create_symlink("../../blobs/x", folder.path("model/snapshots/1/config.json"));
  CHECK(mentions(refusal([&] { return io::folder_file(folder.path("model/snapshots/1"), "config.json"); }),
                 "outside of the folder"));
}

}  // namespace mica::test::folder_file_test
