// SPDX-License-Identifier: Apache-2.0

#include "mica/io/file.hpp"

#include "io/temporary_folder.hpp"

#include <sys/stat.h>

namespace mica::test::file_test {
namespace {

using io::File;

TEST_CASE("any range of a file is read, and the place of one read does not matter to the next") {
  const TemporaryFolder folder;
  const auto bytes = numbered_bytes(10'007);
  const File file = File::open(folder.file("numbers", bytes));
  CHECK(file.size() == bytes.size());
  for (const std::size_t offset :
       {std::size_t{5000}, std::size_t{0}, std::size_t{10'006}, std::size_t{10'007}}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{4097}}) {
      const std::size_t n = std::min(count, bytes.size() - offset);
      std::vector<std::byte> got(n);
      file.read_at(offset, got);
      CHECK(std::equal(got.begin(), got.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
  }
}

TEST_CASE("a read past the end names the file and the byte where it ends") {
  const TemporaryFolder folder;
  const File file = File::open(folder.file("short", "ten bytes!"));
  std::vector<std::byte> got(4);
  const Error error = refusal([&] {
    file.read_at(8, got);
    return 0;
  });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, "short", "truncated", "byte 10", "2 of 4"));
}

TEST_CASE("a missing file is refused with the folder it was looked for in and the nearest name") {
  const TemporaryFolder folder;
  folder.file("stories260K.gguf", "x");
  folder.file("other.txt", "x");
  CHECK(mentions(refusal([&] { return File::open(folder.path("storeis260k.gguf")); }), "no such file",
                 "did you mean stories260K.gguf?"));
  CHECK(mentions(refusal([&] { return File::open(folder.path("stories260K")); }),
                 "did you mean stories260K.gguf?"));
  CHECK(mentions(refusal([] { return File::open(""); }), "its path is empty"));
  const Error far = refusal([&] { return File::open(folder.path("llama-70b.gguf")); });
  CHECK(far.code() == ErrorCode::file);
  CHECK(far.message().find("did you mean") == std::string::npos);
  CHECK(mentions(refusal([] { return File::open("no-such-file-anywhere"); }), "current folder",
                 std::filesystem::current_path().string()));
}

TEST_CASE("an error text shows a path without its control characters, and no more of it than anybody reads") {
  const auto message = [](const std::string& path) {
    try {
      static_cast<void>(io::File::open(path));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("opened");
  };
  CHECK(message("/nowhere/\x1b[2J\n\xC2\233b\xE2\x80\xAE\xC3\xA4") ==
        "/nowhere/\\x1b[2J\\x0a\\xc2\\x9bb\\xe2\\x80\\xae\xC3\xA4: no such file");
  std::string deep = "/nowhere/";
  while (deep.size() < 3000) deep += "xxx/";
  const std::string longest = message(deep + "end");
  CHECK(longest.size() < 600);
  CHECK(longest.ends_with("xxx/end: no such file"));
  const TemporaryFolder folder;
  const std::string path = folder.file("model", "x");
  CHECK(message(path + std::string("\0.gguf", 6))
            .ends_with("model\\x00.gguf: a name with a zero byte, behind which no system reads on"));
}

TEST_CASE("what is not a regular file is refused at once, a pipe without a writer too") {
  const TemporaryFolder folder;
  CHECK(mentions(refusal([&] { return File::open(folder.path("")); }), "is a folder"));
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK(mentions(refusal([&] { return File::open(folder.path("pipe")); }), "not a regular file"));
  const std::string below = folder.file("plain", "x") + "/below";
  CHECK(mentions(refusal([&] { return File::open(below); }), "no such file"));
}

TEST_CASE("a file without read permission is refused with the system's reason") {
  const TemporaryFolder folder;
  const std::string path = folder.file("locked", "x");
  REQUIRE(::chmod(path.c_str(), 0) == 0);
  if (::geteuid() == 0) return;  // the superuser reads everything
  CHECK(mentions(refusal([&] { return File::open(path); }), "cannot be opened", "ermission"));
}

TEST_CASE("a file that was cut or written to since it was opened says so") {
  const TemporaryFolder folder;
  const std::string path = folder.file("model", "0123456789");
  const File file = File::open(path);
  file.check_unchanged();
  std::filesystem::resize_file(path, 6);
  const Error error = refusal([&] {
    file.check_unchanged();
    return 0;
  });
  CHECK(mentions(error, "changed while in use", "10 bytes when opened", "6 now"));
}

TEST_CASE("a file that was replaced by another of the same name is still the one that was opened") {
  const TemporaryFolder folder;
  const std::string path = folder.file("model", "old");
  const File file = File::open(path);
  std::filesystem::rename(folder.file("next", "new"), path);
  file.check_unchanged();
  std::array<std::byte, 3> got;
  file.read_at(0, got);
  CHECK(got[0] == std::byte{'o'});
  CHECK(File::open(path).identity() != file.identity());
}

TEST_CASE("a moved File reads on") {
  const TemporaryFolder folder;
  File first = File::open(folder.file("a", "abc"));
  File second = std::move(first);
  std::array<std::byte, 3> got;
  second.read_at(0, got);
  CHECK(got[2] == std::byte{'c'});
}

}  // namespace
}  // namespace mica::test::file_test
