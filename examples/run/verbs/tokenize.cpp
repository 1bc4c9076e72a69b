// SPDX-License-Identifier: Apache-2.0
//
// Text to ids and pieces.
#include "columns.hpp"
#include "mica/base/assert.hpp"
#include "mica_tools/json/parse_json.hpp"
#include "pieces.hpp"
#include "verbs.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace mica::program {
namespace {

using Json = nlohmann::json;

class Tokenize final : public Verb {
 public:
  Tokenize()
      : Verb({"tokenize", "text to ids and pieces", "mica tokenize model.gguf \"Hello\" --json"},
             Needs::header) {}
  int run() override;

  std::vector<std::string> words;
  std::string text_file;
  bool add_special = false;
  bool parse_special = false;
  bool show_special = false;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    flags.group("Text");
    flags.words(words, "TEXT", "the text");
    flags.text("--text-file", text_file, "FILE", "read the text from a file; - is stdin");
    flags.toggle("--add-special", add_special, "add BOS and EOS as the vocabulary asks");
    flags.toggle("--parse-special", parse_special, "the text of a control token becomes that token");
    flags.toggle("--special", show_special, "show control tokens");
  }
};

std::string answer_json(const text::AnyTokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string numbers, pieces;
  for (const TokenId id : ids) {
    numbers += join(numbers.empty() ? "" : ",", id);
    pieces += join(pieces.empty() ? "" : ",", piece_json(tokenizer.piece(id, true)));
  }
  return join("{\"ids\":[", numbers, "],\"pieces\":[", pieces, "]}\n");
}

std::string answer_text(const text::AnyTokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string out;
  for (const TokenId id : ids) {
    const std::string piece = tokenizer.piece(id, true);
    out += join(at_right(join(id), 8), "  ",
                is_json_text(piece) ? json_string(piece) : join("\"", escaped(piece), "\""), "\n");
  }
  return out;
}

/// One request of --jsonl.
struct Request {
  std::string text;
  text::EncodeOptions encode;
};

Request request_of(const Json& json, const Tokenize& verb) {
  MICA_CHECK(json.is_object(), usage, "needed: an object with \"text\" or \"b64\"");
  Request request{{}, {verb.add_special, verb.parse_special}};
  const auto string = [&](const char* key) -> const std::string* {
    const auto at = json.find(key);
    return at != json.end() && at->is_string() ? at->get_ptr<const std::string*>() : nullptr;
  };
  const auto flag = [&](const char* key, bool& to) {
    const auto at = json.find(key);
    if (at == json.end()) return;
    MICA_CHECK(at->is_boolean(), usage, "\"", key, "\" is true or false");
    to = at->get<bool>();
  };
  if (const std::string* text = string("text")) {
    request.text = *text;
  } else if (const std::string* bytes = string("b64")) {
    auto decoded = base64_decoded(*bytes);
    MICA_CHECK(decoded, usage, "\"b64\" is not Base64");
    request.text = *std::move(decoded);
  } else {
    raise(ErrorCode::usage, "needed: a string \"text\" or \"b64\"");
  }
  flag("add_special", request.encode.add_special);
  flag("parse_special", request.encode.parse_special);
  return request;
}

int answer_lines(const Tokenize& verb, const text::AnyTokenizer& tokenizer) {
  LineReader lines(LineReader::OnInterrupt::end);
  for (std::size_t number = 1; const auto line = lines.next(); ++number) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = io::parse_json(*line, join("stdin, line ", number), ErrorCode::usage);
    try {
      const Request request = request_of(json, verb);
      print(answer_json(tokenizer, tokenizer.encode(request.text, request.encode)));
    } catch (const Error& error) {
      raise(error.code(), "stdin, line ", number, ": ", error.message());
    }
  }
  return 0;
}

int Tokenize::run() {
  const text::AnyTokenizer tokenizer = open_tokenizer(*this);
  if (jsonl) return answer_lines(*this, tokenizer);
  const auto text = text_file.empty() ? joined(words) : std::optional(read_text(text_file));
  MICA_CHECK(text, usage,
             "tokenize: no text; give it as a word, with --text-file, or as lines of JSON with --jsonl");
  const auto ids = tokenizer.encode(*text, {.add_special = add_special, .parse_special = parse_special});
  print(json ? answer_json(tokenizer, ids) : answer_text(tokenizer, ids));
  return 0;
}

}  // namespace

AnyVerb make_tokenize() { return std::make_unique<Tokenize>(); }

}  // namespace mica::program
