// SPDX-License-Identifier: Apache-2.0
//
// A Hugging Face folder as one GGUF file: mica convert DIR OUT.gguf [TYPE]. Everything is decided before the
// first byte is written, and --dry-run shows it.
#include "budgeted.hpp"
#include "columns.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/detail/near_name.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/convert/conversion.hpp"
#include "mica_tools/encode/encode.hpp"
#include "progress.hpp"
#include "verb.hpp"
#include "verbs.hpp"

#include <optional>
#include <string>
#include <vector>

namespace mica::program {
namespace {

class Convert final : public Verb {
 public:
  Convert()
      : Verb({"convert", "a Hugging Face folder as one file: DIR OUT TYPE",
              "mica convert Qwen3-0.6B qwen3.gguf --dry-run"},
             Needs::local) {}
  int run() override;

  std::vector<std::string> words;
  bool dry_run = false;
  std::string name;

 private:
  void declare(Flags& flags) override {
    flags.group("Model");
    flags.model("-m,--model", model_path, "DIR",
                "folder of a model as published: config.json, a tokenizer, safetensors files");
    flags.group("Convert");
    flags.words(words, "OUT TYPE", "the file to write, then the type of matrices, if not that of the folder");
    flags.word_likens("TYPE", names_in(format::known_codecs.written()));
    flags.toggle("--dry-run", dry_run, "show every tensor with its type and size, write nothing");
    flags.text("--name", name, "NAME", "general.name of the model; else the name of the folder");
  }
};

/// The words after the folder: OUT and perhaps TYPE; for a dry run TYPE alone, or nothing.
struct Words {
  std::string out;
  std::optional<format::Id> type;
};

format::Id type_of(const std::string& word) {
  const auto found = format::known.find(word);
  if (found && format::known_codecs.writes(found->id)) return found->id;
  io::NearName near(word);
  format::Encodable::for_each([&](auto type) { near.offer(std::string(decltype(type)::type::name)); });
  raise(ErrorCode::usage, "convert: unknown type '", escaped(word), "'",
        near.best() ? join("; did you mean ", *near.best(), "?") : ".",
        " Can be written: ", format::known_codecs.written(), "; mixtures: mica quantize");
}

Words words_of(const Convert& verb) {
  constexpr std::string_view needed = "needed: DIR OUT.gguf [TYPE], such as Qwen3-0.6B qwen3.gguf BF16";
  const std::vector<std::string>& words = verb.words;
  MICA_CHECK(!verb.model_path.empty(), usage, "convert: ", needed);
  MICA_CHECK(words.size() <= 2, usage, "convert: '", escaped(words.size() > 2 ? words[2] : std::string()),
             "' is one word too many; ", needed);
  const bool type_alone = words.size() == 1 && verb.dry_run && format::known.find(words[0]) != nullptr;
  Words out;
  if (!words.empty() && !type_alone) out.out = words[0];
  if (type_alone || words.size() == 2) out.type = type_of(words.back());
  MICA_CHECK(!out.out.empty() || verb.dry_run, usage, "convert: no name for the outcome; ", needed);
  return out;
}

void show_plan(const convert::Conversion& conversion) {
  std::string out;
  for (const convert::TensorPlan& tensor : conversion.tensors()) {
    out += join(at_left(escaped(tensor.name), 36), " ", at_left(tensor.shape(), 20), " ",
                at_left(std::string(format::name(tensor.format)), 7), " ", tensor.bytes(), "\n");
  }
  for (const std::string& name : conversion.skipped()) out += join("left out: ", escaped(name, 200), "\n");
  print(join(out, conversion.arch(), ": ", conversion.tensors().size(), " tensors, ",
             conversion.tensor_bytes(), " bytes\n"));
}

std::string plan_json(const convert::Conversion& conversion) {
  std::string tensors, skipped;
  for (const convert::TensorPlan& tensor : conversion.tensors()) {
    std::string shape;
    for (const std::uint64_t dim : tensor.dims) shape += join(shape.empty() ? "" : ",", dim);
    tensors += join(tensors.empty() ? "" : ",", "{\"name\":", json_string(tensor.name),
                    ",\"from\":", json_string(tensor.source), ",\"shape\":[", shape, "],\"to\":\"",
                    format::name(tensor.format), "\",\"bytes\":", tensor.bytes(), "}");
  }
  for (const std::string& name : conversion.skipped())
    skipped += join(skipped.empty() ? "" : ",", json_string(name));
  return join("\"architecture\":\"", conversion.arch(), "\",\"tensors\":[", tensors, "],\"left_out\":[",
              skipped, "],\"bytes\":", conversion.tensor_bytes());
}

/// Raises if mica could not open the file that would be made of the folder, for example because a tensor or a
/// number is missing.
void check_outcome(const Convert& verb, const convert::Conversion& conversion) {
  const gguf::Document document = conversion.outcome(verb.model_path);
  OpenOptions open;
  open.n_ctx = 16;
  static_cast<void>(plan_run(document, question_of(open)));
}

void write_outcome(const Convert& verb, const convert::Conversion& conversion, const std::string& path) {
  Progress progress(verb);
  std::uint64_t done = 0;
  const std::uint64_t all = conversion.tensor_bytes();
  conversion.write(path, [&](std::size_t i) {
    if (interrupted()) throw Stop{130, {}};
    const convert::TensorPlan& tensor = conversion.tensors()[i];
    progress.update(
        {.what = "converting", .done = done, .all = all, .unit = WorkUnit::bytes, .more = tensor.name});
    done += tensor.bytes();
  });
}

int Convert::run() {
  if (!words.empty()) refuse_own_input(words.front());
  const Words out = words_of(*this);
  const auto conversion = convert::Conversion::open(model_path, {.format = out.type, .name = name});
  for (const std::string& line : conversion.notes()) note(*this, join("mica: ", line));
  check_outcome(*this, conversion);
  const Stopwatch watch;
  if (!dry_run) write_outcome(*this, conversion, out.out);
  if (json) {
    print(join("{", plan_json(conversion), ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  } else if (dry_run) {
    show_plan(conversion);
  }
  if (dry_run) return 0;
  const std::size_t left_out = conversion.skipped().size();
  last_note(*this, [&] {
    return join(
        cell_text(out.out), ": ", conversion.arch(), ", ", conversion.tensors().size(), " tensors, ",
        conversion.tensor_bytes(), " bytes",
        left_out == 0 ? std::string() : join("; ", left_out, " tensors left out (--dry-run lists them)"),
        ", ", fixed(watch.seconds(), 1), " s");
  });
  return 0;
}

}  // namespace

AnyVerb make_convert() { return std::make_unique<Convert>(); }

}  // namespace mica::program
