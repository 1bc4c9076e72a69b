// SPDX-License-Identifier: Apache-2.0
//
// What machines of one target of Highway's have or lack: ByteDots, MatrixUnit. No Highway header.
#pragma once

#include <atomic>

namespace mica::kernel::highway {

/// T::here(): whether this machine has it.
template <class T>
class MachineOption {
 public:
  /// Whether kernels use it: the default is whether the machine has it. Any thread.
  [[nodiscard]] static bool used() noexcept { return state().load(std::memory_order_relaxed); }
  /// For the rest of the process. Only what is here() may be used.
  static void use(bool used) noexcept { state().store(used, std::memory_order_relaxed); }

 private:
  static std::atomic<bool>& state() noexcept {
    static std::atomic<bool> used{T::here()};
    return used;
  }
};

}  // namespace mica::kernel::highway
