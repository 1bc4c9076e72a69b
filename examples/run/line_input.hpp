// SPDX-License-Identifier: Apache-2.0
//
// Lines that people type: with editing and a history where libedit is there and stdin is a terminal, plain
// otherwise.
#pragma once

#include "console.hpp"
#include "options.hpp"

#include <memory>
#include <optional>
#include <string>

namespace mica::program {

class LineInput {
 public:
  explicit LineInput(const Options& options);
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;
  ~LineInput();

  /// The next line without its end; nothing when the input is over, an empty line after an interrupt.
  [[nodiscard]] std::optional<std::string> read(const std::string& prompt);
  /// Lines up to one that ends with three quotes, when `line` begins with three; else the line itself.
  [[nodiscard]] std::string with_quoted_lines(std::string line);

 private:
  struct Editor;

  std::unique_ptr<Editor> editor_;  // null: plain lines
  LineReader lines_;
  bool prompts_;
};

}  // namespace mica::program
