// SPDX-License-Identifier: Apache-2.0
//
// How an optional part (mica::text, mica::checksum) reaches a program: as a table of functions. Every unit
// that is built with the part enters the table before main() begins, and every unit of the program finds it.
// So no class and no inline function depends on MICA_HAS_...: units built with a part and units built without
// it may be linked together, in any order.
#pragma once

#include <atomic>

namespace mica {

/// The functions of a part, for the whole program.
/// Limit: an object that is made before main() by a unit built without the part may not find it.
template <class Functions>
class Linked {
 public:
  /// Registers the table, which must live as long as the program.
  explicit Linked(const Functions& functions) noexcept {
    entered_.store(&functions, std::memory_order_release);
  }

  /// Null where no unit of the program was built with the part.
  [[nodiscard]] static const Functions* functions() noexcept {
    return entered_.load(std::memory_order_acquire);
  }

 private:
  inline static constinit std::atomic<const Functions*> entered_{nullptr};
};

}  // namespace mica
