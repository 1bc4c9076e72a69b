// SPDX-License-Identifier: Apache-2.0
//
// Texts of a command line and of a file, a block of them at a time.
#pragma once

#include "mica/io/file.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica::program {

/// Words, then the lines of a file, in passes. Each pass reads the file again, so that memory holds a block of
/// it; stdin and files of the size 0, such as pipes, are in memory as a whole.
class TextBlocks {
 public:
  static constexpr std::size_t max_texts = 256;                     // of a block
  static constexpr std::size_t max_bytes = std::size_t{256} << 10;  // after which no further text is added
  static constexpr std::size_t max_line = std::size_t{1} << 20;     // bytes

  /// lines: a file with a text on each line; -: stdin; empty: none. Raises ErrorCode::file for the file.
  TextBlocks(std::vector<std::string> words, const std::string& lines);

  /// The next texts of the pass. None: the pass is over, and the next call begins another one. Raises
  /// ErrorCode::limit for a line of more than max_line bytes.
  [[nodiscard]] std::vector<std::string> next();

 private:
  [[nodiscard]] std::optional<std::string> next_text();
  [[nodiscard]] std::optional<std::string> next_line();
  /// Appends bytes of the file to buffer_; false at its end.
  [[nodiscard]] bool read_more();

  std::vector<std::string> words_;
  std::string name_;              // of the file
  std::optional<io::File> file_;  // where it can be read again
  std::string buffer_;            // bytes of the file; without file_, all of them
  std::size_t taken_ = 0;         // bytes of buffer_ that were lines
  std::uint64_t read_ = 0;        // bytes of file_ that came into buffer_
  std::size_t words_taken_ = 0;
  std::size_t lines_taken_ = 0;
};

}  // namespace mica::program
