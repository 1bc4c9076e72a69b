// SPDX-License-Identifier: Apache-2.0
//
// The chat format that options and file determine. The template engine takes seconds to compile, so only one
// unit includes it.
#pragma once

#include "answer_options.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/text/marked_messages.hpp"
#include "mica/text/message.hpp"
#include "mica/text/vocabulary.hpp"

#include <memory>
#include <span>
#include <string>

namespace mica::text {
class ChatFormat;
}

namespace mica::program {

class ChatFormat {
 public:
  /// --chat-template, --chat-template-file, the file's own template, or the built-in format that fits best.
  /// Raises if an option names a template that cannot be used; never because of the file.
  ChatFormat(const ChatOptions& options, const gguf::Metadata& metadata, const text::Vocabulary& vocabulary);

  /// The conversation, with the beginning of the assistant's next turn. Control tokens in texts of messages
  /// stay text.
  /// Raises ErrorCode::failed if the template raises an error, limit if it takes too long.
  [[nodiscard]] text::ChatText render(std::span<const text::Message> messages,
                                      const text::Vocabulary& vocabulary) const;

  /// Whether an option or a known template of the file names the format.
  [[nodiscard]] bool is_sure() const noexcept { return sure_; }
  /// Why the file's own template is not used; empty when it is.
  [[nodiscard]] const std::string& note() const noexcept;
  /// Text that ends a turn of the model, if no token does.
  [[nodiscard]] std::string stop() const;
  /// The template, or the name of the built-in format.
  [[nodiscard]] const std::string& source() const noexcept { return source_; }

 private:
  std::shared_ptr<const text::ChatFormat> format_;
  std::string source_;
  bool sure_ = true;
};

}  // namespace mica::program
