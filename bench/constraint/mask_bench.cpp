// SPDX-License-Identifier: Apache-2.0
//
// usage: mask_bench VOCABULARY.gguf FOLDER [--order any|schema] [--spaced] [--json FILE] [--list FILE]
//
// JSON Schemas with texts that must be allowed and texts that must not, as MaskBench
// (github.com/guidance-ai/jsonschemabench, maskbench/data) and JSON-Schema-Test-Suite have them: each file is
// {"schema", "tests": [{"valid", "data"}]}, or an array of such objects. Counts what is right, and measures
// the processor time of each mask, and of the first one with all that comes before it. One thread. --list
// writes the outcome of each file with the sentence of a refusal.

#include "mica/constraint/grammar.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/schema/schema.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program
using schema::Json;

/// Time of this thread's processor: other processes of the machine do not count.
struct Clock {
  using time_point = double;  // microseconds
  static time_point now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }
};

double micros(Clock::time_point since) { return Clock::now() - since; }

struct Figures {
  std::map<std::string, std::size_t> schemas;  // by outcome
  std::map<std::string, std::size_t> refused;  // by keyword
  std::size_t tests = 0, tokens = 0, most_bytes = 0;
  std::size_t enforced_tests = 0;
  std::vector<float> masks, first;
};

/// What became of one text: empty, or what is wrong.
std::string check_text(constraint::Grammar grammar, const text::AnyTokenizer& tokenizer, const Json& test,
                       bool spaced, Figures& out) {
  std::string text = test["data"].dump();
  if (spaced) text = test["data"].dump(1);  // any white space is allowed then
  const bool valid = test["valid"].get<bool>();
  constraint::TokenMask mask;
  const auto tokens = tokenizer.encode(text, {.add_special = false, .parse_special = false});
  bool allowed = true;
  for (std::size_t i = 0; i <= tokens.size() && allowed; ++i) {
    const auto begin = Clock::now();
    if (!grammar.allowed(mask)) return "limit: " + grammar.why();
    out.masks.push_back(static_cast<float>(micros(begin)));
    ++out.tokens;
    const TokenId next = i < tokens.size() ? tokens[i] : grammar.tokens().end().value_or(0);
    allowed = mask.contains(next);
    if (allowed && !grammar.advance(next)) return "a token of the mask is refused";
    if (!allowed && grammar.advance(next)) return "a token that is not in the mask is accepted";
  }
  if (allowed == valid) return {};
  return (valid ? "over: refuses " : "under: accepts ") + text.substr(0, 200);
}

std::string keyword_of(const std::string& message) {
  const std::size_t begin = message.find("'"), end = message.find("'", begin + 1);
  if (begin == std::string::npos || end == std::string::npos) return "other";
  return message.substr(begin + 1, end - begin - 1);
}

void check_schema(const Json& group, const std::shared_ptr<const constraint::TokenTrie>& trie,
                  const text::AnyTokenizer& tokenizer, const schema::SchemaOptions& options,
                  const std::string& name, Figures& out, std::ostream& list) {
  const std::size_t tokens_before = out.tokens;
  const auto begin = Clock::now();
  std::string outcome = "passing";
  std::string why;
  const auto& tests = group.contains("tests") ? group["tests"] : Json::array();
  out.tests += tests.size();
  try {
    constraint::Grammar grammar(trie, schema::parse_schema(group["schema"].dump(), options), {});
    constraint::TokenMask mask;
    const bool known = grammar.allowed(mask);
    out.first.push_back(static_cast<float>(micros(begin)));
    if (!known) why = "limit: " + grammar.why();
    std::size_t good = 0;
    for (const Json& test : tests) {
      const std::string wrong =
          check_text(grammar, tokenizer, test, options.whitespace == schema::Whitespace::any, out);
      good += wrong.empty();
      if (!wrong.empty() && why.empty()) why = wrong;
    }
    out.enforced_tests += good;
    out.most_bytes = std::max(out.most_bytes, grammar.bytes());
    if (!why.empty()) outcome = why.substr(0, why.find(':'));
  } catch (const Error& error) {
    out.first.push_back(static_cast<float>(micros(begin)));
    why = error.what();
    outcome = error.code() == ErrorCode::limit   ? "limit"
              : error.code() == ErrorCode::usage ? "invalid"
                                                 : "refused";
    if (outcome == "refused") ++out.refused[keyword_of(why)];
    // No value meets it: right if no text must be allowed.
    if (outcome == "invalid" && why.find("no value meets") != std::string::npos) {
      const bool none =
          std::none_of(tests.begin(), tests.end(), [](const Json& t) { return t["valid"].get<bool>(); });
      if (none) {
        outcome = "passing";
        out.enforced_tests += tests.size();
      }
    }
  }
  ++out.schemas[outcome];
  list << outcome << '\t' << name << '\t' << out.first.back() << '\t' << micros(begin) << '\t'
       << out.tokens - tokens_before << '\t' << why << std::endl;
}

double at(std::vector<float>& values, double part) {
  if (values.empty()) return 0;
  const auto n =
      std::min(values.size() - 1, static_cast<std::size_t>(part * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n), values.end());
  return values[n];
}

std::string summary(Figures& f) {
  std::ostringstream out;
  double sum = 0;
  for (const float x : f.masks) sum += x;
  out << "{\"schemas\":{";
  const char* comma = "";
  for (const auto& [name, n] : f.schemas) out << std::exchange(comma, ",") << '"' << name << "\":" << n;
  out << "},\"refused\":{";
  comma = "";
  for (const auto& [name, n] : f.refused) out << std::exchange(comma, ",") << '"' << name << "\":" << n;
  out << "},\"tests\":" << f.tests << ",\"tests_right\":" << f.enforced_tests << ",\"tokens\":" << f.tokens
      << ",\"mask_us\":{\"average\":" << sum / static_cast<double>(std::max<std::size_t>(1, f.masks.size()));
  for (const double p : {0.5, 0.9, 0.99, 0.999, 1.0}) out << ",\"p" << 100 * p << "\":" << at(f.masks, p);
  out << "},\"first_mask_us\":{\"p50\":" << at(f.first, 0.5);
  for (const double p : {0.9, 0.99, 0.999, 1.0}) out << ",\"p" << 100 * p << "\":" << at(f.first, p);
  out << "},\"max_bytes\":" << f.most_bytes << "}";
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: mask_bench VOCABULARY.gguf FOLDER [--order any|schema] [--spaced] [--json FILE] "
                 "[--list FILE]\n");
    return 2;
  }
  schema::SchemaOptions options;
  std::string json, list_file = "/dev/null";
  for (int i = 3; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--spaced") options.whitespace = schema::Whitespace::any;
    if (flag == "--annotation") options.formats = schema::Formats::annotation;
    if (i + 1 >= argc) continue;
    if (flag == "--order")
      options.order =
          std::string_view(argv[i + 1]) == "any" ? schema::MemberOrder::any : schema::MemberOrder::schema;
    if (flag == "--json") json = argv[i + 1];
    if (flag == "--list") list_file = argv[i + 1];
  }
  const gguf::Document file = gguf::open(argv[1]);
  const text::AnyTokenizer tokenizer = text::make_tokenizer(text::vocabulary_from(file.metadata()));
  auto begin = Clock::now();
  const auto trie = std::make_shared<const constraint::TokenTrie>(tokenizer);
  std::fprintf(stderr, "trie: %.0f ms, %zu bytes, %zu tokens\n", micros(begin) / 1000, trie->bytes(),
               trie->n_vocab());
  std::size_t every = 1, number = 0;
  for (int i = 3; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--every") every = std::strtoul(argv[i + 1], nullptr, 10);
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[2])) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Figures figures;
  std::ofstream list(list_file);
  for (const auto& path : files) {
    if (number++ % every != 0) continue;
    std::ifstream in(path);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const Json content = Json::parse(text);
    if (content.is_array()) {
      for (const Json& group : content) {
        std::string name = path.filename().string() + ": " + group["description"].get<std::string>();
        check_schema(group, trie, tokenizer, options, name, figures, list);
      }
    } else {
      check_schema(content, trie, tokenizer, options, path.filename().string(), figures, list);
    }
  }
  const std::string out = summary(figures);
  std::puts(out.c_str());
  if (!json.empty()) std::ofstream(json) << out << '\n';
  return 0;
}
