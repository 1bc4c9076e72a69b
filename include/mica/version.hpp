// SPDX-License-Identifier: Apache-2.0
//
// Which mica this is. The version is decided in CMakeLists.txt; a test holds these numbers against it, so
// that a copied folder of headers still knows its own.
#pragma once

#include <string_view>

namespace mica {

/// `version` joins the three numbers by points.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
inline constexpr std::string_view version = "0.1.0";

}  // namespace mica

/// The version as a part of names: of symbols that a compiled library has (kernel/highway/abi.hpp).
#define MICA_VERSION_NAME v0_1_0
