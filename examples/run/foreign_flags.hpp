// SPDX-License-Identifier: Apache-2.0
//
// Flags and verbs of other engines (llama.cpp, Ollama, gemma.cpp) that this program does not have, and what
// the program says about each. A flag that changes no answer is ignored with a note; one that would change
// the answer is refused, and the error says what to do instead. A flag of a verb is never searched here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace mica::program {

struct ForeignFlag {
  enum class Kind : std::uint8_t { switched, valued, refused };  // ignored, ignored with its value, refused
  std::string_view name;
  Kind kind;
  std::string_view why;  // behind "NAME ignored: " or "NAME: "
};

/// Names with blanks between them.
struct ForeignRow {
  std::string_view names;
  ForeignFlag::Kind kind;
  std::string_view why;
};

struct ForeignVerb {
  std::string_view name;
  std::string_view why;
};

namespace foreign {

using enum ForeignFlag::Kind;

inline constexpr std::string_view
    on_cpu = "mica runs on the CPU",
    in_chunks = "attention is always in chunks", one_team = "one team of threads serves prompts and answers",
    plain_log = "notes go to stderr; -v has more", nice = "taskset, nice and numactl place a process",
    samplers = "there is no such sampler; --samplers lists those that there are",
    schema = "--json-schema SCHEMA takes a JSON Schema or a file with one",
    rope = "RoPE is scaled as the model's file says; mica inspect shows how",
    merge = "adapters are not applied; merge them into the model first, then use mica convert",
    eyes = "only text goes in; images and audio do not",
    get = "name the model as hf.co/ORG/REPO, or with -hf; mica pull downloads it",
    draft = "of a draft, --draft FILE, --draft-max and --draft-min can be chosen",
    session = "--session FILE saves the session and continues there",
    many_lines = "in a chat, three quotes begin and end text of many lines",
    thoughts = "thoughts go to stderr, and with --json to reasoning_content",
    server = "mica serve is the server, and has this flag";

// clang-format off
inline constexpr ForeignRow rows[] = {
    // llama.cpp: where things run
    {"-ngl --n-gpu-layers --gpu-layers -sm --split-mode -mg --main-gpu -ts --tensor-split -dev "
     "--device -ot --override-tensor -ncmoe --n-cpu-moe", valued, on_cpu},
    {"-cmoe --cpu-moe -nkvo --no-kv-offload --no-op-offload", switched, on_cpu},
    {"--list-devices", refused, "mica doctor shows this machine"},
    {"--rpc", refused, "a model runs on one machine"},
    {"-fa --flash-attn", valued, in_chunks},
    {"-tb --threads-batch", valued, one_team},
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll --numa", valued, nice},
    {"-nr --no-repack", switched, "weights lie as --weights says"},
    // llama.cpp: memory
    {"--mmap", switched, "use --weights mapped"},
    {"--no-mmap -dio --direct-io", switched, "use --weights resident"},
    {"--mlock", switched, "use --weights mapped-locked"},
    {"-lm --load-mode", valued, "use --weights"},
    {"-lzm --lazy-mode", valued, "use --weights mapped"},
    {"-fit -fitt -fitc", valued, "use --memory"},
    {"-fitp", refused, "mica plan MODEL shows what a run will need"},
    {"-dt --defrag-thold", valued, "the cache needs no defragmentation"},
    {"--swa-full", switched, "windows keep what they see"},
    {"--check-tensors", switched, "mica pack MODEL DIR checks every tensor"},
    {"--no-warmup --warmup", switched, "there is no warm-up"},
    // llama.cpp: the model
    {"-hfd --hf-repo-draft", refused, "use --draft hf.co/ORG/REPO"},
    {"-hft --hf-token", refused, "set the variable HF_TOKEN, which other processes do not see"},
    {"-mu --model-url", refused, get},
    {"-dr --docker-repo", refused, get},
    {"--lora --lora-scaled --control-vector --control-vector-scaled", refused, merge},
    {"-mm --mmproj --image --audio", refused, eyes},
    {"--no-mmproj", switched, eyes},
    {"--override-kv", refused, "a model is run with the metadata of its file"},
    {"--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "
     "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast", refused, rope},
    {"-gan --grp-attn-n -gaw --grp-attn-w", refused, "there is no self-extend; use -c, or --on-full shift"},
    {"-ngld --gpu-layers-draft -devd --device-draft", valued, on_cpu},
    {"-cd --ctx-size-draft --draft-p-min --draft-p-split", valued, draft},
    {"--spec-type", refused, "use --speculate ngram, or --draft FILE"},
    // llama.cpp: the choice of tokens
    {"--tfs --adaptive-target --adaptive-decay", refused, samplers},
    {"-jf --json-schema-file", refused, schema},
    {"--context-shift", refused, "use --on-full shift"},
    {"--no-context-shift", switched, "the context shifts with --on-full shift alone"},
    {"--backend-sampling", switched, on_cpu},
    // llama.cpp: talking
    {"--jinja", switched, "templates are always used"},
    {"--no-jinja", refused, "use --chat-template NAME, a format that is built in"},
    {"-i --interactive -if --interactive-first -ins --instruct", refused, "use mica chat"},
    {"-mli --multiline-input", switched, many_lines},
    {"--in-prefix --in-suffix --in-prefix-bos", refused, "use --chat-template-file"},
    {"--prompt-cache --prompt-cache-all --prompt-cache-ro", refused, session},
    {"--reasoning-budget", refused, "-n bounds thoughts and answer together; --think off ends thinking"},
    {"--reasoning-format", refused, thoughts},
    {"-bf --binary-file", refused, "use -f"},
    {"--no-escape", switched, "text is taken as it is, unless -e is given"},
    {"--no-display-prompt", switched, "the prompt is never shown"},
    {"--display-prompt", refused, "the prompt is never shown"},
    {"--verbose-prompt", switched, "mica tokenize shows the tokens of a text"},
    {"-sp", refused, "use --special"},
    {"--simple-io", switched, "output is plain on a pipe"},
    // llama.cpp: what is shown
    {"--log-disable", switched, "use -q"},
    {"--log-file --log-colors -lv --verbosity --log-verbosity", valued, plain_log},
    {"--log-jsonl --log-prefix --log-timestamps --log-verbose", switched, plain_log},
    {"--show-timings --perf", switched, "timings are always shown, unless -q is given"},
    {"--no-perf", switched, "timings cost nothing; -q hides them"},
    {"-pg", refused, "use -d for tokens that come before, with -n"},
    {"--completion-bash", refused, "use mica completion bash"},
    // llama.cpp: the server
    {"--host --port --api-key -a --alias", refused, server},
    // Ollama
    {"--format", refused, schema},
    {"--keepalive", valued, "a model stays in memory until the program ends"},
    {"--nowordwrap", switched, "lines are not wrapped"},
    {"--insecure", refused, "certificates are always checked"},
    {"--hidethinking", refused, "use --think hide"},
    // gemma.cpp
    {"--tokenizer", refused, "the tokenizer is in the model's file"},
    {"--seq_len", refused, "use -c"},
    {"--max_generated_tokens", refused, "use -n"},
    {"--prefill_tbatch", refused, "use --chunk"},
    {"--top_k", refused, "use --top-k"},
    {"--deterministic", refused, "use --temp 0, or --seed"},
    {"--multiturn", refused, "use mica chat"},
};
// clang-format on

inline constexpr std::size_t n_flags = [] {
  std::size_t n = 0;
  for (const ForeignRow& row : rows)
    n += 1 + static_cast<std::size_t>(std::count(row.names.begin(), row.names.end(), ' '));
  return n;
}();

/// The rows, one for each name.
inline constexpr std::array<ForeignFlag, n_flags> flags = [] {
  std::array<ForeignFlag, n_flags> all{};
  std::size_t n = 0;
  for (ForeignRow row : rows) {
    while (!row.names.empty()) {
      const std::size_t end = std::min(row.names.find(' '), row.names.size());
      all[n++] = {row.names.substr(0, end), row.kind, row.why};
      row.names.remove_prefix(std::min(end + 1, row.names.size()));
    }
  }
  return all;
}();

inline constexpr ForeignVerb verbs[] = {
    {"push", "models are files, and other tools move them"},
    {"ls", "use mica list"},
    {"download", "use mica pull"},
    {"ps", "a model is in memory while the program runs"},
    {"stop", "a model is in memory while the program runs"},
    {"cp", "models are files, and cp copies them"},
    {"create", "use mica convert DIR OUT.gguf, then mica quantize"},
    {"cli", "use mica run or mica chat"},
};

}  // namespace foreign

/// The row of a flag or a verb; null when there is none.
template <class Rows>
[[nodiscard]] constexpr auto find_foreign(const Rows& rows, std::string_view name) noexcept {
  const auto found =
      std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : &*found;
}

}  // namespace mica::program
