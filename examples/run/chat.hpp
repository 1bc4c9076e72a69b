// SPDX-License-Identifier: Apache-2.0
//
// Chat at a terminal or on a pipe: lines in, answers out, commands that begin with a slash.
#pragma once

#include "answer_options.hpp"
#include "chat_format.hpp"
#include "mica/runtime/open.hpp"

#include <optional>
#include <string>

namespace mica::program {

/// Answers messages until the input ends or the user leaves; with --single-turn and a prompt once. Returns
/// the exit code.
int chat(const AnswerVerb& verb);
/// The same with a model that is open.
int chat(const AnswerVerb& verb, Model& model, const std::optional<std::string>& prompt);

/// The format of the conversation; a note says why it is not the model's own.
[[nodiscard]] ChatFormat format_of(const AnswerVerb& verb, const Model& model);

/// Answers one message. Returns the exit code.
int answer_once(const AnswerVerb& verb, Model& model, ChatFormat format, const std::string& prompt);

}  // namespace mica::program
