// SPDX-License-Identifier: Apache-2.0

#include "mica/io/atomic_file.hpp"

#include "io/temporary_folder.hpp"
#include "shared.hpp"

#include <initializer_list>
#include <stdexcept>
#include <sys/wait.h>

namespace mica::test::atomic_file_test {
namespace {

using io::AtomicFile;

/// Mode, owner and group of a file that is there.
struct ::stat status_of(const std::string& path) {
  struct ::stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status;
}

void overwrite(const std::string& path) {
  io::write_atomically(path, [](AtomicFile& out) { out.write("new"); });
  CHECK(contents(path) == "new");
}

/// The umask of a test, for as long as this lives.
class Umask {
 public:
  explicit Umask(::mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  ::mode_t before_;
};

/// A process that begins to write a file; it waits there until this ends it.
class Writer {
 public:
  explicit Writer(const std::string& path) {
    int begun[2];
    REQUIRE(::pipe(begun) == 0);
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      AtomicFile out(path);
      out.write("half");
      static_cast<void>(::write(begun[1], "x", 1));
      ::close(begun[0]);
      while (true) ::pause();
    }
    char byte = 0;
    CHECK(::read(begun[0], &byte, 1) == 1);
    ::close(begun[0]);
    ::close(begun[1]);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { kill(); }

  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(std::exchange(child_, -1), nullptr, 0);
  }
  [[nodiscard]] ::pid_t process() const { return child_; }

 private:
  ::pid_t child_ = -1;
};

/// The number of a process that has ended.
::pid_t dead_process() {
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

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

TEST_CASE("a file that is replaced keeps its mode, and is private until then") {
  const TemporaryFolder folder;
  const Umask mask(022);
  const std::string path = folder.file("out", "old");
  for (const ::mode_t mode : std::initializer_list<::mode_t>{0600, 0640, 0664, 0444, 0777}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    AtomicFile out(path);
    CHECK((status_of(folder.path(join(".out.", ::getpid(), "-0.part"))).st_mode & 0777) == 0600);
    out.commit();
    CHECK((status_of(path).st_mode & 0777) == mode);
  }
}

TEST_CASE("a new file has the mode of the umask, or is its owner's alone") {
  const TemporaryFolder folder;
  const Umask mask(027);
  overwrite(folder.path("shared"));
  CHECK((status_of(folder.path("shared")).st_mode & 0777) == 0640);
  AtomicFile out(folder.path("private"), io::Access::owner);
  out.commit();
  CHECK((status_of(folder.path("private")).st_mode & 0777) == 0600);
}

TEST_CASE("a file that is replaced keeps its owner, or loses what its group may do") {
  const TemporaryFolder folder;
  const std::string path = folder.file("out", "old");
  if (::chown(path.c_str(), 4711, 4712) != 0) {
    skipped("files of other owners", "only root gives files away");
    return;
  }
  REQUIRE(::chmod(path.c_str(), 0664) == 0);
  overwrite(path);
  CHECK(status_of(path).st_uid == 4711);
  CHECK(status_of(path).st_gid == 4712);
  CHECK((status_of(path).st_mode & 0777) == 0664);
  std::filesystem::permissions(folder.path(""), std::filesystem::perms::all);
  const ::pid_t other = ::fork();
  REQUIRE(other >= 0);
  if (other == 0) {  // another user, who may not give files away
    const bool became = ::setgid(4800) == 0 && ::setuid(4800) == 0;
    try {
      io::write_atomically(path, [](AtomicFile& out) { out.write("other"); });
    } catch (const Error&) {
      ::_exit(2);
    }
    ::_exit(became ? 0 : 1);
  }
  int ended = 1;
  ::waitpid(other, &ended, 0);
  REQUIRE(ended == 0);
  CHECK(status_of(path).st_uid == 4800);
  CHECK((status_of(path).st_mode & 0777) == 0644);
}

TEST_CASE(
    "the part of a writer that was killed goes with the next writer of that file, and of no other one") {
  const TemporaryFolder folder;
  Writer writer(folder.path("out"));
  CHECK(folder.entries() == 1);
  overwrite(folder.path("out"));  // the writer lives
  CHECK(folder.entries() == 2);
  writer.kill();
  overwrite(folder.path("ou"));
  overwrite(folder.path("out.2"));
  CHECK(folder.entries() == 4);
  overwrite(folder.path("out"));
  CHECK(folder.entries() == 3);
}

TEST_CASE("only an unlocked regular file with the name of a dead writer's part is removed") {
  const TemporaryFolder folder;
  const auto part = [](auto writer, std::string_view attempt) {
    return join(".out.", writer, "-", attempt, ".part");
  };
  const ::pid_t dead = dead_process();
  const std::vector<std::string> others = {part(dead, "x"),
                                           part(dead, ""),
                                           part(dead, "01"),
                                           part(join("0", dead), "0"),
                                           part(-dead, "0"),
                                           part(0, "0"),
                                           part("", "0"),
                                           part("99999999999999999999", "0"),
                                           join(".out.", dead, ".part"),
                                           ".out..part",
                                           part(dead, "0") + ".part",
                                           "out.part",
                                           part(::getppid(), "0"),
                                           join("out.", dead, "-0.part")};
  for (const std::string& name : others) folder.file(name, "kept");
  std::filesystem::create_symlink(folder.file("target", "kept"), folder.path(part(dead, "1")));
  std::filesystem::create_directory(folder.path(part(dead, "2")));
  const std::string locked = folder.file(part(dead, "3"), "another machine's");
  const io::detail::Descriptor lock(::open(locked.c_str(), O_RDWR | O_CLOEXEC));
  REQUIRE(::flock(lock.get(), LOCK_EX) == 0);
  const std::size_t before = folder.entries();
  const std::string collected = folder.file(part(dead, "4"), "half"),
                    own = folder.file(part(::getpid(), "0"), "of a process of another container");
  overwrite(folder.path("out"));
  CHECK(folder.entries() == before + 1);
  CHECK(!std::filesystem::exists(collected));
  CHECK(!std::filesystem::exists(own));
  CHECK(std::filesystem::exists(locked));
  for (const std::string& name : others) CHECK(std::filesystem::exists(folder.path(name)));
}

TEST_CASE("a name as long as a system takes has a part, which goes with the next writer") {
  const TemporaryFolder folder;
  for (const std::string& name : {std::string(255, 'n'), std::string(254, 'n') + "m",
                                  std::string(224, 'n') + "\u00e4" + std::string(29, 'n')}) {
    CAPTURE(name);
    const std::string path = folder.path(name);
    {
      Writer writer(path);
      CHECK(folder.entries() == 1);
      writer.kill();
    }
    overwrite(path);
    CHECK(folder.entries() == 1);
    std::filesystem::remove(path);
  }
}

TEST_CASE("a part that was taken for a dead writer's is left for another one") {
  const TemporaryFolder folder;
  const std::string path = folder.file("part", "");
  const io::detail::Descriptor part(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  {
    const io::detail::Descriptor collector(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::flock(collector.get(), LOCK_EX) == 0);
    CHECK(!io::detail::lock_part(part));
    ::unlink(path.c_str());
  }
  CHECK(!io::detail::lock_part(part));
}

TEST_CASE("a path that cannot be a file is refused before anything is written") {
  const TemporaryFolder folder;
  CHECK(mentions(refusal([&] { return AtomicFile(folder.path("none/out")).size(); }), "cannot be written",
                 "none/out"));
  CHECK(mentions(refusal([&] { return AtomicFile(folder.path("")).size(); }), "is a folder"));
  std::filesystem::create_symlink("nowhere", folder.path("dangling"));
  CHECK(mentions(refusal([&] { return AtomicFile(folder.path("dangling")).size(); }), "leads nowhere"));
  CHECK(mentions(refusal([&] { return AtomicFile("").size(); }), "its path is empty"));
  const std::string victim = folder.file("victim", "kept");
  const Error zero = refusal([&] { return AtomicFile(victim + std::string(1, '\0') + ".new").size(); });
  CHECK(zero.code() == ErrorCode::file);
  CHECK(mentions(zero, "zero byte"));
  CHECK(contents(victim) == "kept");
}

TEST_CASE("texts of users go to no pipe and no device, and none is waited for") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  for (const std::string& path :
       {folder.path("pipe"), std::string("/dev/null"), std::string("/dev/stdout")}) {
    CAPTURE(path);
    const Error error = refusal([&] { return AtomicFile(path, io::Access::owner).size(); });
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "is not a regular file"));
  }
}

}  // namespace
}  // namespace mica::test::atomic_file_test
