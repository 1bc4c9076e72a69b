// SPDX-License-Identifier: Apache-2.0
//
// The chat format that options and file determine. The template engine takes seconds to compile, so only one
// unit includes it.
#pragma once

#include "answer_options.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/text/vocabulary.hpp"
#include "mica_tools/chat/chat_renderer.hpp"
#include "mica_tools/serve/chat_functions.hpp"

#include <memory>
#include <optional>
#include <string>

namespace mica {
class ChatTemplate;
}

namespace mica::program {

class ChatFormat {
 public:
  /// --chat-template, --chat-template-file, the file's own template, or the built-in format that fits best; with
  /// the variables of --think and --chat-template-kwargs. Raises if an option names a template that cannot be
  /// used; never because of the file.
  ChatFormat(const ChatOptions& options, const gguf::Metadata& metadata, const text::Vocabulary& vocabulary);

  /// The format as a function. Raises ErrorCode::failed if the template raises an error, limit if it takes too
  /// long.
  [[nodiscard]] ChatRenderer renderer() const;
  /// The same for a server, whose conversations have variables of their own. Raises as renderer(), and usage for
  /// variables that are no JSON object.
  [[nodiscard]] serve::ChatFunctions functions() const;
  /// Whether the model thinks, if its template has a variable for that; empty: the template decides.
  void set_thinking(std::optional<bool> thinking);

  /// Whether an option or a known template of the file names the format.
  [[nodiscard]] bool is_sure() const noexcept;
  /// Why the file's own template is not used; empty when it is.
  [[nodiscard]] const std::string& note() const noexcept;
  /// The template, or the name of the built-in format.
  [[nodiscard]] const std::string& source() const noexcept;
  [[nodiscard]] bool has_template() const noexcept;
  [[nodiscard]] bool has_thinking_switch() const noexcept;

 private:
  std::shared_ptr<const ChatTemplate> template_;
};

/// Raises ErrorCode::usage, beginning with `where`, if a text is no JSON object with variables of a template.
void check_template_variables(const std::string& json, const std::string& where);

}  // namespace mica::program
