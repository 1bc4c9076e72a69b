// SPDX-License-Identifier: Apache-2.0
//
// The files of a repository at one commit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mica::hub {

/// A file of a repository, or of its snapshot on this machine.
struct File {
  std::string path;         // in the repository
  std::uint64_t bytes = 0;  // of a listing at least 1
  std::string sha256 = {};  // 64 hexadecimal digits; of a snapshot the name of its blob, or empty
};

struct Listing {
  std::string repo;         // as the hub spells it
  std::string commit;       // of the requested revision
  std::vector<File> files;  // GGUF files alone
};

}  // namespace mica::hub
