// SPDX-License-Identifier: Apache-2.0
//
// The pacer of --pace.
#pragma once

#include "answer_options.hpp"
#include "mica_tools/pace/pacer.hpp"

#include <memory>

namespace mica::program {

/// Null without --pace. Raises ErrorCode::unsupported where there is no sensor for it.
[[nodiscard]] inline std::shared_ptr<pace::Pacer> pacer_of(const AnswerVerb& verb) {
  if (verb.pace.empty()) return nullptr;
  return std::make_shared<pace::Pacer>(pace::Pace::parse(verb.pace, "--pace"));
}

}  // namespace mica::program
