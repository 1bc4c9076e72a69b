// SPDX-License-Identifier: Apache-2.0
//
// What a command line says, after flags, environment and configuration file have been merged. Verbs read this
// and never see the parser.
#pragma once

#include "choice.hpp"
#include "mica/runtime/ngram.hpp"
#include "mica/runtime/open_options.hpp"
#include "mica/sample/sampler_options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mica::program {

enum class ColorMode : std::uint8_t { automatic, always, never };
enum class BenchFormat : std::uint8_t { markdown, csv, json, jsonl };

/// What `mica fit` is asked, beside models (words), tokens of context (n_ctx) and json.
struct FitOptions {
  std::string ram, available, vram;             // sizes; empty: this machine's
  std::string bandwidth, vram_bandwidth, disk;  // rates
  bool unified = false;
  bool mlx = false;
  std::size_t cores = 0;  // 0: this machine's
  std::string machine_file;
  std::string quant;
  std::string use = "general";
  std::string level = "marginal";
  bool perfect = false;
  std::size_t rows = 0;  // 0: all
  bool explain = false;
};

struct Options {
  std::string verb;
  std::string model;               // empty: the bundled one, where a verb allows that
  std::vector<std::string> words;  // positional arguments after the model, joined by spaces: the prompt

  // The text that goes in
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string system_prompt;
  std::string system_prompt_file;
  std::vector<std::string> reverse_prompts;
  bool escape = false;               // \n and the like in the prompt become bytes
  std::optional<bool> conversation;  // -cnv, -no-cnv
  bool single_turn = false;
  bool no_history = false;    // no file with what was typed
  std::string session;        // a file, empty
  std::string chat_template;  // name of a built-in format
  std::string chat_template_file;

  // The model
  ChoiceWords choice;
  bool elements_given = false;  // -ctk or -ctv was given
  bool chunk_given = false;     // for --chunk
  bool weights_given = false;   // for --weights
  std::size_t n_ctx = 0;
  std::size_t chunk = 512;
  std::size_t threads = 0;
  std::string targets;          // the best instruction set that kernels may use; empty: the machine's
  std::string memory;           // "6GiB", "75%", empty
  budget::MemoryLimits limits;  // when the program began
  std::optional<std::uint64_t>
      memory_bytes;             // --memory in bytes; for every verb but plan it is within the limits
  std::string governor = "on";  // or "off"
  std::string pace;             // "85C", "15W", "50%", empty

  // The answer
  std::optional<std::int64_t> n_predict;  // negative: no limit
  std::int64_t seed = -1;                 // negative: from the clock
  sample::SamplerOptions sampler;
  std::string on_full = "stop";      // or "shift"
  std::int64_t keep = 0;             // tokens that a shift leaves; negative: the whole prompt
  std::string speculate;             // "ngram:3,4", empty
  NgramOptions drafts{.drafts = 0};  // the same as numbers
  std::string draft;                 // a model that guesses, empty
  std::size_t draft_max = 8;         // tokens at a time
  std::size_t draft_min = 0;         // and at least; 0: as many as pay
  bool ignore_eos = false;
  bool show_special = false;

  // How it is shown
  bool quiet = false;
  bool verbose = false;
  bool stats = false;
  bool probe = false;
  bool measure = false;
  bool solve = false;
  std::string svg;  // a file, empty
  bool json = false;
  bool jsonl = false;
  ColorMode color = ColorMode::automatic;
  bool raw_output = false;         // of a model's text on a terminal
  std::string config;              // what --print-config shows, empty: go on
  std::vector<std::string> notes;  // about what was ignored or makes little sense, for stderr

  // logits, tokenize, detokenize
  std::string ids;
  std::string ids_file;
  std::string positions = "last";
  bool decode = false;
  std::string output;
  std::string text_file;
  bool add_special = false;
  bool parse_special = false;

  // template
  std::string template_file;
  std::string messages_file;
  std::string tools_file;
  bool no_generation_prompt = false;
  std::vector<std::string> set;
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::string now;

  // bench, perplexity
  std::vector<std::size_t> n_prompt = {512};
  std::vector<std::size_t> n_gen = {128};
  std::vector<std::size_t> n_depth = {0};
  std::size_t parallel = 1;  // sequences that write together
  std::size_t repetitions = 5;
  BenchFormat bench_format = BenchFormat::markdown;
  std::size_t chunks = 0;
  bool kl_divergence = false;
  std::string kl_base;  // base logits, written or, with kl_divergence, read

  // inspect
  bool tensors = false;

  // imatrix, beside output and chunks
  bool process_output = false;

  // quantize, convert, pack and synth
  bool dry_run = false;

  // pack
  bool verify = false;

  // quantize
  std::string imatrix;  // a file
  bool pure = false;
  bool leave_output_tensor = false;
  bool keep_split = false;
  bool allow_requantize = false;
  std::string output_tensor_type;
  std::string token_embedding_type;
  std::vector<std::string> tensor_types;  // NAME=TYPE

  // convert
  std::string name;

  FitOptions fit;
};

/// Reads a command line, the environment and the configuration file. Help and version texts, and wrong uses
/// of a verb, are thrown as Stop; an unknown verb and a configuration file that cannot be read as Error.
[[nodiscard]] Options parse(int argc, char** argv);

/// The program is to end now: `text` goes to stdout for code 0; otherwise it follows "mica " on stderr.
struct Stop {
  int code = 0;
  std::string text;
};

/// Tokens of an answer at most; 0: no limit.
[[nodiscard]] inline std::size_t limit_of(const Options& options) {
  const std::int64_t wanted = options.n_predict.value_or(-1);
  return wanted < 0 ? 0 : static_cast<std::size_t>(wanted);
}

/// The seed of the sampler: the number given, or one from the clock.
[[nodiscard]] std::uint64_t seed_of(const Options& options);

/// Where options become what the library takes.
[[nodiscard]] OpenOptions open_options(const Options& options);

}  // namespace mica::program
