// SPDX-License-Identifier: Apache-2.0
//
// The policies that a command line may choose, as words. model/chosen.hpp makes a Transformer of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mica::model {

/// Policies by name, as command lines spell them.
struct Choice {
  std::string kv = "segmented";      // kv/any_storage.hpp
  std::string evict = "none";        // kv/any_eviction.hpp
  std::string weights = "resident";  // paging/any_pager.hpp
  std::uint64_t weights_bytes = 0;   // for "streamed": what stays in memory and the ring; 0: the least
  std::string cache_type_k = "F16";  // kv/elements.hpp
  std::string cache_type_v = "F16";  // kv/elements.hpp
  std::size_t cache_recent = 128;    // tokens that are not old, of elements that age
  std::string kernels = "exact";     // or "fast8": kernel/fast8.hpp
};

}  // namespace mica::model
