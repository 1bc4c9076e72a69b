// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the configuration file of the program: refused by an error that names the line, or values that
// are read again as they were when they are written as texts in quotes.

#include "config_file.hpp"
#include "fuzz/input.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mica::fuzz::configuration_fuzz {
namespace {

/// A literal text where it may be one, else with escapes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const bool escape = c == '"' || c == '\\';
    if (escape) out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out + '"';
}

void run(std::string_view text) {
  static const Folder folder;
  const std::string path = folder.write("config.toml", text);
  accepted([&] {
    const program::ConfigFile read(path);
    std::string written;
    for (const auto& entry : read.entries()) {
      require(entry.line > 0 && entry.line <= 1 + text.size(), "an entry has a line");
      if (entry.key.empty()) {
        written += join("[", entry.section, "]\n");
        continue;
      }
      written += entry.key + " = ";
      for (std::size_t i = 0; i < entry.values.size(); ++i)
        written += join(i > 0 ? ", " : entry.is_list ? "[" : "", quoted(entry.values[i]));
      if (entry.is_list) written += entry.values.empty() ? "[]" : "]";
      written += '\n';
    }
    const program::ConfigFile again(folder.write("again.toml", written));
    require(again.entries().size() == read.entries().size(), "values that were written are read again");
    for (std::size_t i = 0; i < read.entries().size(); ++i) {
      const auto &a = read.entries()[i], &b = again.entries()[i];
      require(a.section == b.section && a.key == b.key && a.values == b.values && a.is_list == b.is_list,
              "values are read again as they were");
    }
  });
}

}  // namespace

MICA_FUZZ_TARGET(configuration) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // namespace mica::fuzz::configuration_fuzz
