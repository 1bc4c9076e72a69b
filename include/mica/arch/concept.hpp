// SPDX-License-Identifier: Apache-2.0
//
// The concept of family descriptors: a name that files use, the blocks of its layers, and a Config made from
// metadata.
#pragma once

#include "mica/arch/config.hpp"
#include "mica/gguf/document.hpp"

#include <concepts>
#include <string_view>

namespace mica {

/// A model family. config() raises mica::Error naming the key that is missing or out of range, or the feature
/// that is not supported.
// clang-format off
template <class A>
concept Arch = requires(const gguf::Document& document) {
  typename A::Blocks;                                    // a TypeList of the blocks of its layers
  { A::name } -> std::convertible_to<std::string_view>;  // general.architecture
  { A::config(document) } -> std::same_as<arch::Config>;  // with every number checked
};
// clang-format on

}  // namespace mica
