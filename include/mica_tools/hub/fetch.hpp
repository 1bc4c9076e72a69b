// SPDX-License-Identifier: Apache-2.0
//
// A download as a request: the files, the folder, and functions to notify. No network is used here: the
// program makes the request, and the module with the network executes it (download.hpp).
#pragma once

#include "mica_tools/hub/listing.hpp"
#include "mica_tools/hub/name.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mica::hub {

struct Fetch {
  Name name;                    // the repository and the revision
  std::string commit;           // of that revision
  std::vector<File> files;      // each with its size and sum
  std::string cache;            // the folder
  std::size_t connections = 4;  // at the same time
};

/// Functions that a download calls, on the thread that began it.
struct Watch {
  /// Bytes so far of all files, those of earlier runs included.
  std::function<void(std::uint64_t done)> progress;
  /// Whether the download should stop; called several times a second.
  std::function<bool()> stop;
  /// A sentence for the user.
  std::function<void(const std::string& text)> note;
};

}  // namespace mica::hub
