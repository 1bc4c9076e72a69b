// SPDX-License-Identifier: Apache-2.0
//
// Indexes as files: round trips, updates, damage.

#include "io/temporary_folder.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica_tools/search/nearest.hpp"
#include "mica_tools/search/update_index.hpp"
#include "sanitized.hpp"
#include "search/fake_index.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>
#include <sys/resource.h>

namespace mica::test::search_index_test {
namespace {

using search::IndexReader;

/// A folder of three texts, a binary file, and what a search leaves out.
struct Texts {
  TemporaryFolder folder;
  TemporaryFolder elsewhere;
  std::string root = folder.path("texts"), index = elsewhere.path("index");

  Texts() {
    std::filesystem::create_directories(root + "/below/.hidden");
    folder.file("texts/a.txt", std::string_view("a cat sat\n\nan owl flew by\n"));
    folder.file("texts/below/b.md", std::string_view("# Ice\nit is ice\n# Up\nup up\n"));
    folder.file("texts/c.bin", std::string_view("a\0b", 3));
    folder.file("texts/empty", std::string_view());
    folder.file("texts/.secret", std::string_view("secret"));
    folder.file("texts/below/.hidden/d.txt", std::string_view("hidden"));
    std::filesystem::create_symlink(root + "/a.txt", root + "/link.txt");
  }
};

std::vector<std::byte> rows_of(const IndexReader& index) {
  std::vector<std::byte> all;
  index.for_each_slice([&](std::size_t, auto rows) { all.insert(all.end(), rows.begin(), rows.end()); });
  return all;
}

/// All that an index has, read in every way.
void read_whole(const std::string& path) {
  const IndexReader index(path);
  static_cast<void>(rows_of(index));
}

std::vector<std::string> paths_of(const IndexReader& index) {
  std::vector<std::string> paths;
  for (const auto& file : index.files()) paths.push_back(file.state.path);
  return paths;
}

}  // namespace

TEST_CASE("an index has the passages of all texts, and no hidden files, links and empty files") {
  const Texts t;
  FakeModel model;
  CHECK(update(t.root, t.index, model));
  const IndexReader index(t.index);
  CHECK(index.info() == fake_info());
  search::IndexInfo other = fake_info();
  other.model = 8;
  CHECK_FALSE(index.info() == other);
  CHECK_FALSE(index.info() == fake_info(format::Q8_0::id));
  CHECK(paths_of(index) == std::vector<std::string>{"a.txt", "below/b.md", "c.bin"});
  CHECK(index.passages() == 4);
  CHECK(index.files()[0].passages == std::vector<search::Passage>{{0, 9, 1, 1}, {11, 14, 3, 3}});
  CHECK(index.files()[1].passages == std::vector<search::Passage>{{0, 15, 1, 2}, {16, 10, 3, 4}});
  CHECK(index.files()[2].passages.empty());
  const auto rows = rows_of(index);
  const auto expected =
      fake_rows(std::vector<std::string>{"a cat sat", "an owl flew by", "# Ice\nit is ice", "# Up\nup up"});
  REQUIRE(rows.size() == expected.size() * sizeof(float));
  CHECK(std::memcmp(rows.data(), expected.data(), rows.size()) == 0);
  const auto mode = std::filesystem::status(t.index).permissions();
  CHECK((mode & (std::filesystem::perms::group_all | std::filesystem::perms::others_all)) ==
        std::filesystem::perms::none);
}

TEST_CASE("the nearest passages are those with the largest products, in both formats") {
  const Texts t;
  for (const format::Id format : {format::F32::id, format::Q8_0::id}) {
    FakeModel model;
    CHECK(update(t.root, t.index, model, nullptr, format));
    const IndexReader index(t.index);
    const std::vector<float> query = {0, 0, 1, 0, 0.5f};  // i, and u by half
    const auto scores = search::similarities<kernel::Scalar>(index, query);
    const std::vector<float> expected = {0, 0, 3, 1};
    REQUIRE(scores.size() == expected.size());
    for (std::size_t i = 0; i < scores.size(); ++i) CHECK(std::fabs(scores[i] - expected[i]) < 0.02f);
    const auto best = search::best_of(scores, 2);
    REQUIRE(best.size() == 2);
    CHECK(best[0].passage == 2);
    CHECK(best[1].passage == 3);
  }
}

TEST_CASE("of equal scores the first passage is better, and a score that is no number is the worst") {
  const float none = std::nanf("");
  const std::vector<float> scores = {1, none, 2, 1, none};
  std::vector<std::size_t> order;
  for (const search::Match& match : search::best_of(scores, 9)) order.push_back(match.passage);
  CHECK(order == std::vector<std::size_t>{2, 0, 3, 1, 4});
  CHECK(search::best_of({}, 3).empty());
}

TEST_CASE("an update embeds what changed, and copies the rest") {
  const Texts t;
  FakeModel model;
  CHECK(update(t.root, t.index, model));
  CHECK(model.texts == 4);
  {
    const IndexReader former(t.index);
    CHECK_FALSE(search::IndexChanges(&former, search::find_files(t.root)).any());
  }
  t.folder.file("texts/below/b.md", std::string_view("# Ice\nno ice here\n"));
  t.folder.file("texts/z.txt", std::string_view("zoo"));
  std::filesystem::remove(t.root + "/c.bin");
  const IndexReader former(t.index);
  const search::IndexChanges changes(&former, search::find_files(t.root));
  CHECK(changes.any());
  CHECK(changes.changed() == 2);
  CHECK(changes.kept() == 1);
  CHECK(changes.bytes() == 18 + 3);
  CHECK(update(t.root, t.index, model, &former));
  CHECK(model.texts == 6);
  const IndexReader index(t.index);
  CHECK(paths_of(index) == std::vector<std::string>{"a.txt", "below/b.md", "z.txt"});
  FakeModel other;
  const std::string whole = t.elsewhere.path("whole");
  CHECK(update(t.root, whole, other));
  CHECK(contents(whole) == contents(t.index));
}

TEST_CASE("a file whose time of change is another is embedded again, and one that is gone is left out") {
  const Texts t;
  FakeModel model;
  CHECK(update(t.root, t.index, model));
  const IndexReader former(t.index);
  std::filesystem::last_write_time(t.root + "/a.txt",
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(10));
  CHECK(search::IndexChanges(&former, search::find_files(t.root)).changed() == 1);
  std::filesystem::remove(t.root + "/a.txt");
  const search::IndexChanges removed(&former, search::find_files(t.root));
  CHECK(removed.any());
  CHECK(removed.changed() == 0);
  CHECK(removed.kept() == 2);
}

TEST_CASE(
    "an update that is ended leaves an index of the files that are complete, and the next one goes on") {
  const Texts t;
  FakeModel all;
  CHECK(update(t.root, t.elsewhere.path("whole"), all));
  for (std::size_t stop = 0; stop < 4; ++stop) {
    CAPTURE(stop);
    std::filesystem::remove(t.index);
    FakeModel model{.stop_after = stop};
    const bool whole = update(t.root, t.index, model);
    read_whole(t.index);
    const IndexReader part(t.index);
    CHECK(whole == (stop >= 2));
    FakeModel rest;
    CHECK(update(t.root, t.index, rest, &part));
    CHECK(rest.texts + part.passages() == 4);
    CHECK(contents(t.index) == contents(t.elsewhere.path("whole")));
  }
}

TEST_CASE("a process that can open no further files has no text, and says so") {
  TemporaryFolder folder;
  folder.file("a.txt", std::string_view("text"));
  CHECK(search::read_text_file(folder.path("a.txt")) == "text");
  CHECK(!search::read_text_file(folder.path("b.txt")));
  if (sanitized) return;  // it opens a pipe to look at memory
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const ::rlimit none{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const Error error = refusal([&] { static_cast<void>(search::read_text_file(folder.path("a.txt"))); });
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(error.code() == ErrorCode::failed);
}

TEST_CASE("a writer that is not committed leaves nothing") {
  const Texts t;
  { const search::IndexWriter out(t.index, fake_info()); }
  CHECK(t.elsewhere.entries() == 0);
}

TEST_CASE("an index without files is an index") {
  const Texts t;
  std::filesystem::create_directory(t.folder.path("nothing"));
  FakeModel model;
  CHECK(update(t.folder.path("nothing"), t.index, model));
  const IndexReader index(t.index);
  CHECK(index.passages() == 0);
  CHECK(search::similarities<kernel::Scalar>(index, std::vector<float>(fake_width)).empty());
  CHECK(mentions(refusal([&] { return search::find_files(t.folder.path("none")); }), "no such folder"));
  CHECK(mentions(refusal([&] { return search::find_files(t.root + "/a.txt"); }), "a folder is needed"));
}

TEST_CASE("every damaged byte and every cut of an index is refused") {
  const Texts t;
  for (const format::Id format : {format::F32::id, format::Q8_0::id}) {
    FakeModel model;
    CHECK(update(t.root, t.index, model, nullptr, format));
    const std::string good = contents(t.index);
    read_whole(t.index);
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1 << i % 8);
      try {
        read_whole(t.elsewhere.file("bad", bad));
        ++accepted;
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::file);
      }
      const std::string path = t.elsewhere.file("bad", std::string_view(good).substr(0, i));
      CHECK(refusal([&] {
              read_whole(path);
              return 0;
            }).code() == ErrorCode::file);
    }
    CHECK(accepted == 0);
    const std::string path = t.elsewhere.file("bad", good + '\0');
    CHECK(mentions(refusal([&] {
                     read_whole(path);
                     return 0;
                   }),
                   "damaged"));
  }
}

TEST_CASE("an index of another version, and numbers that do not fit, are refused with right checksums") {
  const Texts t;
  FakeModel model;
  CHECK(update(t.root, t.index, model));
  const std::string good = contents(t.index);
  const auto head_sum = [](std::string& bytes) {
    const std::uint64_t sum = io::checksum(bytes_of(bytes.data(), 56));
    std::memcpy(bytes.data() + 56, &sum, 8);
  };
  std::string later = good;
  later[8] = 2;
  head_sum(later);
  const Error version = refusal([&] { return IndexReader(t.elsewhere.file("bad", later)).passages(); });
  CHECK(version.code() == ErrorCode::unsupported);
  CHECK(mentions(version, "version 2", "version 1"));

  // Each number of the description, huge, with checksums that fit.
  search::detail::IndexTail tail;
  std::memcpy(&tail, good.data() + good.size() - sizeof tail, sizeof tail);
  const std::size_t begin = good.size() - sizeof tail - tail.description_bytes;
  std::size_t refused = 0;
  for (std::size_t at = begin; at + 8 <= good.size() - sizeof tail; ++at) {
    std::string bad = good;
    std::fill_n(bad.begin() + static_cast<std::ptrdiff_t>(at), 8, '\x7F');
    tail.description = io::checksum(bytes_of(bad.data() + begin, tail.description_bytes));
    tail.sum = io::checksum(bytes_of(&tail, 1).first(sizeof tail - 8));
    std::memcpy(bad.data() + bad.size() - sizeof tail, &tail, sizeof tail);
    try {
      read_whole(t.elsewhere.file("bad", bad));
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 100);

  std::memcpy(&tail, good.data() + good.size() - sizeof tail, sizeof tail);
  tail.passages += 1;
  tail.sum = io::checksum(bytes_of(&tail, 1).first(sizeof tail - 8));
  std::string other = good;
  std::memcpy(other.data() + other.size() - sizeof tail, &tail, sizeof tail);
  const Error count = refusal([&] { return IndexReader(t.elsewhere.file("bad", other)).passages(); });
  CHECK(count.code() == ErrorCode::file);
  CHECK(mentions(count, "4 passages of 20 bytes, where 5 and 128 bytes are written"));
}

}  // namespace mica::test::search_index_test
