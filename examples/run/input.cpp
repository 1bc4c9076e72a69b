// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include "console.hpp"
#include "embedded.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/packed_files.hpp"
#include "mica_tools/remote/url.hpp"
#include "remote.hpp"
#include "stdin_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <unistd.h>

namespace mica::program {
namespace {

/// \n, \t, \r, \\, \", \' and \xHH, as people type them.
std::string unescaped(std::string_view text) {
  constexpr std::string_view letters = "ntr\\\"'", bytes = "\n\t\r\\\"'";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char next = text[++i];
    unsigned value = 0;
    if (next == 'x' &&
        std::from_chars(text.data() + i + 1, text.data() + std::min(i + 3, text.size()), value, 16).ec ==
            std::errc()) {
      out += static_cast<char>(value);
      i += i + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[i + 2])) ? 2 : 1;
    } else if (const std::size_t at = letters.find(next); at != std::string_view::npos) {
      out += bytes[at];
    } else {
      out.append({'\\', next});
    }
  }
  return out;
}

/// Waits for stdin, and says so when that takes a while; false when nothing comes.
bool stdin_begins(const Options& options) {
  if (has_input_within(STDIN_FILENO, note_after)) return true;
  if (!interrupted())
    note(options, "mica: waiting for text on stdin, which is an open pipe; close it, or use < /dev/null");
  if (!interrupted() && has_input_within(STDIN_FILENO, give_up_after - note_after)) return true;
  if (interrupted()) throw Stop{130, {}};
  note(options, join("mica: nothing came on stdin in ", give_up_after.count() / 1000,
                     " s: the prompt is taken alone (-f - waits as long as it takes)"));
  return false;
}

/// Opens a file or a packed folder. An error says how to get a file where a name or another folder was given.
gguf::Document open_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::path(path) / "config.json", error) &&
      !gguf::is_packed_folder(path))
    raise(ErrorCode::file, path, ": is a Hugging Face folder; mica convert ", path,
          " OUT.gguf makes one file of it");
  try {
    return gguf::open(path);
  } catch (const Error& failure) {
    const bool is_name = path.find('/') == std::string::npos && !path.ends_with(".gguf");
    if (!is_name || std::filesystem::exists(path, error)) throw;
    raise(failure.code(), failure.message(),
          ".  A model is a file: download its GGUF from huggingface.co, or make one of a folder of "
          "safetensors with "
          "mica convert");
  }
}

}  // namespace

gguf::Document open_document(const Options& options) {
  if (remote::is_url(options.model)) return open_remote(options.model);
  if (!options.model.empty()) return open_file(options.model);
  MICA_CHECK(!embedded_model().empty(), usage,
             "no model was given, and this program has no bundled one; see mica ", options.verb, " --help");
  return gguf::parse(embedded_model(), "the bundled model");
}

std::optional<std::string> prompt_of(const Options& options) {
  std::optional<std::string> prompt = options.prompt;
  if (!prompt && !options.words.empty()) {
    prompt.emplace();
    for (const std::string& word : options.words) prompt->append(prompt->empty() ? "" : " ").append(word);
  }
  if (!options.prompt_file.empty())
    prompt = text_and_prompt(read_text(options.prompt_file), prompt.value_or(""));
  if (prompt && options.escape) prompt = unescaped(*prompt);
  return prompt;
}

std::optional<std::string> prompt_with_stdin(const Options& options) {
  const std::optional<std::string> prompt = prompt_of(options);
  const bool is_taken = options.prompt_file == "-" || options.system_prompt_file == "-";
  if (!prompt || is_taken || !is_piped(STDIN_FILENO) || !stdin_begins(options)) return prompt;
  return text_and_prompt(read_text("-"), *prompt);
}

bool ids_given(const Options& options) noexcept {
  return !options.ids.empty() || !options.ids_file.empty() || !options.words.empty();
}

std::vector<TokenId> ids_of(const Options& options) {
  const int sources = !options.ids.empty() + !options.ids_file.empty() + !options.words.empty();
  MICA_CHECK(sources < 2, usage, "ids were given twice; words, --ids and --ids-file exclude each other");
  std::string text = options.ids_file.empty() ? options.ids : read_text(options.ids_file);
  for (const std::string& word : options.words) text += join(word, " ");
  std::vector<TokenId> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  const auto separates = [](char c) {
    return c == ',' || c == '[' || c == ']' || c == ' ' || c == '\n' || c == '\r' || c == '\t';
  };
  while ((at = std::find_if_not(at, end, separates)) != end) {
    TokenId id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    const bool whole = error == std::errc() && (next == end || separates(*next));
    MICA_CHECK(whole, usage, "ids: '", escaped(std::string_view(at, std::find_if(at, end, separates)), 20),
               "' is not a token id; needed: numbers with commas between them");
    ids.push_back(id);
    at = next;
  }
  return ids;
}

}  // namespace mica::program
