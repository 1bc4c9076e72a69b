// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/error.hpp"

namespace mica::program {
namespace {

/// The meaning of a code, for programs that read JSON.
std::string_view type_of(int code) noexcept {
  constexpr std::string_view types[] = {"usage", "file", "budget", "unsupported", "limit"};  // from 2 on
  if (code >= 2 && code <= 6) return types[code - 2];
  return code == 129 || code == 130 ? "interrupted" : "failed";
}

}  // namespace

int report_error(int code, std::string_view message, ErrorForm form, std::string_view before) {
  code = code_after_signals(code);
  if (!message.empty()) write_error_line(message, before);
  if (form == ErrorForm::text || (form == ErrorForm::json && has_printed())) return code;
  try {
    print(join("{\"error\":{\"code\":", code, ",\"type\":\"", type_of(code),
               "\",\"message\":", json_string(message.empty() ? type_of(code) : message), "}}\n"));
  } catch (const Stop&) {  // stdout is closed: the code is enough
  } catch (const Error&) {
  }
  return code;
}

}  // namespace mica::program
