// SPDX-License-Identifier: Apache-2.0
//
// Names of models, listings of hubs, variants and the folder of models: what needs no network.

#include "io/temporary_folder.hpp"
#include "mica_tools/hub/cache.hpp"
#include "mica_tools/hub/name.hpp"
#include "mica_tools/hub/partial_file.hpp"
#include "mica_tools/hub/published.hpp"
#include "mica_tools/hub/resolve_url.hpp"
#include "mica_tools/hub/unfinished.hpp"
#include "mica_tools/hub/variant.hpp"
#include "mica_tools/remote/token.hpp"
#include "remote/variable.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(MICA_HAS_TEXT)
#include "mica_tools/hub/parse_listing.hpp"
#endif

namespace mica::test::hub_test {
namespace {

const std::string sum_a(64, 'a'), sum_b(64, 'b');
constexpr const char* commit = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* other_commit = "89abcdef0123456789abcdef0123456789abcdef";

TEST_CASE("a name is written in several ways, in any case of its host") {
  for (const char* text : {"hf.co/Org/Repo-GGUF:q4_k_m", "HuggingFace.co/Org/Repo-GGUF:q4_k_m",
                           "hf:Org/Repo-GGUF:q4_k_m", "hf://Org/Repo-GGUF:q4_k_m"}) {
    CAPTURE(text);
    const auto name = hub::parse_name(text);
    REQUIRE(name);
    CHECK(name->repo == "Org/Repo-GGUF");
    CHECK(name->quant == "q4_k_m");
    CHECK(name->text() == "hf.co/Org/Repo-GGUF:q4_k_m");
  }
  for (const char* text : {"https://huggingface.co/Org/Repo", "https://hf.co/Org/Repo/?x=1",
                           "https://hf.co/Org/Repo/tree/main"}) {
    CAPTURE(text);
    REQUIRE(hub::parse_name(text));
    CHECK(hub::parse_name(text)->text() == "hf.co/Org/Repo");
  }
  const auto file = hub::parse_name("https://huggingface.co/o/r/resolve/v1/a/m%20x.gguf?download=true");
  REQUIRE(file);
  CHECK(file->file == "a/m x.gguf");
  CHECK(file->revision == "v1");
  for (const char* text : {"model.gguf", "org/repo", "https://example.org/a/b", "/hf.co/a/b", "./hf.co/a/b"})
    CHECK(!hub::parse_name(text));
}

TEST_CASE("a name that is printed is a name that is read") {
  for (const hub::Name& name :
       {hub::Name{"Org/Repo"}, hub::Name{"Org/Repo", "Q8_0"}, hub::Name{"Org/Repo", "", "m-Q8_0.gguf"},
        hub::Name{"o/r", "", "a/b c.GGUF"}}) {
    CAPTURE(name.text());
    const auto read = hub::parse_name(name.text());
    REQUIRE(read);
    CHECK(read->repo == name.repo);
    CHECK(read->quant == name.quant);
    CHECK(read->file == name.file);
  }
  CHECK(hub::parse_repo("o/r/sub/m.gguf", "-hf").file == "sub/m.gguf");
}

TEST_CASE("names that lead elsewhere are refused") {
  for (const char* text : {"hf.co/",
                           "hf.co/a",
                           "hf.co/a/",
                           "hf.co//b",
                           "hf.co/../b",
                           "hf.co/a/..",
                           "hf.co/a/b/c",
                           "hf.co/a/b/",
                           "hf.co/a/b/../m.gguf",
                           "hf.co/a/b//m.gguf",
                           "hf.co/a/b:Q8_0/m.gguf",
                           "hf.co/a/b--c",
                           "hf.co/a/-b",
                           "hf.co/a/b.",
                           "hf.co/a/b\n",
                           "hf.co/a/b:",
                           "hf.co/a/b:x/y",
                           "hf.co/a/b:..",
                           "hf:a b/c",
                           "https://hf.co/o/r/resolve/main/../../x.gguf",
                           "https://hf.co/o/r/resolve/main/%2e%2e/x.gguf",
                           "https://hf.co/o/r/resolve/main",
                           "https://hf.co/o",
                           "https://hf.co/",
                           "https://hf.co/o/r/wiki/x/y"}) {
    CAPTURE(text);
    CHECK(refusal([&] { return hub::parse_name(text); }).code() == ErrorCode::usage);
  }
}

TEST_CASE("the path of a file leads nowhere else") {
  for (const char* path : {"a.gguf", "Q8_0/a b.gguf", "...gguf", "a/..b"}) CHECK(hub::is_safe_path(path));
  for (const char* path : {"", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\\b", "a\nb", "a\x7F"}) {
    CAPTURE(path);
    CHECK(!hub::is_safe_path(path));
  }
  CHECK(hub::is_safe_path("mod\xC3\xA8le.gguf"));
  CHECK(!hub::is_safe_path("m\xC2\x9B.gguf"));         // a control character of C1
  CHECK(!hub::is_safe_path("m\xE2\x80\xAE.gguf"));     // turns the direction of text
  CHECK(hub::is_safe_path("1/2/3/4/5/6/7/8/m.gguf"));  // as deep as the cache is searched
  CHECK(!hub::is_safe_path("1/2/3/4/5/6/7/8/9/m.gguf"));
  CHECK(!hub::is_safe_path(std::string(201, 'a')));
}

TEST_CASE("a small file is regular, and a pipe without a writer is not waited for") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("ref");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(remote::detail::small_file(pipe).empty());
}

TEST_CASE("a pipe in place of a reference is replaced") {
  const TemporaryFolder folder;
  const hub::Cache cache(folder.path("hub"));
  cache.set_commit("o/r", "main", commit);
  const std::string ref = folder.path("hub/models--o--r/refs/main");
  REQUIRE(std::filesystem::remove(ref));
  REQUIRE(::mkfifo(ref.c_str(), 0600) == 0);
  CHECK(cache.commit_of("o/r", "main").empty());
  cache.set_commit("o/r", "main", other_commit);
  CHECK(cache.commit_of("o/r", "main") == other_commit);
}

TEST_CASE("every short name has a repository that can be written") {
  for (const fit::Row& each : fit::catalogue) {
    CAPTURE(std::string(each.name));
    REQUIRE(hub::find_published(each.name) == &each);
    CHECK(hub::parse_repo(each.gguf, "table").repo == each.gguf);
    CHECK(hub::parse_repo(each.source, "table").repo == each.source);
    CHECK(remote::detail::lower(each.name) == each.name);
    CHECK(hub::parse_short_name(each.name)->repo == each.gguf);
  }
  CHECK(hub::parse_short_name("Qwen2.5-0.5B:Q8_0")->text() == "hf.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q8_0");
  CHECK(hub::parse_short_name("qwen2-0.5b")->repo == "Qwen/Qwen2.5-0.5B-Instruct-GGUF");  // a shape
  CHECK(!hub::parse_short_name("model.gguf"));
  CHECK(!hub::parse_short_name("run"));
  CHECK(hub::near_published("qwen2.5-0.5") == "; did you mean qwen2.5-0.5b?");
}

std::vector<std::string> quants(std::vector<hub::File> files) {
  std::vector<std::string> quants;
  for (const hub::Variant& each : hub::variants_of(files)) quants.push_back(each.quant);
  return quants;
}

TEST_CASE("quantisations are read from file names as makers write them") {
  const std::pair<const char*, const char*> cases[] = {
      {"Qwen3-8B-Q4_K_M.gguf", "Q4_K_M"},
      {"qwen2.5-0.5b-instruct-q4_k_m.gguf", "Q4_K_M"},
      {"Llama-3.2-1B-Instruct-IQ3_XXS.gguf", "IQ3_XXS"},
      {"llama-2-7b-chat.Q5_0.gguf", "Q5_0"},
      {"Phi-3-mini-4k-instruct-fp16.gguf", "FP16"},
      {"Phi-3-mini-4k-instruct-q4.gguf", "Q4"},
      {"gpt-oss-20b-mxfp4.gguf", "MXFP4"},
      {"Qwen3-8B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"model-TQ1_0.GGUF", "TQ1_0"},
      {"Q6_K/model.gguf", "Q6_K"},
      {"plain.gguf", "plain"},
      {"qwen2.gguf", "qwen2"},
  };
  for (const auto& [file, quant] : cases) {
    const auto& the_file = file;
    CAPTURE(the_file);
    CHECK(quants({{file, 1}}) == std::vector<std::string>{quant});
  }
}

TEST_CASE("variants are the largest first, shards are one variant, and companions are none") {
  const std::vector<hub::File> files = {{"m-Q4_0.gguf", 40},
                                        {"m-Q8_0-00002-of-00002.gguf", 30},
                                        {"m-Q8_0-00001-of-00002.gguf", 50},
                                        {"m-Q6_K-00001-of-00002.gguf", 60},  // the second is missing
                                        {"mmproj-m-F16.gguf", 99},
                                        {"imatrix.gguf", 99},
                                        {"README.md", 99}};
  const auto variants = hub::variants_of(files);
  REQUIRE(variants.size() == 2);
  CHECK(variants[0].quant == "Q8_0");
  CHECK(variants[0].bytes == 80);
  CHECK(variants[0].path() == "m-Q8_0-00001-of-00002.gguf");
  CHECK(variants[1].quant == "Q4_0");
  CHECK(hub::find_variant(variants, {"o/r", "q8_0"}) == &variants[0]);
  CHECK(hub::find_variant(variants, {"o/r", "", "m-Q8_0-00002-of-00002.gguf"}) == &variants[0]);
  CHECK(hub::find_variant(variants, {"o/r", "", "m-Q8_0-00001-of-00003.gguf"}) == nullptr);
  CHECK(hub::find_variant(variants, {"o/r"}) == nullptr);
  CHECK(hub::find_variant(variants, {"o/r", "latest"}) == nullptr);
  // A quantisation has several names; the exact one is first.
  const auto experts = hub::variants_of(
      std::vector<hub::File>{{"m-mxfp4.gguf", 5}, {"m-Q4_K_M.gguf", 4}, {"m-Q4_K_S.gguf", 3}});
  REQUIRE(experts.size() == 3);
  CHECK(hub::find_variant(experts, {"o/r", "MXFP4_MOE"}) == &experts[0]);
  CHECK(hub::find_variant(experts, {"o/r", "q4_k"}) == &experts[1]);
  CHECK(hub::find_variant(experts, {"o/r", "Q4_K_S"}) == &experts[2]);
  CHECK(hub::find_variant(experts, {"o/r", "15"}) == nullptr);  // the number of a file type is no name
  const Error unknown = refusal([&] { hub::refuse_unknown(files, {"o/r", "latest"}); });
  CHECK(unknown.code() == ErrorCode::file);
  CHECK(mentions(unknown, "hf.co/o/r:latest", "Q8_0 (80 B)", "Q4_0 (40 B)"));
  const auto twice = hub::variants_of(std::vector<hub::File>{{"a-Q4_0.gguf", 1}, {"b-Q4_0.gguf", 2}});
  const Error ambiguous = refusal([&] { return hub::find_variant(twice, {"o/r", "Q4_0"}); });
  CHECK(mentions(ambiguous, "a-Q4_0.gguf", "b-Q4_0.gguf", "hf.co/o/r/FILE"));
}

TEST_CASE("shards that are missing or listed twice are named, with the way out") {
  const std::vector<hub::File> files = {{"m-Q8_0-00001-of-00002.gguf", 50},
                                        {"m-Q8_0-00002-of-00002.gguf", 30},
                                        {"m-Q6_K-00002-of-00004.gguf", 60},
                                        {"m-Q6_K-00004-of-00004.gguf", 60},
                                        {"m-Q4_0.gguf", 40},
                                        {"m-Q4_0.gguf", 40}};
  const auto refused = [&](std::span<const hub::File> of, const hub::Name& name) {
    const Error error = refusal([&] { hub::refuse_unknown(of, name); });
    CHECK(error.code() == ErrorCode::file);
    return error.message();
  };
  CHECK(hub::variants_of(files).size() == 1);
  CHECK(refused(files, {"o/r", "q6_k"}) ==
        "hf.co/o/r:q6_k: m-Q6_K has 2 of 4 shards; missing: 1, 3; there are: Q8_0 (80 B)");
  CHECK(refused(files, {"o/r", "Q4_0"}) ==
        "hf.co/o/r:Q4_0: m-Q4_0.gguf is listed twice; there are: Q8_0 (80 B)");
  CHECK(refused(files, {"o/r", "", "m-Q6_K-00002-of-00004.gguf"}).find("missing: 1, 3") != std::string::npos);
  CHECK(refused(files, {"o/r", "Q2_K"}) ==
        "hf.co/o/r:Q2_K: there is no quantisation Q2_K; there are: Q8_0 (80 B)");
  CHECK(refused(std::span(files).subspan(2), {"o/r"}) ==
        "hf.co/o/r: m-Q6_K has 2 of 4 shards; missing: 1, 3; m-Q4_0.gguf is listed twice; ask its publisher, "
        "or "
        "name another repository");
  const std::vector<hub::File> many = {{"m-Q6_K-00002-of-99999.gguf", 60}};
  CHECK(refused(many, {"o/r"}).find("has 1 of 99999 shards; missing: 1, 3, 4, 5, 6, 7, 8, 9, ...;") !=
        std::string::npos);
  CHECK(refused({}, {"o/r"}).find("no GGUF model") != std::string::npos);
}

TEST_CASE("the folder of models is where Hugging Face's tools have it") {
  const Variable a("HF_HUB_CACHE", nullptr), b("HF_HOME", nullptr), c("XDG_CACHE_HOME", nullptr),
      d("HOME", "/home/me");
  CHECK(hub::Cache::of_environment().folder() == "/home/me/.cache/huggingface/hub");
  const Variable xdg("XDG_CACHE_HOME", "/x");
  CHECK(hub::Cache::of_environment().folder() == "/x/huggingface/hub");
  const Variable home("HF_HOME", "~/hf");
  CHECK(hub::Cache::of_environment().folder() == "/home/me/hf/hub");
  const Variable cache("HF_HUB_CACHE", "/cache");
  CHECK(hub::Cache::of_environment().folder() == "/cache");
  const hub::Cache at = hub::Cache::of_environment();
  CHECK(at.blob("Org/Repo", "abc") == "/cache/models--Org--Repo/blobs/abc");
}

/// A blob, and its name in a snapshot.
void add_file(const hub::Cache& cache, const char* at, const std::string& path, const std::string& sum,
              std::string_view text) {
  std::filesystem::create_directories(cache.repo_folder("o/r") + "/blobs");
  std::ofstream(cache.blob("o/r", sum)) << text;
  cache.add("o/r", at, {path, text.size(), sum});
}

TEST_CASE("a file of a snapshot is a relative link to its blob, and is found by its commit") {
  const TemporaryFolder folder;
  const hub::Cache cache(folder.path(""));
  add_file(cache, commit, "a-Q4_0.gguf", sum_a, "12345");
  add_file(cache, commit, "sub/b-Q8_0.gguf", sum_b, "123");
  cache.set_commit("o/r", "main", commit);
  namespace fs = std::filesystem;
  CHECK(fs::read_symlink(cache.path("o/r", commit, "a-Q4_0.gguf")) == "../../blobs/" + sum_a);
  CHECK(fs::read_symlink(cache.path("o/r", commit, "sub/b-Q8_0.gguf")) == "../../../blobs/" + sum_b);
  CHECK(contents(cache.path("o/r", commit, "sub/b-Q8_0.gguf")) == "123");
  CHECK(contents(cache.repo_folder("o/r") + "/refs/main") == commit);
  CHECK(cache.commit_of("o/r", "main") == commit);
  CHECK(cache.has("o/r", {"a-Q4_0.gguf", 5, sum_a}));
  CHECK(!cache.has("o/r", {"a-Q4_0.gguf", 6, sum_a}));
  CHECK(cache.repositories() == std::vector<std::string>{"o/r"});
  CHECK(cache.spelled("O/R") == "o/r");
  const auto snapshots = cache.snapshots("o/r", "main");
  REQUIRE(snapshots.size() == 1);
  REQUIRE(snapshots[0].files.size() == 2);
  CHECK(snapshots[0].files[0].sha256 == sum_a);
  CHECK(snapshots[0].files[1].path == "sub/b-Q8_0.gguf");
}

TEST_CASE("removing a model keeps what another snapshot has, and the last one takes the folder with it") {
  const TemporaryFolder folder;
  const hub::Cache cache(folder.path(""));
  add_file(cache, commit, "a.gguf", sum_a, "12345");
  add_file(cache, commit, "b.gguf", sum_b, "123");
  add_file(cache, other_commit, "renamed.gguf", sum_a, "12345");
  std::ofstream(cache.blob("o/r", "of-another-tool")) << "x";
  cache.set_commit("o/r", "main", commit);
  CHECK(cache.remove("o/r", [](const std::string& path) { return path == "a.gguf"; }) == 0);  // still linked
  CHECK(contents(cache.path("o/r", other_commit, "renamed.gguf")) == "12345");
  CHECK(cache.remove("o/r", [](const std::string& path) { return path == "b.gguf"; }) == 3);
  CHECK(cache.commit_of("o/r", "main").empty());  // its snapshot is empty
  CHECK(cache.remove("o/r", [](const std::string& path) { return path == "renamed.gguf"; }) == 5);
  CHECK(std::filesystem::exists(cache.blob("o/r", "of-another-tool")));
  std::filesystem::remove(cache.blob("o/r", "of-another-tool"));
  CHECK(cache.remove("o/r", [](const std::string&) { return true; }) == 0);
  CHECK(!std::filesystem::exists(cache.repo_folder("o/r")));
}

TEST_CASE("files of other tools stay, at any depth, and their folders with them") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const hub::Cache cache(folder.path(""));
  add_file(cache, commit, "a.gguf", sum_a, "12345");
  add_file(cache, other_commit, "a.gguf", sum_a, "12345");
  const std::string root = cache.repo_folder("o/r");
  std::string deep = root + "/snapshots/" + commit;
  for (int i = 0; i < 12; ++i) deep += "/d";
  const std::string record = root + "/.no_exist/x", locks = folder.path(".locks/models--o--r");
  for (const std::string& each :
       {deep, record, locks, root + "/snapshots/" + other_commit + "/1/2/3/4/5/6/7/8/9/10"})
    fs::create_directories(each);
  std::ofstream(deep + "/theirs.bin") << "theirs";
  CHECK(cache.remove("o/r", [](const std::string& path) { return path == "a.gguf"; }) == 5);
  CHECK(contents(deep + "/theirs.bin") == "theirs");
  CHECK(!fs::exists(root + "/snapshots/" + other_commit));  // nothing but empty folders
  fs::remove(deep + "/theirs.bin");
  std::ofstream(record + "/config.json") << "theirs";
  std::ofstream(locks + "/theirs.txt") << "theirs";
  cache.remove("o/r", [](const std::string&) { return true; });
  CHECK(!fs::exists(root + "/snapshots"));
  CHECK(contents(record + "/config.json") == "theirs");
  fs::remove(record + "/config.json");
  std::ofstream(locks + "/" + sum_a + ".lock").flush();
  cache.remove("o/r", [](const std::string&) { return true; });
  CHECK(!fs::exists(root));
  CHECK(!fs::exists(locks + "/" + sum_a + ".lock"));
  CHECK(contents(locks + "/theirs.txt") == "theirs");
}

TEST_CASE("nothing is removed behind a snapshot that is a link") {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const hub::Cache cache(folder.path("hub"));
  add_file(cache, commit, "a.gguf", sum_a, "12345");
  add_file(cache, commit, "b.gguf", sum_b, "123");
  fs::create_directories(folder.path("mine/sub"));
  std::ofstream(folder.path("mine/a.gguf")) << "mine";
  const std::string link = cache.repo_folder("o/r") + "/snapshots/" + other_commit;
  fs::create_directory_symlink(folder.path("mine"), link);
  const auto is = [](const char* name) { return [name](const std::string& path) { return path == name; }; };
  const Error error = refusal([&] { cache.remove("o/r", is("a.gguf")); });
  CHECK(error.code() == ErrorCode::file);
  CHECK(mentions(error, link, "is a link", "remove the link first"));
  CHECK(contents(cache.path("o/r", commit, "a.gguf")) == "12345");
  CHECK(cache.remove("o/r", is("b.gguf")) == 3);
  CHECK(contents(folder.path("mine/a.gguf")) == "mine");
  CHECK(fs::exists(folder.path("mine/sub")));
  CHECK(fs::is_symlink(link));
  fs::remove(link);
  CHECK(cache.remove("o/r", is("a.gguf")) == 5);
  CHECK(!fs::exists(cache.repo_folder("o/r")));
  // The folder of all snapshots
  add_file(cache, commit, "a.gguf", sum_a, "12345");
  fs::rename(cache.repo_folder("o/r") + "/snapshots", folder.path("all"));
  fs::create_directory_symlink(folder.path("all"), cache.repo_folder("o/r") + "/snapshots");
  CHECK(mentions(refusal([&] { cache.remove("o/r", is("a.gguf")); }), "is a link"));
  CHECK(fs::is_symlink(folder.path("all/") + commit + "/a.gguf"));
}

TEST_CASE("notes of pieces count as far as they are whole, and only for the same file") {
  const TemporaryFolder folder;
  const std::string blob = folder.path("sum");
  const std::vector<std::byte> piece(4, std::byte{7});
  {
    hub::PartialFile file(blob, 10, 4, "m-Q8_0.gguf");
    CHECK(file.pieces() == 3);
    CHECK(file.piece_size(2) == 2);
    file.write(1, piece);
    file.note(1);
  }
  std::ofstream(blob + ".mica.pieces", std::ios::app) << "2";  // torn
  {
    const hub::PartialFile file(blob, 10, 4, "m-Q8_0.gguf");
    CHECK(!file.is_finished(0));
    CHECK(file.is_finished(1));
    CHECK(!file.is_finished(2));
  }
  for (const char* damage : {"7\n", "x\n", "99999999999999999999\n", "-1\n"}) {
    std::ofstream(blob + ".mica.pieces", std::ios::app) << damage;
    const hub::PartialFile file(blob, 10, 4, "m-Q8_0.gguf");
    CHECK(file.is_finished(1));
    CHECK(!file.is_finished(2));
  }
  CHECK(!hub::PartialFile(blob, 10, 5, "m-Q8_0.gguf").is_finished(1));  // other pieces: begins
  std::filesystem::resize_file(blob + ".mica.incomplete", 3);
  CHECK(!hub::PartialFile(blob, 10, 5, "m-Q8_0.gguf").is_finished(0));
}

TEST_CASE("a name means the same finished file or unfinished download as pull: exactly, else as a recipe") {
  const std::vector<hub::Unfinished> medium = {{sum_a, "m-Q4_K_M.gguf"}};
  const auto path = [](const std::vector<hub::File>& files, const std::vector<hub::Unfinished>& downloads,
                       const std::string& quant) {
    const auto variant = hub::find_variant_here(files, downloads, {"o/r", quant});
    return variant ? variant->path() : std::string();
  };
  for (const char* quant : {"Q4_K_M", "q4_k_m", "Q4_K", "q4_k"}) {
    CAPTURE(quant);
    CHECK(path({}, medium, quant) == "m-Q4_K_M.gguf");
  }
  CHECK(path({}, medium, "Q4_K_S").empty());
  CHECK(path({}, {{sum_a, "m-MXFP4_MOE.gguf"}}, "MXFP4") == "m-MXFP4_MOE.gguf");
  // A file of exactly that name comes first, finished or not.
  CHECK(path({{"m-Q4_K.gguf"}}, medium, "Q4_K") == "m-Q4_K.gguf");
  CHECK(path({{"m-Q4_K_M.gguf"}}, {{sum_a, "m-Q4_K.gguf"}}, "Q4_K") == "m-Q4_K.gguf");
  CHECK(!medium[0].is_of(*hub::find_variant_here({{"m-Q4_K.gguf"}}, medium, {"o/r", "Q4_K"})));
  // A finished shard and an unfinished one are one variant.
  const std::vector<hub::Unfinished> second = {{sum_a, "m-Q8_0-00002-of-00002.gguf"}};
  const auto both = hub::find_variant_here({{"m-Q8_0-00001-of-00002.gguf"}}, second, {"o/r", "Q8_0"});
  REQUIRE(both);
  CHECK(both->files.size() == 2);
  CHECK(second[0].is_of(*both));
}

TEST_CASE(
    "an unfinished download has the name of its file, and is not removed while a process continues it") {
  const TemporaryFolder folder;
  const hub::Cache cache(folder.path("hub"));
  std::filesystem::create_directories(cache.repo_folder("o/r") + "/blobs");
  const std::string lock = cache.lock("o/r", sum_a);
  std::filesystem::create_directories(std::filesystem::path(lock).parent_path());
  std::ofstream(lock).flush();
  {
    hub::PartialFile file(cache.blob("o/r", sum_a), 100'000, 50'000, "sub/m-Q8_0.gguf");
    file.write(0, std::vector<std::byte>(50'000));
    file.note(0);
  }
  const auto found = hub::unfinished(cache, "o/r");
  REQUIRE(found.size() == 1);
  CHECK(found[0].path == "sub/m-Q8_0.gguf");
  CHECK(found[0].of == 100'000);
  CHECK(found[0].bytes >= 50'000);
  CHECK(!found[0].in_progress);
  CHECK(found[0].text().ends_with(" of 97.7 KiB of sub/m-Q8_0.gguf"));
  const auto is_meant = [](const hub::Unfinished& each, const hub::Name& name) {
    const auto variant = hub::find_variant_here({}, std::span(&each, 1), name);
    return variant && each.is_of(*variant);
  };
  CHECK(is_meant(found[0], {"o/r", "q8_0"}));
  CHECK(is_meant(found[0], {"o/r", "", "sub/m-Q8_0.gguf"}));
  CHECK(!is_meant(found[0], {"o/r", "Q4_0"}));
  CHECK(!is_meant(found[0], {"o/r", "", "m-Q8_0.gguf"}));
  const hub::Unfinished shard{sum_a, "m-Q8_0-00002-of-00002.gguf"};
  CHECK(is_meant(shard, {"o/r", "", "m-Q8_0-00001-of-00002.gguf"}));
  CHECK(!is_meant(shard, {"o/r", "", "m-Q8_0-00001-of-00003.gguf"}));
  CHECK(is_meant(shard, {"o/r", "Q8_0"}));
  CHECK(!is_meant(hub::Unfinished{sum_a}, {"o/r", "Q8_0"}));  // its path is not known
  {
    const int held = ::open(lock.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(::flock(held, LOCK_EX) == 0);
    CHECK(hub::unfinished(cache, "o/r")[0].in_progress);
    CHECK(!hub::remove_unfinished(cache, "o/r", found[0]));
    ::close(held);
  }
  for (const char* damage :
       {"", "mica pieces 2 ", "mica pieces 2 x 4 m.gguf\n", "mica pieces 2 9 4 ../m.gguf\n"}) {
    std::ofstream(cache.blob("o/r", sum_a) + ".mica.pieces") << damage;
    CHECK(hub::unfinished(cache, "o/r")[0].path.empty());
  }
  CHECK(hub::remove_unfinished(cache, "o/r", found[0]));
  CHECK(hub::unfinished(cache, "o/r").empty());
  CHECK(!std::filesystem::exists(cache.blob("o/r", sum_a) + ".mica.pieces"));
}

TEST_CASE("a folder of models that cannot be one is refused as a file") {
  const TemporaryFolder folder;
  const hub::Cache cache(folder.file("plain", "x"));
  CHECK(refusal([&] { return cache.repositories(); }).code() == ErrorCode::file);
  CHECK(hub::Cache(folder.path("missing")).repositories().empty());
  const Error add = refusal([&] { cache.add("o/r", commit, {"m.gguf", 1, sum_a}); });
  CHECK(add.code() == ErrorCode::file);
  CHECK(mentions(add, "plain", "HF_HUB_CACHE"));
  CHECK(refusal([&] { return hub::PartialFile(folder.path("none/sum"), 10, 4, "m.gguf"); }).code() ==
        ErrorCode::file);
}

#if defined(MICA_HAS_TEXT)

hub::Listing listed(const std::string& text) {
  hub::Listing listing;
  hub::add_page(text, "http://hub/api", listing);
  return listing;
}

/// A list of one file with these members.
std::string entry(const std::string& path, const std::string& size, const std::string& lfs) {
  return join("[{\"type\":\"file\",\"path\":", path, ",\"size\":", size, lfs, "}]");
}

TEST_CASE("a listing has the GGUF files with sizes and sums") {
  const std::string lfs = join(",\"lfs\":{\"oid\":\"", sum_a, "\",\"size\":5}");
  const hub::Listing listing = listed(entry("\"a/m-Q4_0.gguf\"", "5", lfs));
  REQUIRE(listing.files.size() == 1);
  CHECK(listing.files[0].path == "a/m-Q4_0.gguf");
  CHECK(listing.files[0].bytes == 5);
  CHECK(listing.files[0].sha256 == sum_a);
  CHECK(listed(entry("\"../x.txt\"", "\"x\"", "")).files.empty());  // no model
  const std::string revision = join("{\"id\":\"Org/R\",\"sha\":\"", commit, "\"}");
  CHECK(hub::parse_revision(revision, "api", "org/r").repo == "Org/R");
  CHECK(hub::parse_revision(revision, "api", "other/r").repo == "other/r");
  CHECK(hub::parse_revision(revision, "api", "org/r").commit == commit);
}

TEST_CASE("hostile listings are refused") {
  const std::string lfs = join(",\"lfs\":{\"oid\":\"", sum_a, "\",\"size\":5}");
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  const std::string cases[] = {"",
                               "{}",
                               "null",
                               "[1]",
                               "[{}]",
                               "[[]]",
                               deep,
                               "[{\"path\":1}]",
                               entry("\"../m.gguf\"", "5", lfs),
                               entry("\"/m.gguf\"", "5", lfs),
                               entry("\"a/../../m.gguf\"", "5", lfs),
                               entry("\"a\\u0000.gguf\"", "5", lfs),
                               entry("\"a\\n.gguf\"", "5", lfs),
                               entry("\"a\\\\b.gguf\"", "5", lfs),
                               entry("\"m.gguf\"", "-5", lfs),
                               entry("\"m.gguf\"", "5.5", lfs),
                               entry("\"m.gguf\"", "\"5\"", lfs),
                               entry("\"m.gguf\"", "6", lfs),
                               entry("\"m.gguf\"", "0", ",\"lfs\":{\"oid\":\"" + sum_a + "\",\"size\":0}"),
                               entry("\"m.gguf\"", "1e999", lfs),
                               entry("\"m.gguf\"", "9223372036854775808",
                                     ",\"lfs\":{\"oid\":\"" + sum_a + "\",\"size\":9223372036854775808}"),
                               entry("\"m.gguf\"", "5", ""),
                               entry("\"m.gguf\"", "5", ",\"lfs\":5"),
                               entry("\"m.gguf\"", "5", ",\"lfs\":{\"oid\":\"../../x\",\"size\":5}"),
                               entry("\"m.gguf\"", "5", ",\"lfs\":{\"oid\":5,\"size\":5}")};
  for (const std::string& text : cases) {
    CAPTURE(text);
    const Error error = refusal([&] { return listed(text); });
    CHECK(error.code() == ErrorCode::file);
    CHECK(mentions(error, "http://hub/api"));
  }
  for (const char* text : {"[]", "{}", "{\"sha\":5}", "{\"sha\":\"../../x\"}", "<html>"})
    CHECK(refusal([&] { return hub::parse_revision(text, "api", "o/r"); }).code() == ErrorCode::file);
}

#endif

TEST_CASE("the address of a file is encoded, and below the endpoint") {
  const Variable endpoint("HF_ENDPOINT", "https://mirror.example/hub/");
  CHECK(hub::resolve_url("o/r", "main", "a/m x?#%.gguf").shown() ==
        "https://mirror.example/hub/o/r/resolve/main/a/m%20x%3F%23%25.gguf");
}

}  // namespace
}  // namespace mica::test::hub_test
