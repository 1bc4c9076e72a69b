// SPDX-License-Identifier: Apache-2.0
//
// A line on stderr for each request, and for each answer: logfmt, or JSON.
//
//   time=2026-11-25T12:00:00Z request=POST path=/v1/chat/completions status=200 ms=812
//   time=2026-11-25T12:00:00Z answer=7 model=llama-1b reason=length prompt=512 cached=480 tokens=64 ...
#pragma once

#include "mica_tools/http/request_reply.hpp"
#include "mica_tools/serve/options.hpp"

#include <cstdint>

namespace mica::program {

enum class LogForm : std::uint8_t { none, logfmt, json };

/// Any thread.
void log_request(LogForm form, const serve::HttpRequest& request, int status, double seconds);
void log_answer(LogForm form, const serve::AnswerNote& note);

}  // namespace mica::program
