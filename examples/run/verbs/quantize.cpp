// SPDX-License-Identifier: Apache-2.0
//
// A file in other formats: mica quantize IN OUT TYPE. --dry-run shows the format of each tensor and writes
// nothing; formats are those of llama-quantize.
#include "mica_tools/quantize/quantize.hpp"

#include "columns.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/exec/team.hpp"
#include "mica/runtime/stats.hpp"
#include "mica_tools/encode/encode.hpp"
#include "mica_tools/quantize/importance.hpp"
#include "packed_input.hpp"
#include "progress.hpp"
#include "recipe_words.hpp"
#include "running_options.hpp"
#include "suggestion.hpp"
#include "verb.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace mica::program {
namespace {

class Quantize final : public Verb {
 public:
  Quantize()
      : Verb({"quantize", "write a file in other formats: IN OUT TYPE",
              "mica quantize model-f16.gguf model-q4.gguf Q4_K_M --dry-run"}) {}
  int run() override;

  std::vector<std::string> words;
  std::size_t threads = 0;
  bool dry_run = false;
  std::string imatrix;  // a file
  std::string output_tensor_type;
  std::string token_embedding_type;
  std::vector<std::string> tensor_types;  // REGEX=TYPE
  bool pure = false;
  bool leave_output_tensor = false;
  bool keep_split = false;
  bool allow_requantize = false;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    flags.group("Quantize");
    flags.words(words, "OUT TYPE", join("the output file, then the type: ", recipe_words(), " COPY"));
    flags.word_likens("TYPE", names_in(recipe_words() + " COPY"));
    const std::vector<std::string> formats = names_in(format::known_codecs.written());
    flags.toggle("--dry-run", dry_run, "show every tensor with its format and size, write nothing");
    flags.text("--imatrix", imatrix, "FILE", "importance matrix: errors in important columns count more");
    flags
        .text("--output-tensor-type", output_tensor_type, "TYPE",
              "of output.weight, or of the embedding if it is tied")
        .likens(formats);
    flags.text("--token-embedding-type", token_embedding_type, "TYPE", "of the token embedding")
        .likens(formats);
    flags.texts("--tensor-type", tensor_types, "REGEX=TYPE",
                "of tensors whose name matches a regular expression; may be repeated");
    flags.toggle("--pure", pure, "the main format of TYPE for all matrices");
    flags.toggle("--leave-output-tensor", leave_output_tensor, "output.weight stays as it is");
    flags.toggle("--keep-split", keep_split, "as many shards as the input has");
    flags.toggle("--allow-requantize", allow_requantize,
                 "also tensors that are quantised already; to F32, F16 and BF16 they need no flag");
    add_threads(flags, threads, "Quantize");
  }
};

/// The words after the input: OUT TYPE, and perhaps a number of threads; a dry run needs only TYPE.
struct Words {
  std::string out;
  std::string type;
  std::size_t threads = 0;
};

bool is_type(const std::string& word) {
  return quantize::find_recipe(word) || word == "COPY" || word == "copy";
}

Words words_of(const Quantize& verb) {
  std::vector<std::string> words = verb.words;
  Words out;
  out.threads = verb.threads;
  MICA_CHECK(!verb.model_path.empty() && !words.empty(), usage,
             "quantize: needed: IN OUT TYPE, such as model-f16.gguf model-q4.gguf Q4_K_M");
  if (words.size() > 1 && !is_type(words[0])) {
    out.out = words.front();
    words.erase(words.begin());
  }
  out.type = words.front();
  if (words.size() > 1) {
    const std::string& text = words[1];
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.threads);
    MICA_CHECK(words.size() == 2 && error == std::errc() && end == text.data() + text.size(), usage,
               "quantize: '", escaped(words.back()), "' is one word too many; needed: IN OUT TYPE");
  }
  MICA_CHECK(!out.out.empty() || verb.dry_run, usage,
             "quantize: the output file or the type is missing; needed: IN OUT TYPE");
  return out;
}

std::optional<quantize::Recipe> recipe_of(const std::string& type) {
  if (type == "COPY" || type == "copy") return std::nullopt;
  const auto recipe = quantize::find_recipe(type);
  if (recipe) return recipe;
  refuse_unknown("quantize: unknown type", type, quantize::recipes, recipe_words() + " COPY");
}

/// " Did you mean ...?", or nothing.
std::string near_format(const std::string& text) {
  std::vector<std::string_view> names;
  format::Encodable::for_each([&](auto type) { names.push_back(decltype(type)::type::name); });
  return suggestion(text, names);
}

format::Id format_of(std::string_view flag, const std::string& text) {
  const auto found = format::known.find(text);
  MICA_CHECK(found, usage, flag, ": unknown type '", escaped(text),
             "'; can be written: ", format::known_codecs.written(), ".", near_format(text));
  return found->id;
}

/// The first --tensor-type whose expression is found in a name, searched as by llama-quantize: with patterns
/// in lower case.
class Overrides {
 public:
  explicit Overrides(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) add(text);
  }
  [[nodiscard]] std::optional<format::Id> operator()(std::string_view name) const {
    for (const auto& [pattern, id] : patterns_) {
      if (std::regex_search(name.begin(), name.end(), pattern)) return id;
    }
    return std::nullopt;
  }

 private:
  static constexpr std::size_t max_pattern = 1000;

  void add(const std::string& text) {
    const std::size_t equals = text.rfind('=');
    MICA_CHECK(equals != text.npos && equals > 0, usage, "--tensor-type '", escaped(text),
               "': needed: NAME=TYPE");
    std::string pattern = text.substr(0, equals);
    // The library recurses over the whole expression.
    MICA_CHECK(pattern.size() <= max_pattern, usage, "--tensor-type: the expression has ", pattern.size(),
               " characters; at most ", max_pattern, " are allowed");
    std::transform(pattern.begin(), pattern.end(), pattern.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const format::Id id = format_of("--tensor-type", text.substr(equals + 1));
    try {
      patterns_.emplace_back(std::regex(pattern), id);
    } catch (const std::regex_error&) {
      raise(ErrorCode::usage, "--tensor-type: '", escaped(pattern), "' is not a valid regular expression");
    }
  }

  std::vector<std::pair<std::regex, format::Id>> patterns_;
};

quantize::JobOptions job_options(const Quantize& verb, const Words& words,
                                 const std::optional<quantize::Importance>& importance) {
  quantize::JobOptions job;
  job.recipe = recipe_of(words.type);
  job.mix.pure = verb.pure;
  job.mix.leave_head = verb.leave_output_tensor;
  if (!verb.output_tensor_type.empty())
    job.mix.head = format_of("--output-tensor-type", verb.output_tensor_type);
  if (!verb.token_embedding_type.empty())
    job.mix.embedding = format_of("--token-embedding-type", verb.token_embedding_type);
  if (!verb.tensor_types.empty()) job.mix.format_of = Overrides(verb.tensor_types);
  job.importance = importance ? &*importance : nullptr;
  job.importance_file = verb.imatrix;
  job.allow_requantize = verb.allow_requantize;
  return job;
}

double bits_per_weight(std::uint64_t bytes, std::uint64_t elements) {
  return elements == 0 ? 0.0 : 8.0 * static_cast<double>(bytes) / static_cast<double>(elements);
}

void show_plan(const quantize::Job& job) {
  const auto tensors = job.document().tensors();
  std::string out;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const gguf::TensorInfo& tensor = tensors[i];
    before += tensor.bytes;
    out += join(at_left(escaped(tensor.name), 36), " ", at_left(tensor.shape(), 20), " ",
                at_left(std::string(tensor.format.name), 7), " ", at_left(std::string(job.format(i).name), 7),
                " ", job.bytes(i), "\n");
  }
  const std::uint64_t after = job.bytes();
  print(join(out, tensors.size(), " tensors, ", job.elements(), " weights: ", before, " bytes, ",
             fixed(bits_per_weight(before, job.elements()), 2), " bits per weight -> ", after, " bytes, ",
             fixed(bits_per_weight(after, job.elements()), 2), " bits per weight\n"));
}

std::string plan_json(const quantize::Job& job) {
  const auto tensors = job.document().tensors();
  std::string list;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const gguf::TensorInfo& tensor = tensors[i];
    before += tensor.bytes;
    std::string shape;
    for (std::size_t d = 0; d < tensor.n_dims; ++d) shape += join(d == 0 ? "" : ",", tensor.dims[d]);
    list += join(i == 0 ? "" : ",", "{\"name\":", json_string(tensor.name), ",\"shape\":[", shape,
                 "],\"from\":\"", tensor.format.name, "\",\"to\":\"", job.format(i).name,
                 "\",\"bytes\":", job.bytes(i), "}");
  }
  return join("\"tensors\":[", list, "],\"weights\":", job.elements(), ",\"bytes_before\":", before,
              ",\"bytes\":", job.bytes(),
              ",\"bits_per_weight\":", fixed(bits_per_weight(job.bytes(), job.elements()), 4));
}

/// The beginning of the names of shards: OUT without ".gguf".
std::string shard_prefix(const std::string& out) {
  return out.ends_with(".gguf") ? out.substr(0, out.size() - 5) : out;
}

void write_outcome(const Quantize& verb, const quantize::Job& job, const Words& words) {
  exec::Team team(words.threads == 0 ? budget::cpu_limits().threads() : words.threads, log_to_stderr(verb));
  Progress progress(verb);
  const auto on_values = progress.counter("quantizing", job.elements(), WorkUnit::weights);
  if (verb.keep_split && job.document().sources().size() > 1) {
    quantize::quantize_shards(job, shard_prefix(words.out), team, on_values);
  } else {
    quantize::quantize(job, words.out, team, on_values);
  }
}

int Quantize::run() {
  const Words out = words_of(*this);
  std::optional<quantize::Importance> importance;
  if (!imatrix.empty()) importance = quantize::read_importance(imatrix);
  quantize::JobOptions wanted = job_options(*this, out, importance);
  const gguf::Document document = gguf::open(model_path);
  MICA_CHECK(!keep_split || !document.packed(), usage, document.path(),
             ": --keep-split: a packed directory has no shards; leave the flag out");
  const quantize::Job job(document, std::move(wanted));
  if (dry_run) {
    if (json) {
      print(join("{", plan_json(job), "}\n"));
    } else {
      show_plan(job);
    }
    return 0;
  }
  const Stopwatch watch;
  budget::Ledger ledger(budget::memory_limits().usable());
  if (document.packed())  // damage is not copied
    verify_packed(*this, document, BufferAllocator(ledger, budget::Account::io_buffers));
  write_outcome(*this, job, out);
  if (json) {
    print(join("{", plan_json(job), ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  }
  last_note(*this, [&] {
    return join(cell_text(out.out), ": ", job.bytes(), " bytes of tensors, ",
                fixed(bits_per_weight(job.bytes(), job.elements()), 2), " bits per weight, ",
                fixed(watch.seconds(), 1), " s");
  });
  return 0;
}

}  // namespace

AnyVerb make_quantize() { return std::make_unique<Quantize>(); }

}  // namespace mica::program
