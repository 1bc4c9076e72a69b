// SPDX-License-Identifier: Apache-2.0
//
// What the fuzz targets share: the input as numbers and texts, a file that a reader opens by its path, and
// the two ways in which a target ends: a promise of the library that does not hold ends the process, a
// mica::Error is an answer.
#pragma once

#include "mica/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace mica::fuzz {

using Target = int (*)(const std::uint8_t* data, std::size_t size);

/// The targets of a program that replays corpora (replay.cpp).
struct Replayed {
  const char* name;
  Target target;
  const Replayed* next;
  static inline const Replayed* first = nullptr;

  Replayed(const char* its_name, Target its_target) noexcept
      : name(its_name), target(its_target), next(first) {
    first = this;
  }
};

/// Begins the function of a target, of (data, size): the one of libFuzzer, or one of those that are replayed.
#ifdef MICA_FUZZ_REPLAY
#define MICA_FUZZ_TARGET(name)                                             \
  static int target_##name(const std::uint8_t* data, std::size_t size);    \
  static const mica::fuzz::Replayed replayed_##name{#name, target_##name}; \
  static int target_##name(const std::uint8_t* data, std::size_t size)
#else
#define MICA_FUZZ_TARGET(name) \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#endif

/// Takes numbers and texts from the front of an input; behind its end all bytes are zero.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : bytes_(reinterpret_cast<const char*>(data), size) {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::string_view rest() const { return bytes_; }

  template <class T>
  requires std::is_arithmetic_v<T>
  [[nodiscard]] T number() {
    T value{};
    const std::string_view taken = text(sizeof value);
    if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());  // the lowest bytes first
    return value;
  }
  [[nodiscard]] std::uint8_t byte() { return number<std::uint8_t>(); }
  /// A number below n, of at most 16 bits. Requires n > 0.
  [[nodiscard]] std::size_t below(std::size_t n) {
    return (n > 256 ? number<std::uint16_t>() : std::size_t{byte()}) % n;
  }
  [[nodiscard]] bool flag() { return (byte() & 1U) != 0; }
  /// At most n bytes.
  [[nodiscard]] std::string_view text(std::size_t n) {
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(out.size());
    return out;
  }
  /// A text after its length, which is below 256.
  [[nodiscard]] std::string_view text() { return text(byte()); }

 private:
  std::string_view bytes_;
};

/// Ends the process unless the promise holds.
inline void require(bool holds, const std::string& promise) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", escaped(promise, 2000).c_str());
  std::abort();
}

/// An error has one text, short enough for a line of a log and without control bytes.
inline void check_error(const Error& error) {
  require(!error.message().empty() && error.message().size() < 4096, "an error has a short text");
  for (const char c : error.message()) {
    const auto byte = static_cast<unsigned char>(c);
    require((byte >= 0x20 && byte != 0x7F) || c == '\n', "an error has no control bytes: " + error.message());
  }
}

/// False where f raises a mica::Error; other exceptions end the process.
template <class F>
bool accepted(F&& f) {
  try {
    f();
    return true;
  } catch (const Error& error) {
    check_error(error);
    return false;
  }
}

/// A folder for the files of a process, removed when it ends in order.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mica-fuzz-XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, "there is a folder for temporary files");
    path_ = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  [[nodiscard]] std::string path(std::string_view name = {}) const { return (path_ / name).string(); }
  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view bytes) const {
    std::ofstream out(path(name), std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    require(out.good(), "a temporary file can be written");
    return path(name);
  }

 private:
  std::filesystem::path path_;
};

[[nodiscard]] inline std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}
[[nodiscard]] inline std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace mica::fuzz
