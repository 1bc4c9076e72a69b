// SPDX-License-Identifier: Apache-2.0
//
// What a constraint promises: which tokens may come next. Generation asks it before each token is sampled,
// and a draft is checked against it before the model runs it. constraint::Grammar is one for texts of a
// language; NoConstraint allows everything and costs nothing.
//
//   text   {"name":"A            mask   every token that keeps the text within the language
//   text   {                     forced "name":"     no token has to be sampled, and none costs a step
#pragma once

#include "mica/base/token_id.hpp"
#include "mica/constraint/token_mask.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string>

namespace mica {

/// Allows tokens. The mask has a bit for each entry of the vocabulary and is empty; tokens that end the text
/// are in it where the text may end. allowed() is false when it cannot tell, as when a limit is reached:
/// why() says it, and the answer ends with an error. advance() is false, and changes nothing, for a token
/// that is not allowed; after a token that ends the text nothing is allowed. rewind(n) takes the last n
/// tokens back, n at most as many as were advanced. forced() writes tokens that follow with certainty, the
/// ending one among them, and returns their number: generation takes them without the model's logits.
/// active() is the same from the beginning of an answer to its end. It is false for a constraint that allows
/// everything, such as an empty constraint::Any: generation calls no other member then.
/// A copy continues on its own, for another answer. One thread at a time for an object and its copies.
// clang-format off
template <class C>
concept Constraint = std::copy_constructible<C> &&
    requires(C constraint, const C& constant, constraint::TokenMask& mask, TokenId token, std::size_t n,
             std::span<TokenId> tokens) {
  { C::constrains } -> std::convertible_to<bool>;                       // false: allows everything, always
  { constant.active() } noexcept -> std::same_as<bool>;                 // false: this one allows everything
  { constraint.allowed(mask) } noexcept -> std::same_as<bool>;
  { constraint.advance(token) } noexcept -> std::same_as<bool>;
  { constraint.rewind(n) } noexcept -> std::same_as<void>;
  { constraint.forced(tokens) } noexcept -> std::same_as<std::size_t>;  // at most tokens.size()
  { constant.why() } -> std::same_as<std::string>;                      // after allowed() was false
};
// clang-format on

/// Allows every token.
struct NoConstraint {
  // Required by Constraint
  static constexpr bool constrains = false;
  [[nodiscard]] constexpr bool active() const noexcept { return false; }
  [[nodiscard]] bool allowed(constraint::TokenMask& /*mask*/) noexcept { return true; }
  [[nodiscard]] bool advance(TokenId /*token*/) noexcept { return true; }
  void rewind(std::size_t /*n*/) noexcept {}
  [[nodiscard]] std::size_t forced(std::span<TokenId> /*tokens*/) noexcept { return 0; }
  [[nodiscard]] std::string why() const { return {}; }
};
static_assert(Constraint<NoConstraint>);

namespace constraint {

/// The base of constraints that force no tokens.
struct Unforced {
  // Required by Constraint
  static constexpr bool constrains = true;
  [[nodiscard]] constexpr bool active() const noexcept { return true; }
  [[nodiscard]] std::size_t forced(std::span<TokenId> /*tokens*/) noexcept { return 0; }
  [[nodiscard]] std::string why() const { return "the constraint allows no token here"; }
};

}  // namespace constraint
}  // namespace mica
