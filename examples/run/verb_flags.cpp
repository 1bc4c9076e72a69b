// SPDX-License-Identifier: Apache-2.0
#include "verb_flags.hpp"

#include "console.hpp"
#include "mica_tools/quantize/recipe.hpp"
#include "mica_tools/synth/shapes.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace mica::program {
namespace flag_group {
namespace {

void output(Flags& flags, Options& o) {
  flags.group("Output");
  flags.toggle("-q,--quiet", o.quiet, "nothing on stderr but errors");
  flags.toggle("-v,--verbose", o.verbose, "also what the library decided by itself");
  flags.toggle("--json", o.json, "one JSON object on stdout, for an error too");
  flags.toggle("--jsonl", o.jsonl, "one JSON object a line");
  flags.choice("-co,--color", o.color,
               {{"auto", ColorMode::automatic},
                {"always", ColorMode::always},
                {"on", ColorMode::always},
                {"never", ColorMode::never},
                {"off", ColorMode::never}},
               "auto", "WHEN", "auto, always, never");
  flags.toggle("--raw-output", o.raw_output,
               "pass control sequences of a model's or template's text to a terminal; else only its colours");
}

void ids(Flags& flags, Options& o) {
  flags.group("Ids");
  flags.text("--ids", o.ids, "LIST", "token ids, separated by commas");
  flags.text("--ids-file", o.ids_file, "FILE", "token ids from a file; commas, blanks or lines between them");
}

void ids_as_words(Flags& flags, Options& o) { flags.words(o.words, "IDS", "token ids"); }

void logits(Flags& flags, Options& o) {
  flags.group("Logits");
  flags.text("--positions", o.positions, "LIST", "last, all, or indexes: 0,5,9");
  flags.toggle("--decode", o.decode, "one token at a time");
  flags.text("-o,--output", o.output, "FILE", "raw little-endian float32 rows");
}

void special(Flags& flags, Options& o) {
  flags.group("Text");
  flags.toggle("--special", o.show_special, "show control tokens");
}

void tokenizing(Flags& flags, Options& o) {
  flags.group("Text");
  flags.words(o.words, "TEXT", "the text");
  flags.text("--text-file", o.text_file, "FILE", "read the text from a file; - is stdin");
  flags.toggle("--add-special", o.add_special, "add BOS and EOS as the vocabulary asks");
  flags.toggle("--parse-special", o.parse_special, "control tokens written out become tokens");
}

void rendering(Flags& flags, Options& o) {
  flags.group("Template");
  flags.text("--template-file", o.template_file, "FILE", "a template instead of a model's");
  flags.text("--messages", o.messages_file, "FILE", "JSON array of messages");
  flags.text("--tools", o.tools_file, "FILE", "JSON array of tools");
  flags.toggle("--no-generation-prompt", o.no_generation_prompt, "do not open the assistant's turn");
  flags.texts("--set", o.set, "NAME=JSON", "one more variable; may be repeated");
  flags.text("--bos", o.bos, "TEXT", "text of the BOS token");
  flags.text("--eos", o.eos, "TEXT", "text of the EOS token");
  flags.text("--now", o.now, "TIME", "the time: 2025-01-15T12:00:00");
}

/// What -c says of a verb with a default of its own.
void context(Flags& flags, std::string about, std::string standard) {
  Flag& flag = *flags.find("-c");
  flag.about = std::move(about);
  flag.standard = std::move(standard);
}

void bench(Flags& flags, Options& o) {
  context(flags, "tokens of context; 0: what the tests need", "0");
  constexpr Range<std::size_t> tokens{0, std::numeric_limits<std::uint32_t>::max()};
  flags.group("Bench");
  flags.numbers("-p,--n-prompt", o.n_prompt, tokens, "prompt lengths to read; 0: none");
  flags.numbers("-n,--n-gen", o.n_gen, tokens, "tokens to write; 0: none");
  flags.numbers("-d,--n-depth", o.n_depth, tokens, "tokens in the context before");
  flags.number("-np,--parallel", o.parallel, {1, 1024}, "sequences that write together; their tokens count");
  flags.number("-r,--repetitions", o.repetitions, {1, 1000}, "runs of each test");
  flags.choice("-o,--output", o.bench_format,
               {{"md", BenchFormat::markdown},
                {"csv", BenchFormat::csv},
                {"json", BenchFormat::json},
                {"jsonl", BenchFormat::jsonl}},
               "md", "FORMAT", "md, csv, json, jsonl");
}

void measure(Flags& flags, Options& o) {
  flags.group("Speed");
  flags.toggle(
      "--measure", o.measure,
      "measure for some seconds what kernels do here with each format, and keep it for mica plan and "
      "mica fit");
}

void own_threads(Flags& flags, Options& o) { threads(flags, o, "Speed"); }

void plan(Flags& flags, Options& o) {
  measure(flags, o);
  flags.group("Plan");
  flags.number("-np,--parallel", o.parallel, {1, 1024}, "sequences at once, each with a context of its own");
  flags.toggle("--solve", o.solve, "all ways to stay within --memory, each with its longest context");
  flags.text("--svg", o.svg, "FILE", "draw the planned peak against the context");
  flags.toggle("--probe", o.probe,
               "measure the disk for a second: how fast weights that do not fit are streamed");
}

void perplexity(Flags& flags, Options& o) {
  context(flags, "tokens of a window; with --kl-divergence the base file sets them", "512");
  flags.group("Perplexity");
  flags.number("--chunks", o.chunks, {}, "windows at most; 0: all");
  flags.text("--kl-divergence-base,--save-all-logits", o.kl_base, "FILE",
             "base logits: written, and with --kl-divergence read");
  flags.toggle("--kl-divergence", o.kl_divergence, "compare with base logits, on their text");
}

void importance(Flags& flags, Options& o) {
  context(flags, "tokens of a window", "512");
  flags.group("Importance");
  flags.text("-o,--output,--output-file", o.output, "FILE",
             "the importance matrix; imatrix.gguf if not given");
  flags.number("--chunks", o.chunks, {}, "windows at most; 0: all");
  flags.toggle("--process-output", o.process_output, "also of the head: one row of each step");
}

void quantizing(Flags& flags, Options& o) {
  flags.group("Quantize");
  flags.words(o.words, "OUT TYPE",
              join("the output file, then the type: ", quantize::recipe_names(), " COPY"));
  flags.toggle("--dry-run", o.dry_run, "show every tensor with its format and size, write nothing");
  flags.text("--imatrix", o.imatrix, "FILE", "importance matrix: which errors hurt");
  flags.text("--output-tensor-type", o.output_tensor_type, "TYPE",
             "of output.weight, or of the embedding in its place");
  flags.text("--token-embedding-type", o.token_embedding_type, "TYPE", "of the token embedding");
  flags.texts("--tensor-type", o.tensor_types, "REGEX=TYPE",
              "of tensors whose name holds a regular expression; may be repeated");
  flags.toggle("--pure", o.pure, "one format for all, no mixture");
  flags.toggle("--leave-output-tensor", o.leave_output_tensor, "output.weight stays as it is");
  flags.toggle("--keep-split", o.keep_split, "as many shards as the input has");
  flags.toggle("--allow-requantize", o.allow_requantize, "also tensors that are quantised already");
  threads(flags, o, "Quantize");
}

void converting(Flags& flags, Options& o) {
  flags.group("Convert");
  flags.words(o.words, "OUT TYPE",
              "the name of the outcome, then the type of matrices, if not the folder's own");
  flags.toggle("--dry-run", o.dry_run, "show every tensor with its type and size, write nothing");
  flags.text("--name", o.name, "NAME", "what the model calls itself; else the name of the folder");
}

void packing(Flags& flags, Options& o) {
  flags.group("Pack");
  flags.words(o.words, "DIR", "the folder; made where it is missing");
  flags.toggle("--dry-run", o.dry_run, "show every file with its size, write nothing");
  flags.toggle("--verify", o.verify, "of a packed folder: read all of it, and compare every checksum");
}

void synthesis(Flags& flags, Options& o) {
  flags.group("Synth");
  flags.words(o.words, "SHAPE TYPE OUT",
              join("the shape, the type of its weights (a type of quantize), the output file. Shapes: ",
                   arch::shape_names()));
  flags.toggle("--dry-run", o.dry_run, "show how large it would be, write nothing");
  threads(flags, o, "Synth");
}

void tensors(Flags& flags, Options& o) {
  flags.group("Inspect");
  flags.toggle("--tensors", o.tensors, "list every tensor");
}

void other_machine(Flags& flags, Options& o) {
  FitOptions& f = o.fit;
  flags.group("Machine");
  flags.text("--ram", f.ram, "SIZE",
             "memory of another machine than this one; nine tenths of it are available");
  flags.text("--available", f.available, "SIZE", "what of it a model can take");
  flags.text("--vram", f.vram, "SIZE", "memory of its graphics cards");
  flags.text("--bandwidth", f.bandwidth, "RATE", "what its memory reads in a second: 60G");
  flags.text("--vram-bandwidth", f.vram_bandwidth, "RATE", "what the memory of its cards reads in a second");
  flags.text("--disk", f.disk, "RATE", "what its disk reads in a second");
  flags.text("--machine", f.machine_file, "FILE", "a file that says all this, in JSON; flags win");
  flags.number("--cores", f.cores, {0, 1 << 20}, "its cores; 0: as many as this machine has");
  flags.toggle("--unified", f.unified, "its processors share their memory");
  flags.toggle("--mlx", f.mlx, "with --unified: quantisations of MLX instead of GGUF's");
}

void fit(Flags& flags, Options& o) {
  FitOptions& f = o.fit;
  flags.group("Fit");
  flags.words(o.words, "MODEL",
              "names of the catalogue, GGUF files, folders of them; none: the whole catalogue");
  flags.number("-c,--max-context,--ctx-size", o.n_ctx, {0, std::numeric_limits<std::uint32_t>::max()},
               "tokens of context that are asked for; 0: 8192, or what the model has");
  flags.text("--quant", f.quant, "TYPE",
             "this quantisation alone, and the longest context that it has room for");
  flags.choice("--use", f.use, {"general", "coding", "chat", "reasoning"}, "NAME",
               "what models are for: general coding chat reasoning");
  flags.number("-n,--rows", f.rows, {}, "rows at most; 0: all");
  flags.choice("--level", f.level, {"perfect", "good", "marginal"}, "NAME",
               "models of this level or a better one: perfect good marginal");
  flags.toggle("--perfect", f.perfect, "the same as --level perfect");
  flags.toggle("--explain", f.explain, "the arithmetic of each, and what other rules say");
  other_machine(flags, o);
}

template <auto... Groups>
void all(Flags& flags, Options& o) {
  (Groups(flags, o), ...);
}

}  // namespace
}  // namespace flag_group

namespace {

using namespace flag_group;

constexpr VerbText verbs[] = {
    {"run", "complete or answer once; chat when there is no prompt",
     "mica run model.gguf \"Why is the sky blue?\"",
     all<model, prompt, chat, session, running, answer, stop_text, governor, output>},
    {"chat", "talk to a model", "mica chat model.gguf -sys \"Answer in rhymes.\"",
     all<model, prompt, chat, session, running, answer, stop_text, governor, output>},
    {"complete", "go on with a text, without a template",
     "mica complete model.gguf \"Once upon a time\" -n 100",
     all<model, prompt, session, running, answer, stop_text, governor, output>},
    {"inspect", "what is in a file, or behind a URL: metadata, tensors, bytes",
     "mica inspect model.gguf --tensors", all<model, tensors, output>},
    {"tokenize", "text to ids and pieces", "mica tokenize model.gguf \"Hello\" --json",
     all<model, tokenizing, special, output>},
    {"detokenize", "ids to text", "mica detokenize model.gguf 1 9906",
     all<model, ids, ids_as_words, special, output>},
    {"template", "render a chat template", "mica template model.gguf --messages messages.json",
     all<model, rendering, output>},
    {"logits", "raw logits after given ids", "mica logits model.gguf --ids 1,2,3 -o out.f32",
     all<model, running, ids, logits, output>},
    {"bench", "speed of prefill and decode", "mica bench model.gguf -p 512 -n 64",
     all<model, running, bench, output>},
    {"perplexity", "how well a model predicts a text", "mica perplexity model.gguf -f text.txt -c 512",
     all<model, prompt, running, perplexity, output>},
    {"imatrix", "collect an importance matrix from a text, for quantize",
     "mica imatrix model-f16.gguf -f text.txt -o imatrix.gguf",
     all<model, prompt, running, importance, output>},
    {"quantize", "write a file in other formats: IN OUT TYPE",
     "mica quantize model-f16.gguf model-q4.gguf Q4_K_M --dry-run", all<model, quantizing, output>},
    {"convert", "a Hugging Face folder as one file: DIR OUT TYPE",
     "mica convert Qwen3-0.6B qwen3.gguf --dry-run", all<model, converting, output>},
    {"pack", "a model as a folder that loads and streams sooner: IN DIR", "mica pack model.gguf model.packed",
     all<model, packing, output>},
    {"synth", "a file of a published model's shape with random weights: SHAPE TYPE OUT",
     "mica synth llama-8b Q4_K_M llama-8b.gguf", all<synthesis, output>},
    {"plan", "what a model needs, before it is loaded", "mica plan model.gguf -c 8192 --memory 6GiB",
     all<model, running, plan, output>},
    {"fit", "which models this machine can run, or one that is described: how well, how fast",
     "mica fit --ram 6G --cores 2", all<fit, output>},
    {"doctor", "this machine: instruction sets, cores, limits, memory; with a file, its disk",
     "mica doctor --measure", all<model, own_threads, measure, output>},
};

}  // namespace

std::span<const VerbText> all_verbs() noexcept { return verbs; }

const VerbText* find_verb(std::string_view name) noexcept {
  const auto found =
      std::find_if(std::begin(verbs), std::end(verbs), [&](const VerbText& v) { return v.name == name; });
  return found == std::end(verbs) ? nullptr : &*found;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const VerbText& verb : verbs) names.emplace_back(verb.name);
  return names;
}

Flags flags_of(const VerbText& verb, Options& options, CommonFlags& common) {
  Flags flags;
  verb.add_flags(flags, options);
  flags.group("Output");
  flags.toggle("--print-config", common.print_config, "show all options with their values, and end");
  flags.text("--config", common.config, "FILE",
             "read options from this file instead of mica/config.toml below $XDG_CONFIG_HOME");
  flags.toggle("-h,--help", common.help, "this text, and end");
  return flags;
}

}  // namespace mica::program
