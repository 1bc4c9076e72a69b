// SPDX-License-Identifier: Apache-2.0
//
// Slots are numbers that clients give to their sequences. A slot has no memory of its own: it is the tokens of
// its last sequence, whose keys and values are in the prefix cache. Saved slots are session files.
#pragma once

#include "mica/base/error.hpp"
#include "mica/io/detail/path.hpp"
#include "mica_tools/serve/refusal.hpp"
#include "mica_tools/serve/served_model.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mica::serve {

/// What is done with a slot.
enum class SlotAction : std::uint8_t {
  save,     ///< writes the prefix to a file
  restore,  ///< puts the prefix of a file into the prefix cache
  erase,    ///< removes the tokens from the slot; the prefix cache keeps them until memory is needed
};

/// A slot of a model, and what is to be done with it.
struct SlotTask {
  std::shared_ptr<const ServedModel> model;  // as Service::model() returned it
  std::size_t slot = 0;                      // below SchedulerOptions::parallel
  SlotAction action = SlotAction::save;      // what is to be done
  std::string file = {};                     // its name in the folder of slots; erase: none
};

/// What was done.
struct SlotResult {
  std::size_t tokens = 0;   // saved, restored or erased
  std::uint64_t bytes = 0;  // of the file
  double seconds = 0;       // that it took
};

/// Raises Refusal (invalid) for a name that is not one segment of a path.
inline void check_file_name(std::string_view name) {
  constexpr std::size_t max_bytes = 200;  // of 255; a file that is being written has a longer name
  const bool bad = name.find_first_of("/\\") != name.npos || io::detail::has_controls(name);
  if (!bad && !name.empty() && name.size() <= max_bytes && name != "." && name != "..") return;
  Refusal refusal(Cause::invalid,
                  join("filename: found '", escaped(name, 60), "' of ", name.size(), " bytes, allowed: 1 to ",
                       max_bytes, " bytes without /, \\ and control characters; not . and .."));
  refusal.field = "filename";
  throw refusal;
}

}  // namespace mica::serve
