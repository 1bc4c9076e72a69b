// SPDX-License-Identifier: Apache-2.0
//
// The model inside the program: the bytes of examples/models/fairy.gguf, placed there by the
// assembler. A tree without that file builds a program without a default model.

#pragma once

#include <cstddef>
#include <span>

namespace mica::program {

/// The bytes of the bundled GGUF file, aligned to 64; empty when the program was built without one.
std::span<const std::byte> embedded_model() noexcept;

}  // namespace mica::program
