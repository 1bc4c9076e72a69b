// SPDX-License-Identifier: Apache-2.0
#include "man_page.hpp"

#include "completion_script.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/atomic_file.hpp"
#include "topics.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace mica::program {
namespace {

/// A text of which roff takes nothing for a request or an escape.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

/// A text that is filled, in lines of at most 80 bytes.
std::string paragraph(std::string_view text) {
  constexpr std::size_t line_width = 76;
  std::string out, line;
  const auto end_line = [&] {
    if (!line.empty()) out += roff(line) + "\n";
    line.clear();
  };
  for (const std::string& word : names_in(text)) {
    if (line.size() + word.size() > line_width) end_line();
    line += join(line.empty() ? "" : " ", word);
  }
  end_line();
  return out;
}

/// Lines as they are.
std::string literal(std::string_view text) {
  std::string out = ".nf\n";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    out += line.empty() ? std::string(".sp\n") : roff(line) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + ".fi\n";
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

/// "2026-11-24": of SOURCE_DATE_EPOCH, which builds of packages set, else of today.
std::string date() {
  std::time_t seconds = std::time(nullptr);
  if (const char* const fixed = std::getenv("SOURCE_DATE_EPOCH")) {
    std::int64_t given = 0;
    if (read_number(fixed, Range<std::int64_t>{0}, given)) seconds = static_cast<std::time_t>(given);
  }
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

std::string title(std::string_view page) {
  return join(".\\\" Written by: mica help --man\n.TH ", upper(page), " 1 ", date(), " \"mica ",
              MICA_PROGRAM_VERSION, "\" \"User Commands\"\n");
}

std::string bold(std::string_view text) { return join("\\fB", roff(text), "\\fR"); }
std::string italic(std::string_view text) { return join("\\fI", roff(text), "\\fR"); }

std::string entry(const std::string& head, std::string_view text) {
  return join(".TP\n", head, "\n", text.empty() ? std::string("\\&\n") : paragraph(text));
}

std::string entry(const Flag& flag) {
  std::string head;
  for (const std::string& name : flag.names) head += join(head.empty() ? "" : ", ", bold(name));
  for (const std::string& name : flag.off) head += ", " + bold(name);
  if (!flag.is_switch()) head += " " + italic(flag.type);
  std::string text = flag.about;
  const std::string standard = flag.is_switch() ? "" : flag.standard.value_or("");
  if (!standard.empty()) text += join(" [", standard, "]");
  return entry(head, text);
}

std::string synopsis(std::string_view verb, Flags& flags) {
  std::string line = join(".B mica ", roff(verb), "\n");
  if (flags.model_flag() != nullptr) line += "[\\fIMODEL\\fR]\n";
  if (flags.words_to() != nullptr) line += join("[", italic(flags.words_type()), " ...]\n");
  return line + "[\\fIFLAG\\fR ...]\n";
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  io::write_atomically(path.string(),
                       [&](io::AtomicFile& out) { out.write(std::as_bytes(std::span(text))); });
}

}  // namespace

std::string man_page(const std::vector<AnyVerb>& verbs) {
  std::string page = title("mica");
  page += ".SH NAME\nmica \\- language models on small machines\n.SH SYNOPSIS\n";
  page +=
      ".B mica\n[\\fIVERB\\fR]\n[\\fIMODEL\\fR]\n[\\fIWORD\\fR ...]\n[\\fIFLAG\\fR ...]\n.SH DESCRIPTION\n";
  page += paragraph(
      "One program, a verb for each task. mica MODEL TEXT is mica run MODEL TEXT. Every verb has a page of "
      "its "
      "own, such as mica-run(1), and mica VERB --help shows the same.");
  page += ".SH VERBS\n";
  for (const AnyVerb& verb : verbs) page += entry(bold(verb->about.name), verb->about.summary);
  page += ".SH EXAMPLES\n";
  for (const AnyVerb& verb : verbs) page += literal(verb->about.example);
  for (const Topic& topic : topics()) {
    const std::string name = topic.name == "exit-codes" ? "EXIT STATUS" : upper(topic.name);
    page += join(".SH ", name, "\n", literal(topic.text));
  }
  page += ".SH SEE ALSO\n";
  for (std::size_t i = 0; i < verbs.size(); ++i)
    page += join(".BR mica\\-", roff(verbs[i]->about.name), " (1)", i + 1 < verbs.size() ? "," : "", "\n");
  return page;
}

std::string man_page(Verb& verb) {
  Flags flags = verb.flags();
  const Verb::About& about = verb.about;
  std::string page = title(join("mica-", about.name));
  page += join(".SH NAME\nmica\\-", roff(about.name), " \\- ", paragraph(about.summary), ".SH SYNOPSIS\n",
               synopsis(about.name, flags), ".SH EXAMPLE\n", literal(about.example));
  if (flags.words_to() != nullptr)
    page += join(".SH WORDS\n", entry(italic(flags.words_type()), flags.words_about()));
  page += ".SH OPTIONS\n";
  page += paragraph("The default is in brackets. Every option has a variable: MICA_ARG_TOP_K for --top-k.");
  std::vector<std::string> groups;
  for (const Flag& flag : flags.all()) {
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) groups.push_back(flag.group);
  }
  for (const std::string& group : groups) {
    page += join(".SS ", roff(group), "\n");
    for (const Flag& flag : flags.all()) {
      if (flag.group == group) page += entry(flag);
    }
  }
  return page + ".SH EXIT STATUS\n" + literal(find_topic("exit-codes")->text) +
         ".SH SEE ALSO\n.BR mica (1)\n";
}

void write_pages(const std::vector<AnyVerb>& verbs, const std::string& folder) {
  const std::filesystem::path man = std::filesystem::path(folder) / "man" / "man1",
                              completions = std::filesystem::path(folder) / "completions";
  for (const auto& each : {man, completions}) {
    std::error_code error;
    std::filesystem::create_directories(each, error);
    MICA_CHECK(!error, file, each.string(), ": the folder cannot be made: ", error.message());
  }
  write_file(man / "mica.1", man_page(verbs));
  for (const AnyVerb& verb : verbs) write_file(man / join("mica-", verb->about.name, ".1"), man_page(*verb));
  for (const std::string& shell : completion_shells())
    write_file(completions / completion_file(shell), completion_script(shell));
}

}  // namespace mica::program
