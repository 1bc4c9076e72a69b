// SPDX-License-Identifier: Apache-2.0
//
// A file in a format that GGUF does not have, as quantize() writes it.

#pragma once

#include "archetype/own_format.hpp"
#include "io/temporary_folder.hpp"
#include "mica/exec/inline.hpp"
#include "mica_tools/quantize/quantize.hpp"
#include "model/tiny_model.hpp"

namespace mica::test {

/// The tiny model with every matrix in OwnFormat, in a file of the folder.
inline std::string in_own_format(const TinyModel& tiny, const TemporaryFolder& folder) {
  quantize::JobOptions wanted{.recipe = quantize::Recipe::Q8_0};
  wanted.mix.format_of = [](std::string_view) { return std::optional(archetype::OwnFormat::id); };
  wanted.codecs = format::row_codecs<archetype::FormatsAndOwn>();
  exec::Inline executor;
  const std::string path = folder.path("own.gguf");
  quantize::quantize(quantize::Job(tiny.document(), wanted), path, executor);
  return path;
}

}  // namespace mica::test
