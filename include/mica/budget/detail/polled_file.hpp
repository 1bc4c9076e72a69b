// SPDX-License-Identifier: Apache-2.0
//
// A small file of the kernel that is read repeatedly through one descriptor.
#pragma once

#include "mica/io/detail/descriptor.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <fcntl.h>
#include <unistd.h>

namespace mica::budget::detail {

class PolledFile {
 public:
  PolledFile() noexcept = default;
  /// One that cannot be opened stays empty.
  explicit PolledFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

  /// Its first bytes now, as many as fit; none when it cannot be read.
  template <std::size_t N>
  [[nodiscard]] std::string_view read(std::array<char, N>& into) const noexcept {
    if (!fd_) return {};
    const ::ssize_t n = ::pread(fd_.get(), into.data(), into.size(), 0);
    return n <= 0 ? std::string_view() : std::string_view(into.data(), static_cast<std::size_t>(n));
  }

 private:
  io::detail::Descriptor fd_;
};

}  // namespace mica::budget::detail
