// SPDX-License-Identifier: Apache-2.0
//
// A file to measure with: mica synth SHAPE TYPE OUT writes a published model's shape with random weights, so that a
// measurement can be repeated without the model.
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "suggestion.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace mica::program {
namespace {

arch::Shape shape_of(const std::string& word) {
  if (const auto shape = arch::find_shape(word)) return *shape;
  refuse_unknown("synth: unknown shape", word, arch::shapes, arch::shape_names());
}

quantize::Recipe recipe_of(const std::string& word) {
  if (const auto recipe = quantize::find_recipe(word)) return *recipe;
  refuse_unknown("synth: unknown type", word, quantize::recipes, quantize::recipe_names());
}

/// What is about to be written, as fields of JSON.
std::string facts_json(const arch::Shape& shape, const quantize::SyntheticModel& model) {
  return join("\"shape\":", json_string(shape.name), ",\"model\":", json_string(shape.model),
              ",\"tensors\":", model.tensors().size(), ",\"weights\":", model.elements(),
              ",\"bytes\":", model.file_bytes());
}

std::string facts_text(const arch::Shape& shape, const quantize::SyntheticModel& model) {
  const double bits = 8.0 * static_cast<double>(model.file_bytes()) / static_cast<double>(model.elements());
  return join(shape.model, ", random weights: ", model.tensors().size(), " tensors, ", model.elements(),
              " weights, ", model.file_bytes(), " bytes, ", fixed(bits, 2), " bits per weight");
}

void write_file(const Options& options, const quantize::SyntheticModel& model, const std::string& path) {
  exec::Team team(options.threads == 0 ? budget::cpu_limits().threads() : options.threads,
                  log_to_stderr(options));
  Progress progress(options);
  std::uint64_t done = 0;
  const std::uint64_t all = std::max<std::uint64_t>(model.file_bytes(), 1);
  model.write(path, team, [&](std::uint64_t bytes) {
    if (interrupted()) throw Stop{130, {}};
    done += bytes;
    progress.update("writing", done, all);
  });
}

}  // namespace

int synth(const Options& options) {
  const std::vector<std::string>& words = options.words;
  const std::size_t needed = options.dry_run ? 2 : 3;
  MICA_CHECK(
      words.size() >= needed && words.size() <= 3, usage,
      "synth: needed: SHAPE TYPE OUT, such as llama-8b Q4_K_M llama-8b.gguf.  Shapes: ", arch::shape_names());
  const arch::Shape shape = shape_of(words[0]);
  const quantize::SyntheticModel model(shape, recipe_of(words[1]));
  if (options.dry_run) {
    print(options.json ? join("{", facts_json(shape, model), "}\n") : facts_text(shape, model) + "\n");
    return 0;
  }
  const Stopwatch watch;
  write_file(options, model, words[2]);
  if (options.json)
    print(join("{", facts_json(shape, model), ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  note(options,
       join(cell_text(words[2]), ": ", facts_text(shape, model), ", ", fixed(watch.seconds(), 1), " s"));
  return 0;
}

}  // namespace mica::program
