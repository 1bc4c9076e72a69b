// SPDX-License-Identifier: Apache-2.0
//
// The verbs of the program, and the flags that each takes.
#pragma once

#include "flags.hpp"
#include "options.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

/// What is known of a verb before its function is called.
struct VerbText {
  std::string_view name;
  std::string_view about;
  std::string_view example;
  void (*add_flags)(Flags&, Options&);
};

[[nodiscard]] std::span<const VerbText> all_verbs() noexcept;
/// Null when there is none of that name.
[[nodiscard]] const VerbText* find_verb(std::string_view name) noexcept;
[[nodiscard]] std::vector<std::string> verb_names();

/// Flags that every verb has; their values are for the parser alone.
struct CommonFlags {
  bool help = false;
  bool print_config = false;
  std::string config;
};

/// Declares all flags of a verb; values go to `options` and `common`, which outlive the flags.
[[nodiscard]] Flags flags_of(const VerbText& verb, Options& options, CommonFlags& common);

// Groups of flags, of which verbs are made: those that run a model
namespace flag_group {

void model(Flags& flags, Options& o);
void prompt(Flags& flags, Options& o);
void chat(Flags& flags, Options& o);
void stop_text(Flags& flags, Options& o);
void session(Flags& flags, Options& o);
void running(Flags& flags, Options& o);
void governor(Flags& flags, Options& o);
void answer(Flags& flags, Options& o);
void threads(Flags& flags, Options& o, std::string group);

}  // namespace flag_group

}  // namespace mica::program
