// SPDX-License-Identifier: Apache-2.0
//
// An object whose type is one of a closed list, chosen at run time.
#pragma once

#include "mica/base/visit.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <variant>

namespace mica::detail {

template <class List>
class OneOf;

/// Move-only; the object keeps its address. A call costs a jump.
template <class... Ts>
class OneOf<TypeList<Ts...>> {
 public:
  /// Of the type at this place of the list: make(Type<T>) returns a std::unique_ptr<T>.
  template <class Make>
  OneOf(std::size_t place, Make&& make) {
    visit_at(TypeList<Ts...>{}, place, [&]<class T>(Type<T> type) {
      T* const object = make(type).release();
      object_ = object;
      owner_ = {object, [](void* owned) { delete static_cast<T*>(owned); }};
    });
  }

  /// f(object)
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit([&](auto* object) -> decltype(auto) { return f(*object); }, object_);
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
    T* const* const object = std::get_if<T*>(&object_);
    return object == nullptr ? nullptr : *object;
  }

 private:
  std::variant<Ts*...> object_;
  std::unique_ptr<void, void (*)(void*)> owner_{nullptr, nullptr};
};

}  // namespace mica::detail
