// SPDX-License-Identifier: Apache-2.0
//
// Text to ids and pieces, and back. A file with a vocabulary alone is enough.
#include "base64.hpp"
#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/json.hpp"
#include "mica/text/tokenizer.hpp"
#include "mica/text/vocabulary_gguf.hpp"
#include "verbs.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>
#include <unistd.h>

namespace mica::program {
namespace {

using Json = nlohmann::json;

text::AnyTokenizer open_tokenizer(const Options& options) {
  return text::make_tokenizer(
      text::vocabulary_from(open_document(options).metadata(), log_to_stderr(options)));
}

/// A piece as JSON: a string, or {"b64": ...} when its bytes are no text on their own.
std::string piece_json(const std::string& piece) {
  return is_json_text(piece) ? json_string(piece) : join("{\"b64\":\"", base64_encoded(piece), "\"}");
}

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
    const std::string number = join(id);
    out += join(std::string(number.size() < 8 ? 8 - number.size() : 0, ' '), number, "  ",
                is_json_text(piece) ? json_string(piece) : join("\"", escaped(piece), "\""), "\n");
  }
  return out;
}

/// One request of --jsonl.
struct Request {
  std::string text;
  text::EncodeOptions encode;
};

Request request_of(const Json& json, const Options& options) {
  MICA_CHECK(json.is_object(), usage, "needed: an object with \"text\" or \"b64\"");
  Request request{{}, {options.add_special, options.parse_special}};
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

int answer_lines(const Options& options, const text::AnyTokenizer& tokenizer) {
  LineReader lines(LineReader::OnInterrupt::end);
  for (std::size_t number = 1; const auto line = lines.next(); ++number) {
    if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
    const Json json = io::parse_json(*line, join("stdin, line ", number), ErrorCode::usage);
    try {
      const Request request = request_of(json, options);
      print(answer_json(tokenizer, tokenizer.encode(request.text, request.encode)));
    } catch (const Error& error) {
      raise(error.code(), "stdin, line ", number, ": ", error.message());
    }
  }
  return 0;
}

}  // namespace

int tokenize(const Options& options) {
  const text::AnyTokenizer tokenizer = open_tokenizer(options);
  if (options.jsonl) return answer_lines(options, tokenizer);
  const auto text =
      options.text_file.empty() ? prompt_of(options) : std::optional(read_text(options.text_file));
  MICA_CHECK(text, usage,
             "tokenize: no text; give it as a word, with --text-file, or as lines of JSON with --jsonl");
  const auto ids =
      tokenizer.encode(*text, {.add_special = options.add_special, .parse_special = options.parse_special});
  print(options.json ? answer_json(tokenizer, ids) : answer_text(tokenizer, ids));
  return 0;
}

int detokenize(const Options& options) {
  MICA_CHECK(ids_given(options), usage,
             "detokenize: no ids; give them as words, with --ids 1,2,3 or with --ids-file FILE");
  const std::vector<TokenId> ids = ids_of(options);
  const text::AnyTokenizer tokenizer = open_tokenizer(options);
  const std::string text = tokenizer.decode(ids, {.show_special = options.show_special});
  if (options.json) {
    print(join("{\"text\":", piece_json(text), "}\n"));
  } else {
    print_data(options, text);
    if (::isatty(STDOUT_FILENO) == 1 && !text.ends_with('\n')) print("\n");
  }
  return 0;
}

}  // namespace mica::program
