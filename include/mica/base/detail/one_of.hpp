// SPDX-License-Identifier: Apache-2.0
//
// An object whose type is one of a closed list, chosen at run time.
#pragma once

#include "mica/base/visit.hpp"

#include <cstddef>
#include <type_traits>
#include <utility>

namespace mica::detail {

template <class List>
class OneOf;

/// Move-only; the object keeps its address. A call costs a comparison for each type before the right one.
template <class First, class... Others>
class OneOf<TypeList<First, Others...>> {
  using List = TypeList<First, Others...>;

 public:
  /// Of the type at this place of the list: make(Type<T>) returns a std::unique_ptr<T>.
  template <class Make>
  OneOf(std::size_t place, Make&& make) : place_(place) {
    visit_at(List{}, place, [&]<class T>(Type<T> type) {
      object_ = make(type).release();
      destroy_ = [](void* object) { delete static_cast<T*>(object); };
    });
  }
  OneOf(OneOf&& other) noexcept
      : place_(other.place_), object_(std::exchange(other.object_, nullptr)), destroy_(other.destroy_) {}
  OneOf& operator=(OneOf&& other) noexcept {
    std::swap(place_, other.place_);
    std::swap(object_, other.object_);
    std::swap(destroy_, other.destroy_);
    return *this;
  }
  ~OneOf() {
    if (object_ != nullptr) destroy_(object_);
  }

  /// f(object); of all types the same result, which can be made without arguments.
  template <class F>
  auto visit(F&& f) const {
    using Result = std::invoke_result_t<F&, First&>;
    const auto call = [&]<class T>(Type<T>) { return f(*static_cast<T*>(object_)); };
    if constexpr (std::is_void_v<Result>) {
      visit_at(List{}, place_, call);
    } else {
      Result result{};
      visit_at(List{}, place_, [&](auto type) { result = call(type); });
      return result;
    }
  }
  /// f(object), and `otherwise` where f does not take such an object.
  template <class F, class R>
  R visit_or(R otherwise, F&& f) const {
    return visit([&]<class T>(T& object) -> R {
      if constexpr (std::is_invocable_v<F&, T&>) return f(object);
      return otherwise;
    });
  }
  /// Null where it is another type.
  template <class T>
  [[nodiscard]] const T* get() const noexcept {
    const T* found = nullptr;
    visit_at(List{}, place_, [&]<class U>(Type<U>) {
      if constexpr (std::is_same_v<T, U>) found = static_cast<const T*>(object_);
    });
    return found;
  }

 private:
  std::size_t place_;
  void* object_ = nullptr;
  void (*destroy_)(void* object) = nullptr;
};

}  // namespace mica::detail
