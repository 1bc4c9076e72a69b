// SPDX-License-Identifier: Apache-2.0
//
// The one unit that knows the parser. Flags come in groups; a verb takes the groups it understands.
#include "options.hpp"

#include "console.hpp"
#include "mica/base/error.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/io/near_name.hpp"
#include "mica/kv/any_eviction.hpp"
#include "words.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <system_error>

namespace mica::program {
namespace {

struct Verb {
  std::string_view name;
  std::string_view about;
  std::string_view groups;  // one letter a group, see add_groups
  std::string_view example;
};

// m model, p prompt, c chat, k session, r run of a model, s sampler, o output, i ids, x tokenizing, t template, b bench,
// e perplexity, d inspect, q quantize, h convert, w pack, a imatrix, y synth, n plan, g governor,
// f fit
constexpr Verb verbs[] = {
    {"run", "complete or answer once; chat when there is no prompt", "mpckrsog",
     "mica run model.gguf \"Why is the sky blue?\""},
    {"chat", "talk to a model", "mpckrsog", "mica chat model.gguf -sys \"Answer in rhymes.\""},
    {"complete", "go on with a text, without a template", "mpkrsog",
     "mica complete model.gguf \"Once upon a time\" -n 100"},
    {"inspect", "what is in a file, or behind a URL: metadata, tensors, bytes", "mod",
     "mica inspect model.gguf --tensors"},
    {"tokenize", "text to ids and pieces", "mox", "mica tokenize model.gguf \"Hello\" --json"},
    {"detokenize", "ids to text", "moix", "mica detokenize model.gguf --ids 1,9906"},
    {"template", "render a chat template", "mot", "mica template model.gguf --messages messages.json"},
    {"logits", "raw logits after given ids", "moril", "mica logits model.gguf --ids 1,2,3 -o out.f32"},
    {"bench", "speed of prefill and decode", "morb", "mica bench model.gguf -p 512 -n 64"},
    {"perplexity", "how well a model predicts a text", "mpore",
     "mica perplexity model.gguf -f text.txt -c 512"},
    {"imatrix", "collect an importance matrix from a text, for quantize", "mpora",
     "mica imatrix model-f16.gguf -f text.txt -o imatrix.gguf"},
    {"quantize", "write a file in other formats: IN OUT TYPE", "moq",
     "mica quantize model-f16.gguf model-q4.gguf Q4_K_M --dry-run"},
    {"convert", "a Hugging Face folder as one file: DIR OUT TYPE", "moh",
     "mica convert Qwen3-0.6B qwen3.gguf --dry-run"},
    {"pack", "a model as a folder that loads and streams sooner: IN DIR", "mow",
     "mica pack model.gguf model.packed"},
    {"synth", "a file of a published model's shape with random weights: SHAPE TYPE OUT", "oy",
     "mica synth llama-8b Q4_K_M llama-8b.gguf"},
    {"plan", "what a model needs, before it is loaded", "morn", "mica plan model.gguf -c 8192 --memory 6GiB"},
    {"fit", "which models this machine can run, or one that is described: how well, how fast", "of",
     "mica fit --ram 6G --cores 2"},
    {"doctor", "this machine: instruction sets, cores, limits, memory; with a file, its disk", "mov",
     "mica doctor --measure"},
};

void add_model(CLI::App& app, Options& o) {
  app.add_option(
         "-m,--model,model", o.model,
         "GGUF file, of a sharded model any shard; or a packed folder; for plan and inspect also a URL")
      ->type_name("FILE")
      ->group("Model");
}

void add_prompt(CLI::App& app, Options& o) {
  app.add_option("words", o.words, "the prompt")->type_name("PROMPT")->group("Prompt");
  app.add_option("-p,--prompt", o.prompt, "the prompt")->type_name("TEXT")->group("Prompt");
  app.add_option("-f,--file,--prompt-file", o.prompt_file, "read the prompt from a file; - is stdin")
      ->type_name("FILE")
      ->group("Prompt");
  app.add_flag("-e,--escape", o.escape, "\\n, \\t and the like in the prompt mean what they mean in C")
      ->group("Prompt");
}

void add_session(CLI::App& app, Options& o) {
  app.add_option("--session", o.session,
                 "goes on where this file ends, if it is there, and writes it anew at the end")
      ->type_name("FILE")
      ->group("Session");
}

void add_chat(CLI::App& app, Options& o) {
  const std::string group = "Chat";
  app.add_option("--system-prompt", o.system_prompt, "the system's words, before everything (also -sys)")
      ->type_name("TEXT")
      ->group(group);
  app.add_option("--system-prompt-file", o.system_prompt_file, "the same from a file (also -sysf)")
      ->type_name("FILE")
      ->group(group);
  app.add_option("-r,--reverse-prompt", o.reverse_prompts, "text that ends an answer; may be repeated")
      ->type_name("TEXT")
      ->group(group);
  app.add_flag("--conversation,!--no-conversation", o.conversation, "chat, or do not (also -cnv, -no-cnv)")
      ->group(group);
  app.add_flag("--single-turn", o.single_turn, "one answer, then end (also -st)")->group(group);
  app.add_flag("--no-history", o.no_history, "keep no file of what was typed")->group(group);
  app.add_option("--chat-template", o.chat_template, "a built-in format instead of the model's template")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--chat-template-file", o.chat_template_file, "a template instead of the model's")
      ->type_name("FILE")
      ->group(group);
}

void add_threads(CLI::App& app, Options& o, const std::string& group) {
  app.add_option("-t,--threads", o.threads, "threads; 0: what affinity and the CPU quota allow")
      ->type_name("N")
      ->group(group);
}

void add_run(CLI::App& app, Options& o) {
  const std::string group = "Model";
  app.add_option("-c,--ctx-size,--ctx", o.n_ctx, "tokens of context; 0: what the model was trained for")
      ->type_name("N")
      ->group(group);
  add_threads(app, o, group);
  app.add_option("--targets", o.targets,
                 "best instruction set to use, such as AVX2; doctor names them. For measurements: numbers do "
                 "not change")
      ->type_name("NAME")
      ->group(group);
  app.add_option("-b,--batch-size,--ubatch-size,--chunk", o.chunk, "tokens of one step when a prompt is read")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16))
      ->group(group)
      ->each([&o](const std::string&) { o.chunk_given = true; })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--memory", o.memory, "budget: 6GiB, 800M, 75% of what is available")
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--cache-type-k", o.choice.cache_type_k,
                 "keys: f16 q8_0 f32 bf16 q5_1 q5_0 q4_1 q4_0 q4_s iq4_nl; by age: kivi4 kivi2 RECENT:OLD "
                 "(also -ctk)")
      ->each([&o](const std::string&) { o.elements_given = true; })
      ->type_name("TYPE")
      ->group(group);
  app.add_option("--cache-type-v", o.choice.cache_type_v, "values: the same names (also -ctv)")
      ->each([&o](const std::string&) { o.elements_given = true; })
      ->type_name("TYPE")
      ->group(group);
  app.add_option("--cache-recent", o.choice.cache_recent,
                 "tokens at the end whose keys and values are not old yet, where they change with age")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 24))
      ->group(group);
  app.add_option("--kv", o.choice.kv,
                 "where the cache lies: segmented contiguous reserved paged spilled spilled-paged")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--evict", o.choice.evict,
                 "what a cache of KEEP tokens forgets: none sinks:KEEP heavy:KEEP (sinks:KEEP,SINKS "
                 "heavy:KEEP,RECENT)")
      ->type_name("HOW")
      ->group(group);
  app.add_option("--kernels", o.choice.kernels,
                 "how prompts are computed: exact, or fast8, quicker and rounded once more")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--weights", o.choice.weights,
                 "how weights come into memory: mapped (also -sequential, -populated, -locked), resident, or "
                 "streamed, "
                 "what the budget leaves no room for")
      ->each([&o](const std::string&) { o.weights_given = true; })
      ->type_name("NAME")
      ->group(group);
}

void add_governor(CLI::App& app, Options& o) {
  const std::string group = "Model";
  app.add_option(
         "--governor", o.governor,
         "on: while memory is short, caches, scratch and weights give way, and come back; off: nothing does")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"on", "off"}))
      ->group(group);
  app.add_option("--pace", o.pace,
                 "rest between layers: 85C keeps the processor's temperature, 15W its power, 50% works half "
                 "of the time")
      ->type_name("LIMIT")
      ->group(group);
}

void add_sampler(CLI::App& app, Options& o) {
  const std::string group = "Answer";
  auto& s = o.sampler;
  app.add_option("-n,--predict,--n-predict,--max-tokens", o.n_predict,
                 "tokens at most; -1: until something else ends it")
      ->type_name("N")
      ->group(group);
  app.add_option("-s,--seed", o.seed, "seed of the sampler; -1: from the clock")
      ->type_name("N")
      ->group(group);
  app.add_option("--temp,--temperature", s.temperature, "0: always the most likely token")
      ->type_name("X")
      ->group(group);
  app.add_option("--top-k", s.top_k, "the k most likely; 0: all")->type_name("N")->group(group);
  app.add_option("--top-p", s.top_p, "the most likely that together reach p; 1: all")
      ->type_name("X")
      ->group(group);
  app.add_option("--min-p", s.min_p, "those above p times the most likely; 0: all")
      ->type_name("X")
      ->group(group);
  app.add_option("--repeat-penalty", s.repeat_penalty, "above 1: against tokens seen lately")
      ->type_name("X")
      ->group(group);
  app.add_option("--repeat-last-n", s.repeat_last_n, "how far back penalties look")
      ->type_name("N")
      ->group(group);
  app.add_option("--frequency-penalty", s.frequency_penalty, "per occurrence")->type_name("X")->group(group);
  app.add_option("--presence-penalty", s.presence_penalty, "once")->type_name("X")->group(group);
  app.add_option("--on-full", o.on_full,
                 "when the context is full: stop, or shift: drop half of what is not kept and go on")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"stop", "shift"}))
      ->group(group);
  app.add_option("--keep", o.keep, "first tokens that a shift keeps; -1: all of the first prompt")
      ->type_name("N")
      ->check(CLI::Range(-1, 1 << 30))
      ->group(group);
  app.add_option("--speculate", o.speculate,
                 "guess tokens and check them in one step: ngram[:N,K]; the answer stays the same")
      ->type_name("HOW")
      ->group(group);
  app.add_option("--draft,--model-draft", o.draft,
                 "a smaller model with the same vocabulary guesses tokens, and one step checks them; the "
                 "answer stays the same")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--draft-max", o.draft_max, "tokens that it guesses at a time")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->group(group);
  app.add_option("--draft-min", o.draft_min, "and at least, however long that takes; 0: as many as pay")
      ->type_name("N")
      ->check(CLI::Range(0, 64))
      ->group(group);
  app.add_flag("--stats", o.stats,
               "bytes read, time waited for them, experts that were there, and page faults")
      ->group(group);
  app.add_flag("--ignore-eos", o.ignore_eos, "go on after an end token")->group(group);
  app.add_flag("--special", o.show_special, "show control tokens")->group(group);
}

void add_output(CLI::App& app, Options& o) {
  const std::string group = "Output";
  static const std::map<std::string, ColorMode> colors = {{"auto", ColorMode::automatic},
                                                          {"always", ColorMode::always},
                                                          {"on", ColorMode::always},
                                                          {"never", ColorMode::never},
                                                          {"off", ColorMode::never}};
  app.add_flag("-q,--quiet", o.quiet, "nothing on stderr but errors")->group(group);
  app.add_flag("-v,--verbose", o.verbose, "what the library did on its own account")->group(group);
  app.add_flag("--json", o.json, "one JSON object on stdout")->group(group);
  app.add_flag("--jsonl", o.jsonl, "one JSON object a line")->group(group);
  app.add_option("--color", o.color, "auto, always, never")
      ->transform(CLI::CheckedTransformer(colors, CLI::ignore_case))
      ->type_name("WHEN")
      ->default_str("auto")
      ->group(group);
  app.add_flag("--raw-output", o.raw_output,
               "pass control sequences of a model's or template's text to a terminal; else only its colours")
      ->group(group);
  app.add_flag("--print-config", o.print_config, "show all options with their values, and end")->group(group);
}

void add_ids(CLI::App& app, Options& o) {
  app.add_option("--ids", o.ids, "token ids, separated by commas")->type_name("IDS")->group("Ids");
  app.add_option("--ids-file", o.ids_file, "token ids from a file; commas, blanks or lines between them")
      ->type_name("FILE")
      ->group("Ids");
}

void add_logits(CLI::App& app, Options& o) {
  app.add_option("--positions", o.positions, "last, all, or indexes: 0,5,9")
      ->type_name("LIST")
      ->group("Logits");
  app.add_flag("--decode", o.decode, "one token at a time")->group("Logits");
  app.add_option("-o,--output", o.output, "raw little-endian float32 rows")
      ->type_name("FILE")
      ->group("Logits");
}

void add_tokenizing(CLI::App& app, Options& o) {
  app.add_option("words", o.words, "the text")->type_name("TEXT")->group("Text");
  app.add_option("--text-file", o.text_file, "read the text from a file; - is stdin")
      ->type_name("FILE")
      ->group("Text");
  app.add_flag("--add-special", o.add_special, "add BOS and EOS as the vocabulary asks")->group("Text");
  app.add_flag("--parse-special", o.parse_special, "control tokens written out become tokens")->group("Text");
  app.add_flag("--special", o.show_special, "show control tokens")->group("Text");
}

void add_template(CLI::App& app, Options& o) {
  const std::string group = "Template";
  app.add_option("--template-file", o.template_file, "a template instead of a model's")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--messages", o.messages_file, "JSON array of messages")->type_name("FILE")->group(group);
  app.add_option("--tools", o.tools_file, "JSON array of tools")->type_name("FILE")->group(group);
  app.add_flag("--no-generation-prompt", o.no_generation_prompt, "do not open the assistant's turn")
      ->group(group);
  app.add_option("--set", o.set, "NAME=JSON: one more variable; may be repeated")
      ->type_name("NAME=JSON")
      ->group(group);
  app.add_option("--bos", o.bos, "text of the BOS token")->type_name("TEXT")->group(group);
  app.add_option("--eos", o.eos, "text of the EOS token")->type_name("TEXT")->group(group);
  app.add_option("--now", o.now, "the time: 2025-01-15T12:00:00")->type_name("TIME")->group(group);
}

void add_bench(CLI::App& app, Options& o) {
  const std::string group = "Bench";
  static const std::map<std::string, BenchFormat> formats = {{"md", BenchFormat::markdown},
                                                             {"csv", BenchFormat::csv},
                                                             {"json", BenchFormat::json},
                                                             {"jsonl", BenchFormat::jsonl}};
  app.add_option("-p,--n-prompt", o.n_prompt, "prompt lengths to read; 0: none")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(group);
  app.add_option("-n,--n-gen", o.n_gen, "tokens to write; 0: none")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(group);
  app.add_option("-d,--n-depth", o.n_depth, "tokens in the context before")
      ->type_name("LIST")
      ->delimiter(',')
      ->group(group);
  app.add_option("--parallel", o.parallel, "sequences that write together; their tokens count (also -np)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->group(group);
  app.add_option("-r,--repetitions", o.repetitions, "runs of each test")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->group(group);
  app.add_option("-o,--output", o.bench_format, "md, csv, json, jsonl")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case))
      ->type_name("FORMAT")
      ->default_str("md")
      ->group(group);
}

void add_measure(CLI::App& app, Options& o) {
  app.add_flag("--measure", o.measure,
               "measure for some seconds what kernels do here with each format, and keep it for mica plan "
               "and mica fit")
      ->group("Speed");
}

void add_plan(CLI::App& app, Options& o) {
  add_measure(app, o);
  app.add_flag("--solve", o.solve, "all ways to stay within --memory, each with its longest context")
      ->group("Plan");
  app.add_option("--svg", o.svg, "draw the planned peak against the context")
      ->type_name("FILE")
      ->group("Plan");
  app.add_flag("--probe", o.probe,
               "measure the disk for a second: how fast weights that do not fit are streamed")
      ->group("Plan");
}

void add_perplexity(CLI::App& app, Options& o) {
  const std::string group = "Perplexity";
  app.add_option("--chunks", o.chunks, "windows at most; 0: all")->type_name("N")->group(group);
  app.add_option("--kl-divergence-base,--save-all-logits", o.kl_base,
                 "base logits: written, and with --kl-divergence read")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--kl-divergence", o.kl_divergence, "compare with base logits, on their text")->group(group);
}

void add_imatrix(CLI::App& app, Options& o) {
  const std::string group = "Importance";
  app.add_option("-o,--output,--output-file", o.output, "the importance matrix; imatrix.gguf if not given")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--chunks", o.chunks, "windows at most; 0: all")->type_name("N")->group(group);
  app.add_flag("--process-output", o.process_output, "also of the head: one row of each step")->group(group);
}

void add_quantize(CLI::App& app, Options& o) {
  const std::string group = "Quantize";
  app.add_option("words", o.words, "the name of the outcome, then the type")
      ->type_name("OUT TYPE")
      ->group(group);
  app.add_flag("--dry-run", o.dry_run, "show every tensor with its format and size, write nothing")
      ->group(group);
  app.add_option("--imatrix", o.imatrix, "importance matrix: which errors hurt")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--output-tensor-type", o.output_tensor_type,
                 "of output.weight, or of the embedding in its place")
      ->type_name("TYPE")
      ->group(group);
  app.add_option("--token-embedding-type", o.token_embedding_type, "of the token embedding")
      ->type_name("TYPE")
      ->group(group);
  app.add_option("--tensor-type", o.tensor_types,
                 "of tensors whose name holds a regular expression; may be repeated")
      ->type_name("REGEX=TYPE")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--pure", o.pure, "one format for all, no mixture")->group(group);
  app.add_flag("--leave-output-tensor", o.leave_output_tensor, "output.weight stays as it is")->group(group);
  app.add_flag("--keep-split", o.keep_split, "as many shards as the input has")->group(group);
  app.add_flag("--allow-requantize", o.allow_requantize, "also tensors that are quantised already")
      ->group(group);
  add_threads(app, o, group);
}

void add_convert(CLI::App& app, Options& o) {
  const std::string group = "Convert";
  app.add_option("words", o.words,
                 "the name of the outcome, then the type of matrices, if not the folder's own")
      ->type_name("OUT TYPE")
      ->group(group);
  app.add_flag("--dry-run", o.dry_run, "show every tensor with its type and size, write nothing")
      ->group(group);
  app.add_option("--name", o.name, "what the model calls itself; else the name of the folder")
      ->type_name("NAME")
      ->group(group);
}

void add_pack(CLI::App& app, Options& o) {
  const std::string group = "Pack";
  app.add_option("words", o.words, "the folder; made where it is missing")->type_name("DIR")->group(group);
  app.add_flag("--dry-run", o.dry_run, "show every file with its size, write nothing")->group(group);
  app.add_flag("--verify", o.verify, "of a packed folder: read all of it, and compare every checksum")
      ->group(group);
}

void add_synth(CLI::App& app, Options& o) {
  const std::string group = "Synth";
  app.add_option("words", o.words,
                 "the shape, the type of its weights as quantize has them, the name of the outcome")
      ->type_name("SHAPE TYPE OUT")
      ->group(group);
  app.add_flag("--dry-run", o.dry_run, "show how large it would be, write nothing")->group(group);
  add_threads(app, o, group);
}

void add_fit_machine(CLI::App& app, Options& o) {
  const std::string group = "Machine";
  FitOptions& f = o.fit;
  const auto add = [&](const char* flag, std::string& value, const char* about, const char* type) {
    app.add_option(flag, value, about)->type_name(type)->group(group);
  };
  add("--ram", f.ram, "memory of another machine than this one; nine tenths of it are available", "SIZE");
  add("--available", f.available, "what of it a model can take", "SIZE");
  add("--vram", f.vram, "memory of its graphics cards", "SIZE");
  add("--bandwidth", f.bandwidth, "what its memory reads in a second: 60G", "RATE");
  add("--vram-bandwidth", f.vram_bandwidth, "what the memory of its cards reads in a second", "RATE");
  add("--disk", f.disk, "what its disk reads in a second", "RATE");
  add("--machine", f.machine_file, "a file that says all this, in JSON; flags win", "FILE");
  app.add_option("--cores", f.cores, "its cores; 0: as many as this machine has")
      ->type_name("N")
      ->group(group);
  app.add_flag("--unified", f.unified, "its processors share their memory")->group(group);
  app.add_flag("--mlx", f.mlx, "with --unified: quantisations of MLX instead of GGUF's")->group(group);
}

void add_fit(CLI::App& app, Options& o) {
  const std::string group = "Fit";
  FitOptions& f = o.fit;
  app.add_option("words", o.words,
                 "names of the catalogue, GGUF files, folders of them; none: the whole catalogue")
      ->type_name("MODEL")
      ->group(group);
  app.add_option("-c,--max-context,--ctx-size", o.n_ctx,
                 "tokens of context that are asked for; 0: 8192, or what the model has")
      ->type_name("N")
      ->group(group);
  app.add_option("--quant", f.quant, "this quantisation alone, and the longest context that it has room for")
      ->type_name("TYPE")
      ->group(group);
  app.add_option("--use", f.use, "what models are for: general coding chat reasoning")
      ->type_name("NAME")
      ->group(group);
  app.add_option("-n,--rows", f.rows, "rows at most; 0: all")->type_name("N")->group(group);
  app.add_option("--level", f.level, "models of this level or a better one: perfect good marginal")
      ->type_name("NAME")
      ->group(group);
  app.add_flag("--perfect", f.perfect, "the same as --level perfect")->group(group);
  app.add_flag("--explain", f.explain, "the arithmetic of each, and what other rules say")->group(group);
  add_fit_machine(app, o);
}

/// What a configuration file says: flags of this verb, at the top or under [verb]. A variable of the
/// environment wins over the file, and the parser would have it the other way round.
class ConfigFile : public CLI::ConfigTOML {
 public:
  ConfigFile(const CLI::App& app, std::set<const CLI::Option*>& found) : app_(app), found_(found) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::vector<CLI::ConfigItem> kept;
    for (CLI::ConfigItem& item : CLI::ConfigTOML::from_config(input)) {
      if (item.parents.size() == 1 && join("mica ", item.parents.front()) == app_.get_name())
        item.parents.clear();
      const CLI::Option* option = app_.get_option_no_throw("--" + item.name);
      if (!item.parents.empty() || option == nullptr) continue;
      if (std::getenv(option->get_envname().c_str()) != nullptr) continue;
      found_.insert(option);
      kept.push_back(std::move(item));
    }
    return kept;
  }

 private:
  const CLI::App& app_;
  std::set<const CLI::Option*>& found_;
};

void add_groups(CLI::App& app, const Verb& verb, Options& o) {
  using Add = void (*)(CLI::App&, Options&);
  static const std::map<char, Add> all = {
      {'m', add_model},
      {'p', add_prompt},
      {'c', add_chat},
      {'k', add_session},
      {'r', add_run},
      {'s', add_sampler},
      {'o', add_output},
      {'i', add_ids},
      {'l', add_logits},
      {'x', add_tokenizing},
      {'t', add_template},
      {'b', add_bench},
      {'e', add_perplexity},
      {'q', add_quantize},
      {'a', add_imatrix},
      {'h', add_convert},
      {'w', add_pack},
      {'y', add_synth},
      {'n', add_plan},
      {'v',
       [](CLI::App& a, Options& x) {
         add_threads(a, x, "Speed");
         add_measure(a, x);
       }},
      {'g', add_governor},
      {'f', add_fit},
      {'d', [](CLI::App& a,
               Options& x) { a.add_flag("--tensors", x.tensors, "list every tensor")->group("Inspect"); }},
  };
  for (const char group : verb.groups) all.at(group)(app, o);
  app.set_config("--config", default_config_file(), "read options from this file")->group("Output");
  for (CLI::Option* option : app.get_options()) {  // MICA_ARG_TOP_K and its like
    if (option->get_default_str() == "{}") option->default_str("");
    if (option->get_lnames().empty() || option->get_lnames().front() == "help") continue;
    if (option->get_lnames().front() != "config") option->envname(variable_of(option->get_lnames().front()));
  }
}

/// Who set an option: a flag, a variable, the file, or nobody.
std::string_view source_of(const CLI::Option& option, std::span<const std::string> words,
                           const std::set<const CLI::Option*>& from_file) {
  if (option.count() == 0) return "default";
  const auto is_named = [&](const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    if (word.starts_with("--")) return option.check_lname(name.substr(2));
    return word.size() > 1 && word[0] == '-' && option.check_sname(word.substr(1, 1));
  };
  if (std::any_of(words.begin(), words.end(), is_named)) return "flag";
  if (from_file.contains(&option)) return "file";
  return std::getenv(option.get_envname().c_str()) != nullptr ? "environment" : "flag";
}

/// All options of a verb with their values, as a configuration file that says where each value is from.
std::string config_text(const CLI::App& app, std::span<const std::string> words,
                        const std::set<const CLI::Option*>& from_file) {
  std::string text = join("# ", app.get_name(), "\n");
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    if (name == "help" || name == "config" || name == "print-config") continue;
    std::string value;
    for (const std::string& result : option->results()) value.append(value.empty() ? "" : " ").append(result);
    if (option->count() == 0) value = option->get_expected_max() == 0 ? "false" : option->get_default_str();
    const std::string line = join(name, " = \"", escaped(value, 200), "\"");
    text += join(line, std::string(line.size() < 40 ? 40 - line.size() : 1, ' '), "# ",
                 source_of(*option, words, from_file), "\n");
  }
  return text;
}

std::string short_help() {
  std::string text = "mica: language models on small machines\n\n";
  for (const Verb& verb : verbs) {
    text += join("  mica ", verb.name, std::string(12 - verb.name.size(), ' '), verb.about, "\n");
  }
  return text +
         "\n"
         "  mica run                             a story by the bundled model\n"
         "  mica run model.gguf \"Hello\"          an answer\n"
         "  mica plan model.gguf --memory 6GiB   does it fit?\n\n"
         "mica help VERB shows the flags of a verb.\n";
}

/// "  Did you mean ...?", or nothing.
std::string suggestion(const std::string& word, std::span<const std::string> known) {
  io::NearName near(word);
  for (const std::string& name : known) near.offer(name);
  return near.best() ? join("  Did you mean ", *near.best(), "?") : std::string();
}

const Verb& find_verb(const std::string& name) {
  const auto found =
      std::find_if(std::begin(verbs), std::end(verbs), [&](const Verb& v) { return v.name == name; });
  if (found != std::end(verbs)) return *found;
  std::vector<std::string> names;
  for (const Verb& verb : verbs) names.emplace_back(verb.name);
  throw Stop{
      2, join("mica: unknown verb '", escaped(name), "'.", suggestion(name, names), "  See mica help.\n")};
}

/// The parser's own sentence about a flag lacks the way out.
[[noreturn]] void raise_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = join(app.get_name(), ": ", error.what());
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with("-")) continue;
    text = join(app.get_name(), ": unknown flag ", escaped(word), ".", suggestion(word, flags));
    break;
  }
  throw Stop{2, join(text, "  See ", app.get_name(), " --help.\n")};
}

/// ngram[:N[,K]]; empty: no drafts.
NgramOptions drafts_of(std::string_view how) {
  NgramOptions options;
  if (how.empty()) options.drafts = 0;
  std::string_view rest = how;
  const auto number = [&rest](char before, std::size_t& out) {
    if (rest.empty() || rest.front() != before) return;
    const char* const end = rest.data() + rest.size();
    const auto [next, error] = std::from_chars(rest.data() + 1, end, out);
    if (error == std::errc()) rest = {next, end};
  };
  if (rest.starts_with("ngram")) {
    rest.remove_prefix(5);
    number(':', options.n);
    if (rest.size() < how.size() - 5) number(',', options.drafts);
  }
  if (!rest.empty())
    throw Stop{2, join("mica: --speculate takes ngram, ngram:N or ngram:N,K; found ", escaped(how), ".\n")};
  try {
    return static_cast<void>(Ngram(options)), options;
  } catch (const Error& error) {
    throw Stop{2, join("mica: --speculate: ", error.message(), ".\n")};
  }
}

void check(Options& o) {
  if (o.prompt && !o.words.empty())
    throw Stop{2, "mica: a prompt was given twice: as a word and with --prompt.\n"};
  if (o.seed >= 0) {
    o.sampler.seed = static_cast<std::uint64_t>(o.seed);
  } else {
    o.sampler.seed = clock_seed();
  }
  o.drafts = drafts_of(o.speculate);
  if (!o.draft.empty() && !o.speculate.empty())
    throw Stop{2, "mica: --draft and --speculate both guess; choose one.\n"};
  try {
    if (!o.pace.empty()) static_cast<void>(exec::Pace::parse(o.pace, "--pace"));
  } catch (const Error& error) {
    throw Stop{2, join("mica: ", error.message(), ".\n")};
  }
  try {
    static_cast<void>(kv::AnyEviction(o.choice.evict));
  } catch (const Error& error) {
    throw Stop{2, join("mica: --evict: ", error.message(), ".\n")};
  }
}

}  // namespace

Options parse(int argc, char** argv) {
  const std::span<char* const> arguments(argv + 1, argv + argc);
  const std::string first = arguments.empty() ? "help" : arguments[0];
  if (first == "--version" || first == "version") throw Stop{0, version_text()};
  const bool help = first == "help" || first == "--help" || first == "-h";
  if (help && arguments.size() < 2) throw Stop{0, short_help()};
  const Verb& verb = find_verb(help ? arguments[1] : first);
  Options options;
  options.verb = verb.name;
  CLI::App app(join(verb.about, "\n\n  ", verb.example), join("mica ", verb.name));
  app.get_formatter()->column_width(36);
  app.option_defaults()->always_capture_default();
  add_groups(app, verb, options);
  std::set<const CLI::Option*> from_file;
  app.config_formatter(std::make_shared<ConfigFile>(app, from_file));
  if (help) throw Stop{0, app.help()};
  Words cleaned = clean(arguments.subspan(1));
  std::vector<std::string> words(cleaned.words.rbegin(),
                                 cleaned.words.rend());  // the parser takes words from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    throw Stop{0, app.help()};
  } catch (const CLI::ParseError& error) {
    raise_usage(app, error);
  }
  options.notes = std::move(cleaned.notes);
  if (options.print_config) throw Stop{0, config_text(app, cleaned.words, from_file)};
  check(options);
  return options;
}

OpenOptions open_options(const Options& o) {
  OpenOptions open;
  open.n_ctx = o.n_ctx;
  open.chunk = o.chunk;
  open.logits_rows = 1 + (o.draft.empty() ? o.drafts.drafts : o.draft_max);
  open.threads = o.threads;
  open.choice = o.choice;
  if (!o.pace.empty()) open.pace = exec::Pace::parse(o.pace, "--pace");
  if (!o.memory.empty())
    open.memory_bytes = budget::parse_size(o.memory, budget::memory_limits().usable(), "--memory");
  return open;
}

}  // namespace mica::program
