// SPDX-License-Identifier: Apache-2.0
//
// A file for measurements: mica synth SHAPE TYPE OUT writes the shape of a published model with random
// weights, so that measurements can be repeated without the model.
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/synth/shapes.hpp"
#include "mica_tools/synth/synthetic_model.hpp"
#include "progress.hpp"
#include "recipe_words.hpp"
#include "running_options.hpp"
#include "suggestion.hpp"
#include "verb.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {
namespace {

class Synth final : public Verb {
 public:
  Synth()
      : Verb({"synth", "a file of a published model's shape with random weights: SHAPE TYPE OUT",
              "mica synth llama-8b Q4_K_M llama-8b.gguf"}) {}
  int run() override;

  std::vector<std::string> words;
  bool dry_run = false;
  std::size_t threads = 0;
  arch::Counts counts;
  bool mtp = false;

 private:
  void declare(Flags& flags) override {
    flags.group("Synth");
    flags.words(
        words, "SHAPE TYPE OUT",
        join("the shape, the type of its weights (a type that quantize writes), the output file. Shapes: ",
             arch::shape_names()));
    flags.word_likens("SHAPE", names_in(arch::shape_names()));
    flags.word_likens("TYPE", names_in(recipe_words()));
    flags.toggle("--dry-run", dry_run, "show its size, write nothing");
    constexpr Range<std::size_t> fewer{0, std::numeric_limits<std::uint32_t>::max()};
    flags.number("--layers", counts.layers, fewer, "layers of the file; 0: those of the shape");
    flags.number("--experts", counts.experts, fewer, "experts of each layer; 0: those of the shape");
    flags.number("--vocab", counts.n_vocab, fewer, "entries of the vocabulary; 0: those of the shape");
    flags.toggle("--mtp", mtp, "with a head for multi-token prediction (llama, qwen35 and qwen35moe)");
    add_threads(flags, threads, "Synth");
  }
};

/// A count that a flag asks for is within that of the shape.
void check_count(std::string_view flag, std::size_t count, std::size_t min, std::size_t max,
                 const arch::Shape& shape) {
  if (count == 0) return;
  MICA_CHECK(max != 0, usage, "synth: ", flag, ": ", shape.name, " has none");
  MICA_CHECK(count >= min && count <= max, usage, "synth: ", flag, " of ", shape.name, ": found ", count,
             ", allowed ", min, " to ", max);
}

arch::Shape shape_of(const std::string& word, const arch::Counts& counts, bool mtp) {
  const auto shape = arch::find_shape(word);
  if (!shape) refuse_unknown("synth: unknown shape", word, arch::shapes, arch::shape_names());
  check_count("--layers", counts.layers, std::max({shape->interval, shape->window_interval, std::size_t{1}}),
              shape->layers, *shape);
  check_count("--experts", counts.experts, shape->experts_used, shape->experts, *shape);
  check_count("--vocab", counts.n_vocab, quantize::min_vocabulary, shape->n_vocab, *shape);
  arch::Shape out = arch::with_counts(*shape, counts);
  MICA_CHECK(!mtp || arch::can_have_mtp(out), usage, "synth: --mtp: ", out.name, " is of the family ",
             out.arch, "; its files have no head for multi-token prediction");
  out.mtp_layers = mtp ? 1 : 0;
  return out;
}

quantize::Recipe recipe_of(const std::string& word) {
  if (const auto recipe = quantize::find_recipe(word)) return *recipe;
  refuse_unknown("synth: unknown type", word, quantize::recipes, recipe_words());
}

/// Sizes of the file, as fields of JSON.
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

void write_file(const Synth& verb, const quantize::SyntheticModel& model, const std::string& path) {
  exec::Team team(verb.threads == 0 ? budget::cpu_limits().threads() : verb.threads, log_to_stderr(verb));
  Progress progress(verb);
  model.write(path, team, progress.counter("writing", model.file_bytes()));
}

int Synth::run() {
  const std::size_t needed = dry_run ? 2 : 3;
  MICA_CHECK(
      words.size() >= needed && words.size() <= 3, usage,
      "synth: needed: SHAPE TYPE OUT, such as llama-8b Q4_K_M llama-8b.gguf. Shapes: ", arch::shape_names());
  const arch::Shape shape = shape_of(words[0], counts, mtp);
  const quantize::SyntheticModel model(shape, recipe_of(words[1]));
  if (dry_run) {
    print(json ? join("{", facts_json(shape, model), "}\n") : facts_text(shape, model) + "\n");
    return 0;
  }
  const Stopwatch watch;
  write_file(*this, model, words[2]);
  if (json)
    print(join("{", facts_json(shape, model), ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  note(*this,
       join(cell_text(words[2]), ": ", facts_text(shape, model), ", ", fixed(watch.seconds(), 1), " s"));
  return 0;
}

}  // namespace

AnyVerb make_synth() { return std::make_unique<Synth>(); }

}  // namespace mica::program
