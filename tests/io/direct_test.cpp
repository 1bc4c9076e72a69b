// SPDX-License-Identifier: Apache-2.0

#include "mica/io/direct.hpp"

#include "io/temporary_folder.hpp"

namespace mica::test::direct_test {
namespace {

using io::DirectReader;

/// Memory whose first byte lies `skew` bytes after an aligned address, with guards on both sides.
class SkewedMemory {
 public:
  SkewedMemory(std::size_t n, std::size_t skew) : bytes_(n + skew + 3 * DirectReader::alignment, guard) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    const auto start = round_up(address + 1, std::uintptr_t{DirectReader::alignment}) - address + skew;
    part_ = std::span(bytes_).subspan(start, n);
  }
  [[nodiscard]] std::span<std::byte> part() const { return part_; }
  [[nodiscard]] bool guards_intact() const {
    const auto begin = static_cast<std::size_t>(part_.data() - bytes_.data());
    const auto is_guard = [](std::byte b) { return b == guard; };
    return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(begin), is_guard) &&
           std::all_of(bytes_.begin() + static_cast<std::ptrdiff_t>(begin + part_.size()), bytes_.end(),
                       is_guard);
  }

 private:
  static constexpr std::byte guard{0xA5};
  std::vector<std::byte> bytes_;
  std::span<std::byte> part_;
};

void check_ranges(const DirectReader& reader, std::span<const std::byte> bytes, std::size_t bounce_bytes) {
  std::vector<std::byte> bounce(bounce_bytes);
  for (const std::size_t offset : {0u, 1u, 511u, 4095u, 4096u, 4097u, 12'288u, 69'000u}) {
    for (const std::size_t count : {0u, 1u, 513u, 4096u, 8191u, 8192u, 33'333u, 1'000'000u}) {
      const std::size_t n = std::min(count, bytes.size() - offset);
      for (const std::size_t skew : {std::size_t{0}, std::size_t{1}, offset % 4096}) {
        const SkewedMemory to(n, skew);
        reader.read(offset, to.part(), bounce);
        CAPTURE(offset);
        CAPTURE(n);
        CAPTURE(skew);
        CHECK(std::ranges::equal(to.part(), bytes.subspan(offset, n)));
        CHECK(to.guards_intact());
      }
    }
  }
}

TEST_CASE("every range of a file arrives whole, at any offset, length and address") {
  const TemporaryFolder folder;
  const auto bytes = numbered_bytes(70'001);
  const io::File file = io::File::open(folder.file("weights", bytes));
  const DirectReader reader(file);
  check_ranges(reader, bytes, DirectReader::min_bounce_bytes);
  check_ranges(reader, bytes, 40'001);
}

TEST_CASE("blocks larger than one request are read in several") {
  const TemporaryFolder folder;
  const auto bytes = numbered_bytes(2 * DirectReader::block_bytes + 12'345);
  const io::File file = io::File::open(folder.file("weights", bytes));
  const DirectReader reader(file);
  std::vector<std::byte> bounce(DirectReader::block_bytes + DirectReader::alignment);
  for (const std::size_t offset : {std::size_t{0}, std::size_t{100}}) {
    const SkewedMemory to(bytes.size() - offset, 0);
    reader.read(offset, to.part(), bounce);
    CHECK(std::ranges::equal(to.part(), std::span(bytes).subspan(offset)));
  }
}

TEST_CASE("a direct read past the end names the file and the byte where it ends") {
  const TemporaryFolder folder;
  const io::File file = io::File::open(folder.file("weights", numbered_bytes(10'000)));
  const DirectReader reader(file);
  std::vector<std::byte> bounce(64 << 10);
  for (const std::size_t offset :
       {std::size_t{0}, std::size_t{9'999}, std::size_t{10'000}, std::size_t{50'000}}) {
    const SkewedMemory to(20'000, 0);
    const Error error = refusal([&] {
      reader.read(offset, to.part(), bounce);
      return 0;
    });
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "weights", "truncated"));
  }
}

TEST_CASE("where direct reads are refused the reader says so once and reads the same bytes") {
  struct Log {
    int lines = 0;
    std::string last;
  } log;
  const LogSink sink{[](void* context, LogLevel, std::string_view message) {
                       auto& seen = *static_cast<Log*>(context);
                       ++seen.lines;
                       seen.last = message;
                     },
                     &log};
  const io::File proc = io::File::open("/proc/self/cmdline");  // a file system without direct reads
  const DirectReader reader(proc, sink);
  std::vector<std::byte> bounce(DirectReader::min_bounce_bytes);
  std::array<std::byte, 4> direct;
  std::array<std::byte, 4> buffered;
  reader.read(0, direct, bounce);
  reader.read(0, direct, bounce);
  proc.read_at(0, buffered);
  CHECK(direct == buffered);
  CHECK(!reader.direct());
  CHECK(log.lines == 1);
  CHECK(log.last.find("direct reads are refused") != std::string::npos);
}

TEST_CASE("a bounce buffer that cannot hold an aligned block is the caller's mistake") {
  const TemporaryFolder folder;
  const io::File file = io::File::open(folder.file("weights", "x"));
  const DirectReader reader(file);
  std::array<std::byte, 4096> bounce;
  std::array<std::byte, 1> to;
  const Error error = refusal([&] {
    reader.read(0, to, bounce);
    return 0;
  });
  CHECK(error.code() == ErrorCode::usage);
  CHECK(mentions(error, "4096", "8192"));
}

TEST_CASE("a reader does not open another file that took the name") {
  const TemporaryFolder folder;
  const std::string path = folder.file("weights", "old");
  const io::File file = io::File::open(path);
  std::filesystem::rename(folder.file("next", "new"), path);
  CHECK(mentions(refusal([&] { return DirectReader(file).direct(); }), "replaced or changed"));
}

}  // namespace
}  // namespace mica::test::direct_test
