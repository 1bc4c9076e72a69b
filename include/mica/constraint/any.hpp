// SPDX-License-Identifier: Apache-2.0
//
// A constraint whose type is not known when the program is compiled, or none: for programs in which some
// answers have a constraint and others have not, such as a server.
#pragma once

#include "mica/constraint/concept.hpp"

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace mica::constraint {

/// A constraint of any type, or none, which allows everything and costs nothing. A copy copies the
/// constraint.
class Any {
 public:
  // Required by Constraint
  static constexpr bool constrains = true;
  [[nodiscard]] bool active() const noexcept { return held_ != nullptr && held_->active(); }
  [[nodiscard]] bool allowed(TokenMask& mask) noexcept {
    if (held_ != nullptr) return held_->allowed(mask);
    for (std::size_t id = 0; id < mask.size(); ++id) mask.insert(static_cast<TokenId>(id));
    return true;
  }
  [[nodiscard]] bool advance(TokenId token) noexcept { return held_ == nullptr || held_->advance(token); }
  void rewind(std::size_t n) noexcept {
    if (held_ != nullptr) held_->rewind(n);
  }
  [[nodiscard]] std::size_t forced(std::span<TokenId> tokens) noexcept {
    return held_ == nullptr ? 0 : held_->forced(tokens);
  }
  [[nodiscard]] std::string why() const { return held_ == nullptr ? std::string() : held_->why(); }

  // Specific to Any
  Any() = default;  // none
  /// Takes a constraint.
  template <class C>
  Any(C constraint) requires(!std::same_as<C, Any>)
      : held_(std::make_unique<Held<C>>(std::move(constraint))) {
    static_assert(Constraint<C>,
                  "mica::constraint::Any: it is made of a mica::Constraint (constraint/concept.hpp)");
  }
  Any(const Any& other) : held_(other.held_ == nullptr ? nullptr : other.held_->clone()) {}
  Any(Any&&) noexcept = default;
  Any& operator=(Any other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  ~Any() = default;

  /// Whether it has an active constraint.
  [[nodiscard]] explicit operator bool() const noexcept { return active(); }

 private:
  struct Base {
    virtual ~Base() = default;
    [[nodiscard]] virtual std::unique_ptr<Base> clone() const = 0;
    [[nodiscard]] virtual bool active() const noexcept = 0;
    [[nodiscard]] virtual bool allowed(TokenMask& mask) noexcept = 0;
    [[nodiscard]] virtual bool advance(TokenId token) noexcept = 0;
    virtual void rewind(std::size_t n) noexcept = 0;
    [[nodiscard]] virtual std::size_t forced(std::span<TokenId> tokens) noexcept = 0;
    [[nodiscard]] virtual std::string why() const = 0;
  };
  template <class C>
  struct Held final : Base {
    explicit Held(C c) : constraint(std::move(c)) {}
    [[nodiscard]] std::unique_ptr<Base> clone() const override { return std::make_unique<Held>(*this); }
    [[nodiscard]] bool active() const noexcept override { return constraint.active(); }
    [[nodiscard]] bool allowed(TokenMask& mask) noexcept override { return constraint.allowed(mask); }
    [[nodiscard]] bool advance(TokenId token) noexcept override { return constraint.advance(token); }
    void rewind(std::size_t n) noexcept override { constraint.rewind(n); }
    [[nodiscard]] std::size_t forced(std::span<TokenId> tokens) noexcept override {
      return constraint.forced(tokens);
    }
    [[nodiscard]] std::string why() const override { return constraint.why(); }

    C constraint;
  };

  std::unique_ptr<Base> held_;
};
static_assert(Constraint<Any>);

}  // namespace mica::constraint
