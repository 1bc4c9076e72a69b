// SPDX-License-Identifier: Apache-2.0
#include "help_text.hpp"

#include "columns.hpp"
#include "topics.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace mica::program {
namespace {

constexpr std::size_t column = 34;  // where explanations begin
constexpr std::size_t width = 100;

/// `text` in lines of `width`, from `column` on; `head` is to the left of the first one, or above it.
std::string explained(const std::string& head, std::string_view text) {
  const std::string margin(column, ' ');
  std::string out = "  " + head, line;
  const bool beside = out.size() + 2 <= column;
  out += beside ? std::string(column - out.size(), ' ') : "\n" + margin;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!line.empty() && column + line.size() + 1 + word.size() > width) {
      out += line + "\n" + margin;
      line.clear();
    }
    line += line.empty() ? "" : " ";
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + line + "\n";
}

std::string explained(const Flag& flag) {
  std::string head;
  for (const std::string& name : flag.names) head += join(head.empty() ? "" : ", ", name);
  for (const std::string& name : flag.off) head += join(", ", name);
  if (!flag.is_switch()) head += join(" ", flag.type);
  std::string text = flag.about;
  const bool common = flag.key() == "help" || flag.key() == "config" || flag.key() == "print-config";
  const std::string standard = flag.is_switch() ? "" : flag.standard.value_or("");
  if (!standard.empty()) text += join(" [", standard, "]");
  if (!common) text += join(" (", flag.variable(), ")");
  return explained(head, text);
}

std::string usage_line(std::string_view verb, Flags& flags) {
  std::string line = join("  mica ", verb);
  if (const Flag* const model = flags.model_flag())
    line += join(" [", model->type == "FILE" ? std::string("MODEL") : model->type, "]");
  if (flags.words_to() != nullptr) line += join(" [", flags.words_type(), " ...]");
  return line + " [FLAG ...]\n";
}

std::string topics_text() {
  std::string text;
  for (const Topic& topic : topics())
    text += join("  ", at_left(std::string(topic.name), 13), topic.summary, "\n");
  return text;
}

}  // namespace

std::string help_text(const std::vector<AnyVerb>& verbs) {
  std::string text = "mica: language models on small machines\n\n";
  std::size_t longest = 0;
  for (const AnyVerb& verb : verbs) longest = std::max(longest, verb->about.name.size());
  for (const AnyVerb& verb : verbs) {
    const Verb::About& about = verb->about;
    text +=
        join("  mica ", about.name, std::string(longest + 2 - about.name.size(), ' '), about.summary, "\n");
  }
  return text +
         "\n"
         "  mica run                             a story by the bundled model\n"
         "  mica run model.gguf \"Hello\"          an answer; mica model.gguf \"Hello\" is the same\n"
         "  mica plan model.gguf --memory 6GiB   does it fit?\n\n"
         "mica help VERB shows the flags of a verb. Topics of mica help TOPIC:\n" +
         topics_text();
}

std::string help_text(Verb& verb) {
  Flags flags = verb.flags();
  const Verb::About& about = verb.about;
  std::string text = join(about.summary, "\n\n", usage_line(about.name, flags), "  ", about.example, "\n");
  if (flags.words_to() != nullptr) text += "\n" + explained(flags.words_type(), flags.words_about());
  std::vector<std::string> groups;
  for (const Flag& flag : flags.all()) {
    if (std::find(groups.begin(), groups.end(), flag.group) == groups.end()) groups.push_back(flag.group);
  }
  for (const std::string& group : groups) {
    text += join("\n", group, ":\n");
    for (const Flag& flag : flags.all()) {
      if (flag.group == group) text += explained(flag);
    }
  }
  return text;
}

}  // namespace mica::program
