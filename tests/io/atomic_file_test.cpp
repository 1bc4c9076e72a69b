// SPDX-License-Identifier: Apache-2.0

#include "mica/io/atomic_file.hpp"

#include "io/temporary_folder.hpp"

#include <stdexcept>

namespace mica::test {
namespace {

using io::AtomicFile;

TEST_CASE("a committed file holds what was written and leaves nothing beside it") {
  const TemporaryFolder folder;
  const std::string path = folder.path("out");
  io::write_atomically(path, [](AtomicFile& out) {
    out.write("one ");
    out.write(std::string_view("two\0three", 9));
    out.write("");
    CHECK(out.size() == 13);
  });
  CHECK(contents(path) == std::string("one two\0three", 13));
  CHECK(folder.entries() == 1);
}

TEST_CASE("until it is committed, the old file stands and other readers see it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("out", "old");
  {
    AtomicFile out(path);
    out.write("half of the n");
    CHECK(contents(path) == "old");
  }
  CHECK(contents(path) == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a writer that throws leaves the path as it was") {
  const TemporaryFolder folder;
  const auto fail = [](AtomicFile& out) {
    out.write("some");
    throw std::runtime_error("stop");
  };
  CHECK_THROWS_AS(io::write_atomically(folder.path("out"), fail), std::runtime_error);
  CHECK(folder.entries() == 0);
}

TEST_CASE("two writers of one path do not mix, the last to commit wins") {
  const TemporaryFolder folder;
  AtomicFile first(folder.path("out"));
  AtomicFile second(folder.path("out"));
  first.write("first");
  second.write("second");
  second.commit();
  first.commit();
  CHECK(contents(folder.path("out")) == "first");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a link stays a link and its target is replaced") {
  const TemporaryFolder folder;
  const std::string target = folder.file("target", "old");
  std::filesystem::create_symlink("target", folder.path("link"));
  io::write_atomically(folder.path("link"), [](AtomicFile& out) { out.write("new"); });
  CHECK(std::filesystem::is_symlink(folder.path("link")));
  CHECK(contents(target) == "new");
}

TEST_CASE("a device is written to in place") {
  const TemporaryFolder folder;
  io::write_atomically("/dev/null", [](AtomicFile& out) { out.write("gone"); });
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("a full device is an error and not a short file") {
  if (!std::filesystem::exists("/dev/full")) return;
  const Error error = refusal([] {
    io::write_atomically("/dev/full", [](AtomicFile& out) { out.write("x"); });
    return 0;
  });
  CHECK(error.code() == ErrorCode::failed);
  CHECK(mentions(error, "/dev/full", "writing failed after 0 bytes"));
}

TEST_CASE("a path that cannot be a file is refused before anything is written") {
  const TemporaryFolder folder;
  CHECK(mentions(refusal([&] { return AtomicFile(folder.path("none/out")).size(); }), "cannot be written",
                 "none/out"));
  CHECK(mentions(refusal([&] { return AtomicFile(folder.path("")).size(); }), "is a folder"));
  std::filesystem::create_symlink("nowhere", folder.path("dangling"));
  CHECK(mentions(refusal([&] { return AtomicFile(folder.path("dangling")).size(); }), "leads nowhere"));
}

}  // namespace
}  // namespace mica::test
