// SPDX-License-Identifier: Apache-2.0
//
// The state of a sequence in layers that keep no cache: floats of fixed number, whatever the length. It cannot be rewound,
// so copies at earlier positions stand beside it:
//
//   | state after all tokens | copy after 512 | copy after 1,024 | ...      position 0 is a state of zeros, and free
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/assert.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mica::kv {

/// All layers' state of one sequence. What lies where in it is the model's business.
template <Allocator A>
class RecurrentState {
 public:
  /// checkpoints: copies at most. All memory is taken here; raises ErrorCode::budget when the allocator refuses.
  RecurrentState(A allocator, std::size_t floats, std::size_t checkpoints)
      : floats_(floats), memory_(allocator) {
    copies_.resize(floats == 0 ? 0 : checkpoints);
    auto memory = alloc::Buffer<float, A>::make(allocator, floats * (1 + copies_.size()));
    MICA_CHECK(memory, budget, "recurrent state: ", (1 + copies_.size()) * floats * sizeof(float),
               " bytes for ", copies_.size(), " checkpoints do not fit the memory budget; use fewer");
    memory_ = std::move(*memory);
    clear();
  }

  [[nodiscard]] std::size_t size() const noexcept { return floats_; }
  [[nodiscard]] float* data() noexcept { return memory_.data(); }

  /// Keeps a copy of the state as that after `tokens` tokens; the copy that was made first goes.
  void save(std::size_t tokens) noexcept {
    if (copies_.empty()) return;
    Copy& copy = copies_[next_];
    copy = {tokens, true};
    move(place(next_), 0);
    next_ = (next_ + 1) % copies_.size();
  }

  /// The state becomes the latest one known that is not after `tokens`; answers how many tokens it holds.
  std::size_t restore(std::size_t tokens) noexcept {
    std::size_t best = copies_.size();
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (copies_[i].tokens > tokens) copies_[i].filled = false;  // of a text that is given up
      if (!copies_[i].filled) continue;
      if (best == copies_.size() || copies_[i].tokens > copies_[best].tokens) best = i;
    }
    if (best == copies_.size()) {
      clear();
      return 0;
    }
    move(0, place(best));
    return copies_[best].tokens;
  }

 private:
  struct Copy {
    std::size_t tokens = 0;
    bool filled = false;
  };

  [[nodiscard]] std::size_t place(std::size_t copy) const noexcept { return (1 + copy) * floats_; }
  void clear() noexcept {
    if constexpr (!A::dry) std::fill_n(memory_.data(), floats_, 0.0f);
  }
  void move(std::size_t to, std::size_t from) noexcept {
    if constexpr (!A::dry) std::copy_n(memory_.data() + from, floats_, memory_.data() + to);
  }

  std::size_t floats_;
  alloc::Buffer<float, A> memory_;  // (1 + checkpoints, floats)
  std::vector<Copy> copies_;
  std::size_t next_ = 0;
};

}  // namespace mica::kv
