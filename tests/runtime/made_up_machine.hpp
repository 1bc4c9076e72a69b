// SPDX-License-Identifier: Apache-2.0
//
// A machine of 1,000 MiB whose /proc a test writes.

#pragma once

#include "io/temporary_folder.hpp"

#include <filesystem>
#include <string>

namespace mica::test {

struct MadeUpMachine {
  TemporaryFolder folder;

  MadeUpMachine() {
    std::filesystem::create_directories(folder.path("proc"));
    leave(500);
  }
  /// So many MiB are left.
  void leave(int megabytes) const {
    folder.file("proc/meminfo",
                "MemTotal: 1024000 kB\nMemAvailable: " + std::to_string(megabytes * 1024) + " kB\n");
  }
};

}  // namespace mica::test
