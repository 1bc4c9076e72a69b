// SPDX-License-Identifier: Apache-2.0
#include "input.hpp"

#include "answer_options.hpp"
#include "console.hpp"
#include "embedded.hpp"
#include "mica/base/assert.hpp"
#include "mica/gguf/detail/packed_files.hpp"
#include "mica_tools/hub/published.hpp"
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

namespace {

/// Waits for stdin, and says so after a second; false if nothing comes.
bool stdin_begins(const OutputOptions& output) {
  if (has_input_within(STDIN_FILENO, note_after)) return true;
  if (!interrupted())
    note(output, "mica: waiting for text on stdin, which is an open pipe; close it, or use < /dev/null");
  if (!interrupted() && has_input_within(STDIN_FILENO, give_up_after - note_after)) return true;
  if (interrupted()) throw Stop{130, {}};
  note(output, join("mica: nothing came on stdin in ", give_up_after.count() / 1000,
                    " s: continuing with the prompt alone (-f - waits without a limit)"));
  return false;
}

/// Opens a file or a packed directory. For a name or another folder the error says how to get a file.
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
          ". A model is a GGUF file, hf.co/ORG/REPO, or a short name (mica list --known); of a folder of "
          "safetensors mica convert makes a file",
          hub::near_published(path));
  }
}

}  // namespace

gguf::Document open_document(const Verb& verb) {
  if (remote::is_url(verb.model_path)) return open_remote(verb.model_path);
  if (!verb.model_path.empty()) return open_file(verb.model_path);
  MICA_CHECK(!embedded_model().empty(), usage,
             "no model was given, and this program has no bundled one; see mica ", verb.about.name,
             " --help");
  return gguf::parse(embedded_model(), "the bundled model");
}

std::optional<std::string> joined(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

void PromptOptions::add_to(Flags& flags) {
  flags.group("Prompt");
  flags.words(words, "PROMPT", "the prompt");
  flags.text("-p,--prompt", prompt, "TEXT", "the prompt");
  flags.text("-f,--file,--prompt-file", prompt_file, "FILE", "read the prompt from a file; - is stdin");
  flags.toggle("-e,--escape", escape, "\\n, \\t and the like in the prompt are escapes, as in C");
  flags.at_end([this](std::vector<std::string>&) {
    MICA_CHECK(!prompt || words.empty(), usage, "a prompt was given twice: as a word and with --prompt.");
  });
}

std::optional<std::string> PromptOptions::full_prompt() const {
  std::optional<std::string> text = prompt ? prompt : joined(words);
  if (!prompt_file.empty()) text = text_and_prompt(read_text(prompt_file), text.value_or(""));
  if (text && escape) text = unescaped(*text);
  return text;
}

std::optional<std::string> prompt_with_stdin(const AnswerVerb& verb) {
  const std::optional<std::string> prompt = verb.full_prompt();
  const bool is_taken = verb.prompt_file == "-" || verb.system_prompt_file == "-";
  if (!prompt || is_taken || !is_piped(STDIN_FILENO) || !stdin_begins(verb)) return prompt;
  return text_and_prompt(read_text("-"), *prompt);
}

void IdsOptions::add_to(Flags& flags) {
  flags.group("Ids");
  flags.text("--ids", ids, "LIST", "token ids, separated by commas");
  flags.text("--ids-file", ids_file, "FILE", "token ids from a file; commas, blanks or lines between them");
}

std::vector<TokenId> IdsOptions::parsed() const {
  const int sources = !ids.empty() + !ids_file.empty() + !words.empty();
  MICA_CHECK(sources < 2, usage, "ids were given twice; words, --ids and --ids-file exclude each other");
  std::string text = ids_file.empty() ? ids : read_text(ids_file);
  for (const std::string& word : words) text += join(word, " ");
  std::vector<TokenId> parsed;
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
    parsed.push_back(id);
    at = next;
  }
  return parsed;
}

}  // namespace mica::program
