// SPDX-License-Identifier: Apache-2.0
//
// The library's own files as text, for tests that hold them to the layout.

#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// One file under include/.
struct SourceFile {
  std::string name;  // as it is included: mica/kv/contiguous.hpp
  std::vector<std::string> lines;

  bool ends_with(std::string_view end) const { return std::string_view(name).ends_with(end); }

  /// What its #include directives name, without quotes or angles.
  std::vector<std::string> includes() const {
    std::vector<std::string> found;
    for (std::string_view line : lines) {
      while (line.starts_with('#') || line.starts_with(' ')) line.remove_prefix(1);
      if (!line.starts_with("include ")) continue;
      const auto begin = line.find_first_of("<\"");
      const auto end = line.find_last_of(">\"");
      if (begin < end && end != line.npos) found.emplace_back(line.substr(begin + 1, end - begin - 1));
    }
    return found;
  }
};

/// The room of an included path: kv for mica/kv/contiguous.hpp, convert for mica_tools/convert/rope.hpp, mica_jinja for
/// all of that library, nothing for mica/mica.hpp or <vector>.
inline std::string room_of(std::string_view name) {
  if (name.starts_with("mica_jinja/")) return "mica_jinja";
  const bool ours = name.starts_with("mica/") || name.starts_with("mica_tools/");
  if (!ours) return {};
  const std::string_view inside = name.substr(name.find('/') + 1);
  const auto slash = inside.find('/');
  return slash == inside.npos ? std::string() : std::string(inside.substr(0, slash));
}

/// Whether an included path is a front door: of a library, or of a room of mica.
inline bool is_door(std::string_view name) {
  if (name == "mica_tools/tools.hpp" || name == "mica_jinja/jinja.hpp") return true;
  return name.starts_with("mica/") && std::count(name.begin(), name.end(), '/') == 1;
}

/// Every .hpp and .cpp of the library, sorted by name.
inline std::vector<SourceFile> library_files() {
  const std::filesystem::path root = std::filesystem::path(MICA_SOURCE) / "include";
  std::vector<SourceFile> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".hpp" && extension != ".cpp") continue;
    SourceFile file{entry.path().lexically_relative(root).generic_string(), {}};
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

}  // namespace mica::test
