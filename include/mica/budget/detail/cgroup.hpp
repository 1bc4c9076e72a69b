// SPDX-License-Identifier: Apache-2.0
//
// Where the control groups of this process keep their files: Linux, versions 1 and 2, read below a root
// folder so that a test can have its own /proc and /sys.
//
//   /proc/self/cgroup      "0::/user.slice/app"               which group, version 2
//                          "4:memory:/user.slice/app"         which group, version 1, by controller
//   /proc/self/mountinfo   "... / /sys/fs/cgroup ... - cgroup2 cgroup2 rw"   where its tree is mounted
#pragma once

#include "mica/io/detail/descriptor.hpp"

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include <fcntl.h>

namespace mica::budget::detail {

/// The text of a small file; empty when it cannot be read. Stops at 4 MiB: a mount table is never that long.
[[nodiscard]] inline std::optional<std::string> read_text(const std::string& path) {
  constexpr std::size_t max = std::size_t{4} << 20;
  const io::detail::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  char block[4096];
  for (std::size_t n = sizeof block; n == sizeof block && text.size() < max;) {
    n = file.read_at(text.size(), std::as_writable_bytes(std::span(block)));
    if (n < sizeof block && errno != 0) return std::nullopt;
    text.append(block, n);
  }
  return text;
}

/// Takes the text before the first `separator` off the front, and the separator with it.
[[nodiscard]] inline std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

/// The number at the start of `text`; empty when there is none ("max", "-1") or it is too large.
[[nodiscard]] inline std::optional<std::uint64_t> number_at(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

/// The number in a file that holds one.
[[nodiscard]] inline std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto text = read_text(path);
  return text ? number_at(*text) : std::nullopt;
}

/// The number after `key` at the start of one of the lines of `text`.
[[nodiscard]] inline std::optional<std::uint64_t> number_of(std::string_view text,
                                                            std::string_view key) noexcept {
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (line.starts_with(key)) return number_at(line.substr(key.size()));
  }
  return std::nullopt;
}

/// Whether a list such as "rw,memory,cpu" has the word.
[[nodiscard]] inline bool lists(std::string_view words, std::string_view word) noexcept {
  while (!words.empty()) {
    if (take_until(words, ',') == word) return true;
  }
  return false;
}

/// A path of a mount table with its \ooo escapes undone.
[[nodiscard]] inline std::string unescaped(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) &&
        octal(text[i + 3])) {
      out.push_back(
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

/// Where a tree of groups is mounted, and which group is its top there (a container sees its own group
/// mounted).
struct CgroupMount {
  std::string top;
  std::string path;
};

/// The mount of version 2 (`controller` empty) or of a version 1 controller.
[[nodiscard]] inline std::optional<CgroupMount> find_mount(std::string_view mountinfo,
                                                           std::string_view controller) {
  while (!mountinfo.empty()) {
    std::string_view line = take_until(mountinfo, '\n');
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view kind = line.substr(dash + 3);
    const std::string_view type = take_until(kind, ' ');
    const std::string_view source = take_until(kind, ' ');
    const bool wanted = controller.empty() ? type == "cgroup2" : type == "cgroup" && lists(kind, controller);
    if (!wanted || source.empty()) continue;
    for (int field = 0; field < 3; ++field) static_cast<void>(take_until(line, ' '));  // ids and device
    const std::string_view top = take_until(line, ' ');
    return CgroupMount{unescaped(top), unescaped(take_until(line, ' '))};
  }
  return std::nullopt;
}

/// The group of this process in version 2 (`controller` empty) or for a version 1 controller.
[[nodiscard]] inline std::optional<std::string> find_group(std::string_view cgroup,
                                                           std::string_view controller) {
  while (!cgroup.empty()) {
    std::string_view line = take_until(cgroup, '\n');
    const std::string_view number = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    const bool wanted =
        controller.empty() ? number == "0" && controllers.empty() : lists(controllers, controller);
    if (wanted) return std::string(line);
  }
  return std::nullopt;
}

/// The folders of this process's group and of every group above it, the innermost first; none without such a
/// tree.
[[nodiscard]] inline std::vector<std::string> cgroup_folders(const std::string& root,
                                                             std::string_view controller) {
  const auto mountinfo = read_text(root + "/proc/self/mountinfo");
  const auto cgroup = read_text(root + "/proc/self/cgroup");
  if (!mountinfo || !cgroup) return {};
  const auto mount = find_mount(*mountinfo, controller);
  auto group = find_group(*cgroup, controller);
  if (!mount || !group) return {};
  if (mount->top != "/") {  // the part of the path above the mounted group is not visible here
    const bool below = group->starts_with(mount->top) &&
                       (group->size() == mount->top.size() || (*group)[mount->top.size()] == '/');
    *group = below ? group->substr(mount->top.size()) : std::string();
  }
  if (*group == "/" || group->find("/..") != std::string::npos) group->clear();
  std::vector<std::string> folders;
  for (;;) {
    folders.push_back(root + mount->path + *group);
    if (group->empty()) return folders;
    const std::size_t parent = group->rfind('/');
    group->resize(parent == std::string::npos ? 0 : parent);
  }
}

}  // namespace mica::budget::detail
