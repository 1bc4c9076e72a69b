// SPDX-License-Identifier: Apache-2.0
//
// mica embed and mica rerank with a tiny encoder: rows of texts in every form, and refusals.

#include "program/program.hpp"
#include "program/word_encoder.hpp"

#ifdef MICA_PROGRAM

#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

namespace mica::test::embed_test {
namespace {

struct Models {
  TemporaryFolder folder;
  std::string encoder = WordEncoder{}.write(folder.path("words.gguf"));
  std::string reranker = WordEncoder{.ranks = true}.write(folder.path("ranks.gguf"));
};

std::string said(const Words& words, std::string input = {}) {
  const Ran ran = mica(words, std::move(input));
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  return ran.out;
}

std::vector<std::vector<double>> rows_of(const std::string& text) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    rows.emplace_back();
    for (double x = 0; numbers >> x;) rows.back().push_back(x);
  }
  return rows;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

const Words texts = {"the cats eat fish", "a dog sleeps on the road", "cats and fish"};

}  // namespace

TEST_CASE("each text is a line of numbers, of length 1, and texts with common words are similar") {
  const Models m;
  const auto rows = rows_of(said(Words{"embed", m.encoder} + texts));
  REQUIRE(rows.size() == 3);
  for (const auto& row : rows) {
    CHECK(row.size() == WordEncoder::width);
    CHECK(std::fabs(product(row, row) - 1) < 1e-5);
  }
  CHECK(product(rows[0], rows[2]) > product(rows[0], rows[1]) + 0.1);
  const auto longer = rows_of(said(Words{"embed", m.encoder, "--no-normalize"} + texts));
  CHECK(product(longer[0], longer[0]) > 2);
}

TEST_CASE("a text has the same bits alone, beside others, and for any number of texts in a step") {
  const Models m;
  const std::string all = said(Words{"embed", m.encoder} + texts);
  std::string one_by_one;
  for (const std::string& text : texts) one_by_one += said({"embed", m.encoder, text});
  CHECK(all == one_by_one);
  CHECK(said(Words{"embed", m.encoder, "--texts", "1"} + texts) == all);
  CHECK(said(Words{"embed", m.encoder, "-t", "1", "-b", "7"} + texts) == all);
  CHECK(said({"embed", m.encoder, "--lines", "-"}, texts[0] + "\n" + texts[1] + "\r\n" + texts[2]) == all);
}

TEST_CASE("lines of a file are read block by block, and a mistake in the last one is found before any row") {
  const Models m;
  std::string lines, one;
  for (std::size_t i = 0; i < 700; ++i) lines += texts[i % 3] + (i % 2 == 0 ? "\n" : "\r\n");
  for (const std::string& text : texts) one += said({"embed", m.encoder, text});
  const auto rows = rows_of(one),
             all = rows_of(said({"embed", m.encoder, "--lines", m.folder.file("texts", lines)}));
  REQUIRE(all.size() == 700);
  for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == rows[i % 3]);
  CHECK(rows_of(said({"embed", m.encoder, "--lines", "-"}, lines)) == all);

  std::string tokens;
  for (int i = 0; i < 1000; ++i) tokens += "cats ";
  const Ran longer = mica({"embed", m.encoder, "--lines", m.folder.file("longer", lines + tokens)});
  CHECK(longer.code != 0);
  CHECK(longer.out.empty());
  CHECK(longer.err.find("text 701") != std::string::npos);
  const std::string wide((1 << 20) + 1, ' ');
  const Ran refused =
      mica({"embed", m.encoder, "--lines", m.folder.file("wide", "cats\n" + wide + "\ncats")});
  CHECK(refused.code != 0);
  CHECK(refused.out.empty());
  CHECK(refused.err.find("line 2 has more than 1048576 bytes") != std::string::npos);
  CHECK(rows_of(said({"embed", m.encoder, "--lines", m.folder.file("spaces", "cats" + wide.substr(5))}))
            .size() == 1);
  CHECK(mica({"embed", m.encoder, "--lines", m.folder.file("nothing", "")}).err.find("no texts") !=
        std::string::npos);
}

TEST_CASE("JSON, lines of JSON and a NumPy file have the numbers of the text") {
  const Models m;
  const std::string all = said(Words{"embed", m.encoder} + texts);
  std::string numbers = all.substr(0, all.find('\n'));
  std::replace(numbers.begin(), numbers.end(), ' ', ',');
  const std::string json = said(Words{"embed", m.encoder, "--json"} + texts);
  CHECK(
      json.starts_with("{\"model\":\"words\",\"dims\":48,\"tokens\":19,\"embeddings\":[[" + numbers + "],["));
  const std::string jsonl = said(Words{"embed", m.encoder, "--jsonl"} + texts);
  CHECK(jsonl.starts_with("{\"index\":0,\"tokens\":6,\"embedding\":[" + numbers + "]}\n{\"index\":1,"));
  const std::string file = m.folder.path("rows.npy");
  CHECK(said(Words{"embed", m.encoder, "--npy", file} + texts).empty());
  const std::string npy = contents(file);
  CHECK(npy.starts_with(std::string("\x93NUMPY\x01\x00", 8)));
  CHECK(npy.find("'descr': '<f4', 'fortran_order': False, 'shape': (3, 48)") != std::string::npos);
  const std::size_t bytes = 3 * WordEncoder::width * sizeof(float);
  REQUIRE(npy.size() > bytes);
  CHECK((npy.size() - bytes) % 64 == 0);
  float first = 0;
  std::memcpy(&first, npy.data() + npy.size() - bytes, sizeof first);
  CHECK(first == static_cast<float>(rows_of(all)[0][0]));
}

TEST_CASE("the first numbers of an embedding are of length 1 by themselves, and pooling can be chosen") {
  const Models m;
  const auto whole = rows_of(said({"embed", m.encoder, texts[0]}))[0];
  const auto part = rows_of(said({"embed", m.encoder, texts[0], "--dims", "8"}))[0];
  REQUIRE(part.size() == 8);
  CHECK(std::fabs(product(part, part) - 1) < 1e-5);
  CHECK(std::fabs(part[0] / part[1] - whole[0] / whole[1]) < 1e-4);
  CHECK(said({"embed", m.encoder, texts[0], "--pooling", "mean"}) == said({"embed", m.encoder, texts[0]}));
  CHECK(said({"embed", m.encoder, texts[0], "--pooling", "cls"}) != said({"embed", m.encoder, texts[0]}));
}

TEST_CASE("a prefix of the file stands before documents alone") {
  const TemporaryFolder folder;
  const std::string model = WordEncoder{.document_prefix = "two: "}.write(folder.path("prefix.gguf"));
  const std::string plain = WordEncoder{}.write(folder.path("plain.gguf"));
  CHECK(said({"embed", model, "cats", "--use", "document"}) == said({"embed", plain, "two: cats"}));
  CHECK(said({"embed", model, "cats", "--use", "query"}) == said({"embed", plain, "cats"}));
  CHECK(said({"embed", model, "cats"}) == said({"embed", plain, "cats"}));
}

TEST_CASE("a text that is too long is refused by its number, or truncated when that is asked for") {
  const Models m;
  std::string longest, rest;
  for (std::size_t i = 0; i < WordEncoder::positions - 2; ++i) longest += "cat ";
  const Ran refused = mica({"embed", m.encoder, "dog", longest + "fish"});
  CHECK(refused.code == 6);
  CHECK(has(refused.err, "text 2 is too large: it has 65 tokens, and 64 are read at most"));
  CHECK(said({"embed", m.encoder, "--truncate", longest + "fish"}) == said({"embed", m.encoder, longest}));
}

TEST_CASE("a model that does not embed, no texts, and too many dims are refused") {
  const Models m;
  const auto refusal_of = [](const Words& words, int code) {
    const Ran ran = mica(words);
    CHECK(ran.code == code);
    CHECK(ran.out.empty());
    return ran.err;
  };
  CHECK(has(refusal_of({"embed", m.encoder}, 2), "no texts"));
  CHECK(has(refusal_of({"embed", m.encoder, "cat", "--dims", "49"}, 2), "48"));
  CHECK(has(refusal_of({"embed", m.reranker, "cat"}, 2), "reranker"));
  CHECK(has(refusal_of({"embed", MICA_SOURCE "/examples/models/fairy.gguf", "cat"}, 5),
            "choose mean, cls or last"));
  CHECK(has(refusal_of({"embed", m.encoder, "cat", "--npy", m.encoder}, 2), "another output name"));
  CHECK(has(refusal_of({"embed", m.encoder, "-f", "/proc/self/mem"}, 3), "/proc/self/mem: reading failed"));
  CHECK(said({"embed", MICA_SOURCE "/examples/models/fairy.gguf", "cat", "--pooling", "last"}).size() > 100);
}

TEST_CASE("a plan of a text encoder refuses --parallel above 1") {
  const Models m;
  const Ran ran = mica({"plan", m.encoder, "-np", "4"});
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "leave out --parallel"), ran.err);
  CHECK(mica({"plan", m.encoder, "-np", "1"}).code == 0);
}

TEST_CASE("documents are ordered by their relevance, the best first") {
  const Models m;
  const Words rank = Words{"rerank", m.encoder, "-p", "fish and cats"} + texts;
  const std::string text = said(rank);
  std::istringstream lines(text);
  std::string best, second;
  std::getline(lines, best);
  std::getline(lines, second);
  CHECK(best.ends_with("   3  cats and fish"));
  CHECK(second.ends_with("   1  the cats eat fish"));
  CHECK(said(rank + Words{"--top", "1"}) == best + "\n");
  const std::string json = said(rank + Words{"--json", "--top", "2"});
  CHECK(json.starts_with("{\"results\":[{\"index\":2,\"score\":"));
  CHECK(json.find("},{\"index\":0,\"score\":") != std::string::npos);
  const std::string jsonl = said(rank + Words{"--jsonl"});
  CHECK(std::count(jsonl.begin(), jsonl.end(), '\n') == 3);
  const Words decoder = {"rerank", MICA_SOURCE "/examples/models/fairy.gguf", "-p", "fish", "cats", "dogs"};
  CHECK(mica(decoder).code == 5);
  const std::string pooled = said(decoder + Words{"--pooling", "mean"});
  CHECK(std::count(pooled.begin(), pooled.end(), '\n') == 2);
}

TEST_CASE("a reranker scores pairs: a score does not depend on the other documents") {
  const Models m;
  const Words query = {"rerank", m.reranker, "-p", "cats?", "--jsonl"};
  const std::string all = said(query + texts);
  for (const std::string& text : texts) {
    const std::string one = said(query + Words{text});
    const std::string score = one.substr(one.find("\"score\":"));
    CHECK(all.find(score) != std::string::npos);
  }
  CHECK(mica({"rerank", m.reranker, "cat"}).code == 2);
  CHECK(mica({"rerank", m.reranker, "-p", "cat"}).code == 2);
}

TEST_CASE("an interrupt ends embedding and ranking, and leaves no file") {
  const Models m;
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += "the cats eat fish and the dog sleeps on the road\n";
  const std::string texts = m.folder.file("many.txt", lines), out = m.folder.path("rows.npy");
  for (const Words& words : {Words{"embed", m.encoder, "--lines", texts, "--npy", out},
                             Words{"rerank", m.encoder, "-p", "cats", "--lines", texts}}) {
    const Ran ran = ProgramRun(MICA_PROGRAM, words).interrupt_after(400'000).run();
    if (ran.code == 0) continue;  // a machine that is done by then
    CHECK(ran.code == 130);
    CHECK_FALSE(std::filesystem::exists(out));
  }
}

}  // namespace mica::test::embed_test

#endif
