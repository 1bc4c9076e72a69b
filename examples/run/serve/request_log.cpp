// SPDX-License-Identifier: Apache-2.0
#include "request_log.hpp"

#include "console.hpp"
#include "json_text.hpp"

#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace mica::program {
namespace {

/// A value that is text, or a number as it is.
struct Value {
  Value(std::string_view of) : text(of), is_text(true) {}
  Value(std::uint64_t number) : text(std::to_string(number)) {}
  Value(double seconds) : text(fixed(1000 * seconds, 1)) {}  // in milliseconds

  std::string text;
  bool is_text = false;
};
using Line = std::initializer_list<std::pair<std::string_view, Value>>;

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[24];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// logfmt quotes what has a blank, a quote or an equals sign, as JSON does.
std::string logfmt_value(std::string_view text) {
  const bool plain = !text.empty() && text.find_first_of(" \"=\\") == text.npos && is_json_text(text);
  std::string json = json_string(text);
  return plain && json.size() == text.size() + 2 ? std::string(text) : json;
}

void write(LogForm form, const Line& line) {
  std::string out = form == LogForm::json ? "{\"time\":\"" + now_text() + "\"" : "time=" + now_text();
  for (const auto& [name, value] : line) {
    if (form == LogForm::json) {
      out += join(",\"", name, "\":", value.is_text ? json_string(value.text) : value.text);
    } else {
      out += join(" ", name, "=", value.is_text ? logfmt_value(value.text) : value.text);
    }
  }
  write_error(out + (form == LogForm::json ? "}\n" : "\n"));
}

}  // namespace

void log_request(LogForm form, const serve::HttpRequest& request, int status, double seconds) {
  if (form == LogForm::none) return;
  write(form, {{"request", std::string_view(request.method)},
               {"path", std::string_view(request.path)},
               {"status", static_cast<std::uint64_t>(status)},
               {"ms", seconds}});
}

void log_answer(LogForm form, const serve::AnswerNote& note) {
  if (form == LogForm::none) return;
  const serve::Ended& ended = note.ended;
  write(form, {{"answer", note.id},
               {"model", note.model},
               {"reason", note.failure.empty() ? name(ended.reason) : note.failure},
               {"prompt", std::uint64_t{ended.prompt_tokens}},
               {"cached", std::uint64_t{ended.cached_tokens}},
               {"tokens", std::uint64_t{ended.answer_tokens}},
               {"queued_ms", ended.queued_seconds},
               {"prompt_ms", ended.timings.prompt.seconds},
               {"answer_ms", ended.timings.predicted.seconds}});
}

}  // namespace mica::program
