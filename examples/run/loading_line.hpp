// SPDX-License-Identifier: Apache-2.0
//
// The line while a model is loaded: the bytes of weights that are read, as the model reports them; where there is
// nothing to read, the seconds alone.
#pragma once

#include "console.hpp"
#include "mica/base/error.hpp"
#include "mica/gguf/document.hpp"
#include "mica/paging/load_progress.hpp"
#include "progress.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace mica::program {

class LoadingLine {
 public:
  /// The options outlive the line, and the line outlives the loading.
  LoadingLine(const OutputOptions& options, const gguf::Document& document)
      : line_(options,
              [this, what = join("loading ", std::filesystem::path(document.path()).filename().string())](
                  double seconds) {
                return WorkState{
                    .what = what, .done = done_, .all = total_, .at = seconds, .unit = WorkUnit::bytes};
              }) {}

  /// What reports to this line; called by the thread that loads.
  [[nodiscard]] LoadProgress report() noexcept {
    return {[](void* self, std::uint64_t done, std::uint64_t total) noexcept {
              auto& line = *static_cast<LoadingLine*>(self);
              line.total_ = total;
              line.done_ = done;
            },
            this, nullptr, [](void*) noexcept { return interrupted().load(); }};
  }

 private:
  std::atomic<std::uint64_t> done_{0}, total_{0};
  Waiting line_;  // last: its thread uses the others
};

}  // namespace mica::program
