// SPDX-License-Identifier: Apache-2.0
//
// mica search with a tiny encoder: results, the index from run to run, refusals.

#include "program/program.hpp"
#include "program/word_encoder.hpp"

#ifdef MICA_PROGRAM

#include <filesystem>
#include <sstream>
#include <string>

namespace mica::test::search_test {
namespace {

/// A model beside a folder of texts.
struct Notes {
  TemporaryFolder folder;
  std::string model = WordEncoder{}.write(folder.path("words.gguf"));
  std::string root = folder.path("notes"), index = root + "/.mica-index";

  Notes() {
    std::filesystem::create_directories(root + "/weather");
    folder.file("notes/animals.md",
                std::string_view("# cats\n\nThe cats eat fish.\n\n# dog\n\nThe dog sleeps.\n"));
    folder.file("notes/food.txt", std::string_view("One cook, two bread.\nMilk and tea.\n"));
    folder.file("notes/weather/snow.txt", std::string_view("Snow on the road, rain in the cloud."));
    folder.file("notes/.hidden", std::string_view("cats cats cats"));
  }
  [[nodiscard]] Words words(const Words& more) const { return Words{"search", model, root} + more; }
};

std::string said(const Words& words) {
  const Ran ran = mica(words);
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return ran.out;
}

Ran refused(const Words& words, int code) {
  Ran ran = mica(words);
  CHECK(ran.code == code);
  CHECK(ran.out.empty());
  return ran;
}

}  // namespace

TEST_CASE("the passage that shares its words with the query is the first, with its place") {
  const Notes n;
  const std::string cats = said(n.words({"do", "cats", "eat?", "--top", "1"}));
  CHECK(has(cats, "notes/animals.md:1-3  # cats\n"));
  CHECK(std::count(cats.begin(), cats.end(), '\n') == 1);
  CHECK(has(said(n.words({"tea and milk", "--top", "1"})), "notes/food.txt:1-2  One cook, two bread.\n"));
  CHECK(has(said(n.words({"-p", "rain", "--top", "1"})), "notes/weather/snow.txt:1-1  Snow on the road"));
  CHECK(said(n.words({"rain"})).find("hidden") == std::string::npos);
  const std::string whole = said(n.words({"the dog", "--top", "1", "--context"}));
  CHECK(has(whole, "animals.md:5-7  # dog\n    # dog\n    \n    The dog sleeps.\n\n"));
}

TEST_CASE("JSON has scores, paths, lines and texts") {
  const Notes n;
  const std::string json = said(n.words({"the dog", "--top", "2", "--json"}));
  CHECK(json.starts_with("{\"results\":[{\"score\":"));
  CHECK(has(
      json,
      "animals.md\",\"first_line\":5,\"last_line\":7,\"text\":\"# dog\\n\\nThe dog sleeps.\"},{\"score\":"));
  CHECK(json.ends_with("],\"files\":3,\"passages\":4}\n"));
  const std::string lines = said(n.words({"the dog", "--jsonl"}));
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);
  CHECK(lines.starts_with("{\"score\":"));
}

TEST_CASE("a second search embeds what changed, and nothing if nothing did") {
  const Notes n;
  CHECK(has(mica(n.words({"cats"})).err, "3 files embedded, 0 unchanged"));
  const std::string before = contents(n.index);
  CHECK(mica(n.words({"cats"})).err.find("embedded") == std::string::npos);
  CHECK(contents(n.index) == before);
  n.folder.file("notes/food.txt", std::string_view("the train, the ticket\n"));
  std::filesystem::remove(n.root + "/animals.md");
  const Ran ran = mica(n.words({"a train", "--top", "1"}));
  CHECK(has(ran.err, "1 files embedded, 1 unchanged"));
  CHECK(has(ran.out, "food.txt:1-1  the train, the ticket\n"));
  CHECK(said(n.words({"cats"})).find("animals") == std::string::npos);
  CHECK(has(mica(n.words({"cats", "--rebuild"})).err, "2 files embedded, 0 unchanged"));
}

TEST_CASE("without a query the index is made, and what it was made with need not be said again") {
  const Notes n;
  const std::string index = n.folder.path("elsewhere");
  CHECK(said(n.words({"--index", index, "--index-type", "q8_0", "--dims", "32", "--passage-tokens", "12",
                      "--pooling", "cls"}))
            .empty());
  CHECK_FALSE(std::filesystem::exists(n.index));
  const Ran ran = mica(n.words({"cats", "--index", index}));
  CHECK(ran.code == 0);
  CHECK(ran.err.find("embedded") == std::string::npos);
  CHECK(has(refused(n.words({"cats", "--index", index, "--dims", "16"}), 2).err, "--dims 32, now it is 16"));
  CHECK(has(refused(n.words({"cats", "--index", index, "--index-type", "f32"}), 2).err,
            "--index-type q8_0, now it is f32"));
  CHECK(has(refused(n.words({"cats", "--index", index, "--passage-tokens", "11"}), 2).err,
            "--passage-tokens 12"));
  CHECK(has(refused(n.words({"cats", "--index", index, "--pooling", "mean"}), 2).err, "--pooling cls"));
  CHECK(mica(n.words({"cats", "--index", index, "--pooling", "mean", "--rebuild"})).code == 0);
}

TEST_CASE("both types of an index find the same passages") {
  const Notes n;
  const auto places = [](const std::string& text) {
    std::istringstream lines(text);
    std::string all;
    for (std::string line; std::getline(lines, line);) all += line.substr(9) + "\n";
    return all;
  };
  const std::string f32 = said(n.words({"cats eat"}));
  const std::string q8 = said(n.words({"cats eat", "--index-type", "q8_0", "--index", n.folder.path("q8")}));
  CHECK(places(f32) == places(q8));
  CHECK(std::filesystem::file_size(n.folder.path("q8")) < std::filesystem::file_size(n.index));
}

TEST_CASE("an index of another model, a damaged one and a file that is none are refused") {
  const Notes n;
  said(n.words({}));
  const std::string other = WordEncoder{.seed = 2}.write(n.folder.path("other.gguf"));
  CHECK(has(refused({"search", other, n.root, "cats"}, 2).err, "was made with another model"));
  const std::string prefixed = WordEncoder{.document_prefix = "a "}.write(n.folder.path("prefixed.gguf"));
  CHECK(has(refused({"search", prefixed, n.root, "cats"}, 2).err, "the prefix"));
  std::string bytes = contents(n.index);
  bytes[100] ^= 1;  // a row
  n.folder.file("notes/.mica-index", bytes);
  CHECK(has(refused(n.words({"cats"}), 3).err, "the rows are damaged"));
  CHECK(has(refused(n.words({"cats", "--index", n.root + "/food.txt"}), 3).err, "is no index"));
  CHECK(has(refused(n.words({"cats", "--index", n.root + "/food.txt", "--rebuild"}), 3).err, "is no index"));
  CHECK(contents(n.root + "/food.txt").starts_with("One cook"));
  CHECK(mica(n.words({"cats", "--rebuild"})).code == 0);
}

TEST_CASE("a reranker orders the passages that were found") {
  const Notes n;
  const std::string reranker = WordEncoder{.ranks = true}.write(n.folder.path("ranks.gguf"));
  const std::string found = said(n.words({"cats", "--rerank", reranker, "--jsonl"}));
  CHECK(std::count(found.begin(), found.end(), '\n') == 4);
  const std::string documents =
      said({"rerank", reranker, "-p", "cats", "--jsonl", "# cats\n\nThe cats eat fish."});
  const std::string score = documents.substr(documents.find("\"score\":"),
                                             documents.find(",\"text\"") - documents.find("\"score\":"));
  CHECK(has(found, score));
  CHECK(has(refused({"search", reranker, n.root, "cats"}, 2).err, "--rerank"));
  const std::string encoder = WordEncoder{}.write(n.folder.path("words.gguf"));
  CHECK(has(refused(n.words({"cats", "--rerank", encoder}), 2).err, "is no reranker"));
}

TEST_CASE("a folder without texts, a folder that is missing, and passages that are too long") {
  const Notes n;
  std::filesystem::create_directory(n.folder.path("nothing"));
  const Ran ran = mica({"search", n.model, n.folder.path("nothing"), "cats"});
  CHECK(ran.code == 0);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "has no texts"));
  CHECK(has(refused({"search", n.model, n.folder.path("none"), "cats"}, 3).err, "no such folder"));
  CHECK(has(refused({"search", n.model}, 2).err, "FOLDER QUERY"));
  CHECK(has(refused(n.words({"cats", "--passage-tokens", "65"}), 2).err, "64"));
}

TEST_CASE("an interrupt leaves an index with the files that are complete, and the next run goes on") {
  const Notes n;
  for (int i = 0; i < 1500; ++i) {
    std::string text;
    for (int k = 0; k < 40; ++k) text += "the cats eat fish and the dog sleeps on the road. ";
    n.folder.file(join("notes/", i, ".txt"), text);
  }
  const Ran ran = ProgramRun(MICA_PROGRAM, n.words({"cats"})).interrupt_after(400'000).run();
  if (ran.code == 0) return;  // a machine that is done by then
  CHECK(ran.code == 130);
  CHECK(ran.out.empty());
  if (!std::filesystem::exists(n.index)) return;  // the model was still loading
  CHECK(has(ran.err, "the same command continues"));
  const Ran next = mica(n.words({"snow", "--top", "1"}));
  CHECK(next.code == 0);
  CHECK(next.err.find(" 0 unchanged") == std::string::npos);
}

}  // namespace mica::test::search_test

#endif
