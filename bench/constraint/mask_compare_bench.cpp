// SPDX-License-Identifier: Apache-2.0
//
// usage: mask_compare_bench FOLDER [--schemas N] [--every N] [--order any|schema] [--vocabulary FILE.gguf]
//
// Masks compared token by token: at each place of the texts of MaskBench (mask_bench.cpp says where they
// are), and of one random text for each schema, every token is tried alone. Its bytes are read one by one
// by a recognizer that has no trie, slices or kept masks, and is made anew for each text. Without a
// vocabulary each schema has a small one: all bytes, pieces of JSON, and parts of its own texts that are
// cut anywhere.
//
// That recognizer and the mask have the expressions in common. So one token of each kind (of the same
// state after it) is also completed to a whole text, which is read as JSON and checked by a validator of
// keywords: a token that leads nowhere, or to a wrong value, is found. One thread; the first N schemas
// that are accepted.

#include "../../tests/schema/json_vocabulary.hpp"
#include "mica/base/rng.hpp"
#include "mica/constraint/grammar.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "mica_tools/schema/cases.hpp"
#include "mica_tools/schema/schema.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using namespace mica;  // NOLINT: a program
using constraint::StateId;
using schema::Json;

struct Counts {
  std::size_t schemas = 0, refused = 0, limits = 0, texts = 0, masks = 0, tokens = 0, allowed = 0, differ = 0;
  std::size_t completed = 0, too_far = 0, skipped = 0, wrong = 0;
};

/// Whole texts from a state.
class Completions {
 public:
  explicit Completions(constraint::Recognizer& recognizer) : recognizer_(recognizer) {}

  /// This byte follows the state on the way to an end.
  void learn(StateId state, std::uint8_t byte, StateId after) { way_.try_emplace(state, byte, after); }
  /// Bytes to an end; nothing where it is too far.
  [[nodiscard]] std::optional<std::string> from(StateId state) {
    if (!is_near(state) && !search(state)) return std::nullopt;
    std::string out;
    while (!recognizer_.accepts(state)) {
      const auto [byte, after] = way_.at(state);
      out.push_back(static_cast<char>(byte));
      state = after;
    }
    return out;
  }

 private:
  struct Found {
    StateId state;
    std::size_t from;
    std::uint8_t byte;
  };

  [[nodiscard]] bool is_near(StateId state) const {
    return recognizer_.accepts(state) || way_.contains(state);
  }
  /// The nearest state that is near, by a search in all directions.
  [[nodiscard]] bool search(StateId state) {
    static constexpr std::size_t max_states = 3000;
    std::vector<Found> found = {{state, 0, 0}};
    std::set<StateId> seen = {state};
    for (std::size_t at = 0; at < found.size() && found.size() < max_states; ++at) {
      for (unsigned byte = 0; byte < 256; ++byte) {
        const StateId next = recognizer_.step(found[at].state, static_cast<std::uint8_t>(byte));
        if (next == StateId::dead || !seen.insert(next).second) continue;
        found.push_back({next, at, static_cast<std::uint8_t>(byte)});
        if (!is_near(next)) continue;
        for (std::size_t i = found.size() - 1; i > 0; i = found[i].from)
          learn(found[found[i].from].state, found[i].byte, found[i].state);
        return true;
      }
    }
    return false;
  }

  constraint::Recognizer& recognizer_;
  std::unordered_map<StateId, std::pair<std::uint8_t, StateId>> way_;
};

/// A schema, and what its tokens are compared with.
struct Subject {
  std::string name;
  std::string schema;
  schema::SchemaOptions options;
  std::shared_ptr<const constraint::TokenTrie> tokens;
};

/// Walks one text, and compares.
class Comparison {
 public:
  Comparison(const Subject& subject, schema::Cases& cases, schema::SchemaId root, Counts& counts)
      : subject_(subject),
        cases_(cases),
        root_(root),
        counts_(counts),
        grammar_(subject.tokens, schema::parse_schema(subject.schema, subject.options)),
        language_(schema::parse_schema(subject.schema, subject.options)),
        recognizer_(language_),
        completions_(recognizer_) {}

  /// Compares at all places of a text, as far as it is allowed.
  void compare(std::string_view text) {
    learn(text);
    begin();
    for (const TokenId token : subject_.tokens->tokens_of(text)) {
      if (!compare_here() || !advance(token)) return;
    }
    static_cast<void>(compare_here());
  }
  /// The same for a text of random tokens.
  void compare_random(CounterRng& rng, std::size_t most) {
    begin();
    for (std::size_t i = 0; i < most && compare_here(); ++i) {
      std::vector<TokenId> allowed;
      mask_.for_each([&](TokenId id) {
        if (!subject_.tokens->is_end(id)) allowed.push_back(id);
      });
      if (allowed.empty() || !advance(allowed[rng.next() % allowed.size()])) return;
    }
  }

 private:
  void begin() {
    ++counts_.texts;
    if (!text_tokens_.empty()) grammar_.rewind(text_tokens_.size());
    text_tokens_.clear();
    text_.clear();
    state_ = recognizer_.start();
  }
  /// The rest of a text that is one of the language is a way to the end.
  void learn(std::string_view text) {
    std::vector<StateId> states = {recognizer_.start()};
    for (const char c : text) {
      states.push_back(recognizer_.step(states.back(), static_cast<std::uint8_t>(c)));
      if (states.back() == StateId::dead) return;
    }
    if (!recognizer_.accepts(states.back())) return;
    for (std::size_t i = text.size(); i-- > 0;)
      completions_.learn(states[i], static_cast<std::uint8_t>(text[i]), states[i + 1]);
  }
  [[nodiscard]] bool advance(TokenId token) {
    const bool possible = grammar_.advance(token);
    if (!possible) return false;
    text_tokens_.push_back(token);
    text_ += subject_.tokens->bytes_of(token);
    state_ = after(token);
    return true;
  }
  [[nodiscard]] StateId after(TokenId token) {
    StateId state = state_;
    for (const char c : subject_.tokens->bytes_of(token)) {
      if (state == StateId::dead) break;
      state = recognizer_.step(state, static_cast<std::uint8_t>(c));
    }
    return state;
  }
  [[nodiscard]] bool may_follow(TokenId token, StateId after) {
    if (subject_.tokens->is_end(token)) return recognizer_.accepts(state_);
    const std::string_view bytes = subject_.tokens->bytes_of(token);
    return !bytes.empty() && bytes.size() <= constraint::Trie::max_bytes && after != StateId::dead;
  }
  [[nodiscard]] bool compare_here() {
    if (!grammar_.allowed(mask_)) {
      ++counts_.limits;
      return false;
    }
    ++counts_.masks;
    for (TokenId id = 0; id < subject_.tokens->n_vocab(); ++id) {
      const StateId next = after(id);
      const bool allowed = may_follow(id, next);
      ++counts_.tokens;
      counts_.allowed += allowed;
      if (allowed != mask_.contains(id)) {
        ++counts_.differ;
        report(allowed ? "the mask forbids" : "the mask allows", subject_.tokens->bytes_of(id));
      }
      if (allowed && !subject_.tokens->is_end(id)) complete(id, next);
    }
    return true;
  }
  /// Checks a whole text that begins with this token.
  void complete(TokenId id, StateId next) {
    if (!completed_.insert(next).second) return;
    if (std::clock() - begin_ > max_seconds * CLOCKS_PER_SEC) {
      ++counts_.skipped;
      return;
    }
    const auto rest = completions_.from(next);
    if (!rest) {
      ++counts_.too_far;
      return;
    }
    const std::string whole = text_ + std::string(subject_.tokens->bytes_of(id)) + *rest;
    ++counts_.completed;
    try {
      if (cases_.meets(Json::parse(whole), {root_})) return;
      report("a value that does not meet the schema: " + whole, subject_.tokens->bytes_of(id));
      ++counts_.wrong;
    } catch (const Json::parse_error&) {
      report("no JSON: " + whole, subject_.tokens->bytes_of(id));
      ++counts_.wrong;
    } catch (const Json::exception&) {
      ++counts_.skipped;  // a number beyond those of the parser
    } catch (const Error&) {
      ++counts_.skipped;  // a keyword that the validator cannot read
    }
  }
  void report(const std::string& what, std::string_view token) const {
    std::printf("%s\tafter %s\ttoken %s\t%s\n", subject_.name.c_str(), escaped(text_, 200).c_str(),
                escaped(token).c_str(), what.c_str());
  }

  static constexpr int max_seconds = 2;  // of completions: the validator is slow where schemas are deep

  const Subject& subject_;
  schema::Cases& cases_;
  schema::SchemaId root_;
  Counts& counts_;
  constraint::Grammar grammar_;
  constraint::Language language_;
  constraint::Recognizer recognizer_;
  Completions completions_;
  std::set<StateId> completed_;
  std::clock_t begin_ = std::clock();
  constraint::TokenMask mask_;
  std::vector<TokenId> text_tokens_;
  std::string text_;
  StateId state_ = StateId::dead;
};

/// False where the schema is refused, or has no text that is valid.
bool compare_schema(const Json& content, Subject subject, std::size_t number, Counts& counts) {
  std::vector<std::string> texts;
  bool any_valid = false;
  for (const Json& test : content["tests"]) {
    texts.push_back(test["data"].dump());
    any_valid = any_valid || test["valid"].get<bool>();
  }
  if (!any_valid) return false;
  CounterRng rng(number);
  const bool is_small = subject.tokens == nullptr;
  if (is_small) subject.tokens = test::json_vocabulary(texts, rng, 400, 9);
  subject.schema = content["schema"].dump();
  try {
    schema::Document document(subject.schema, subject.options);
    schema::Expressions expressions;
    schema::Strings strings(expressions);
    schema::Cases cases(document, strings, subject.options);
    texts.resize(std::min<std::size_t>(texts.size(), is_small ? 6 : 2));
    for (const std::string& text : texts) Comparison(subject, cases, document.root(), counts).compare(text);
    Comparison(subject, cases, document.root(), counts).compare_random(rng, is_small ? 60 : 20);
  } catch (const Error& error) {
    ++(error.code() == ErrorCode::limit ? counts.limits : counts.refused);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: mask_compare_bench FOLDER [--schemas N] [--every N] [--order any|schema] "
                 "[--vocabulary FILE.gguf]\n");
    return 2;
  }
  std::size_t n_schemas = 500, every = 20;
  Subject subject;
  std::optional<text::AnyTokenizer> tokenizer;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i], value = argv[i + 1];
    if (flag == "--schemas") n_schemas = std::strtoul(argv[i + 1], nullptr, 10);
    if (flag == "--every") every = std::strtoul(argv[i + 1], nullptr, 10);
    if (flag == "--order")
      subject.options.order = value == "any" ? schema::MemberOrder::any : schema::MemberOrder::schema;
    if (flag == "--vocabulary") {
      tokenizer.emplace(text::make_tokenizer(text::vocabulary_from(gguf::open(argv[i + 1]).metadata())));
      subject.tokens = std::make_shared<const constraint::TokenTrie>(*tokenizer);
    }
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[1])) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Counts counts;
  for (std::size_t i = 0; i < files.size() && counts.schemas < n_schemas; i += every) {
    std::ifstream in(files[i]);
    const Json content = Json::parse(std::string((std::istreambuf_iterator<char>(in)), {}));
    subject.name = files[i].filename().string();
    counts.schemas += compare_schema(content, subject, i, counts);
  }
  std::printf(
      "{\"schemas\":%zu,\"refused\":%zu,\"limits\":%zu,\"texts\":%zu,\"masks\":%zu,\"tokens\":%zu,"
      "\"allowed\":%zu,\"differ\":%zu,\"completed\":%zu,\"too_far\":%zu,\"skipped\":%zu,\"wrong\":%zu}\n",
      counts.schemas, counts.refused, counts.limits, counts.texts, counts.masks, counts.tokens,
      counts.allowed, counts.differ, counts.completed, counts.too_far, counts.skipped, counts.wrong);
  return counts.differ + counts.wrong == 0 ? 0 : 1;
}
