// SPDX-License-Identifier: Apache-2.0
//
// A layer of a family: its blocks in their order, each with its parameters. A layer may have blocks of any
// type; the model decides which types it can run (WithBlocks).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/block/state_plan.hpp"

#include <any>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::block {

class Layer {
 public:
  /// One block of a layer, whatever its type.
  class Entry {
   public:
    /// A block B with these numbers.
    template <class B>
    [[nodiscard]] static Entry of(typename B::Config config) {
      Entry entry;
      entry.name_ = B::name;
      entry.config_ = Of<B>{std::move(config)};
      entry.plan_ = [](const Entry& self, StatePlan& state) { B::plan(state, *self.config<B>()); };
      return entry;
    }
    [[nodiscard]] std::string_view name() const noexcept { return name_; }  // B::name
    /// Its numbers; null: it is another block.
    template <class B>
    [[nodiscard]] const typename B::Config* config() const noexcept {
      const Of<B>* const found = std::any_cast<Of<B>>(&config_);
      return found == nullptr ? nullptr : &found->config;
    }
    template <class B>
    [[nodiscard]] typename B::Config* config() noexcept {
      return const_cast<typename B::Config*>(std::as_const(*this).template config<B>());
    }
    /// The state of a sequence for it.
    void plan(StatePlan& state) const { plan_(*this, state); }

   private:
    template <class B>
    struct Of {
      typename B::Config config;
    };
    std::string_view name_;
    std::any config_;
    void (*plan_)(const Entry&, StatePlan&) = nullptr;
  };

  /// Adds a block behind the others.
  template <class B>
  typename B::Config& add(typename B::Config config = {}) {
    return *blocks_.emplace_back(Entry::of<B>(std::move(config))).template config<B>();
  }
  /// Adds a block before the others.
  template <class B>
  typename B::Config& add_first(typename B::Config config = {}) {
    return *blocks_.insert(blocks_.begin(), Entry::of<B>(std::move(config)))->template config<B>();
  }
  /// Puts a block in the place of another one, which the layer has.
  template <class Old, class New>
  typename New::Config& replace(typename New::Config config = {}) {
    Entry& entry = entry_of<Old>();
    entry = Entry::of<New>(std::move(config));
    return *entry.template config<New>();
  }
  /// Its numbers; null: the layer has no such block. The first of several.
  template <class B>
  [[nodiscard]] const typename B::Config* find() const noexcept {
    for (const Entry& entry : blocks_) {
      if (const auto* const config = entry.template config<B>()) return config;
    }
    return nullptr;
  }
  template <class B>
  [[nodiscard]] bool has() const noexcept {
    return find<B>() != nullptr;
  }
  /// Its numbers. Raises ErrorCode::usage where the layer has no such block.
  template <class B>
  [[nodiscard]] typename B::Config& get() {
    return *entry_of<B>().template config<B>();
  }
  template <class B>
  [[nodiscard]] const typename B::Config& get() const {
    return const_cast<Layer*>(this)->get<B>();
  }
  [[nodiscard]] const std::vector<Entry>& blocks() const noexcept { return blocks_; }  // in order

 private:
  template <class B>
  [[nodiscard]] Entry& entry_of() {
    for (Entry& entry : blocks_) {
      if (entry.template config<B>() != nullptr) return entry;
    }
    raise(ErrorCode::usage, join("a layer of this model has no block '", B::name, "'"));
  }

  std::vector<Entry> blocks_;
};

}  // namespace mica::block
