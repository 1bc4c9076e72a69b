// SPDX-License-Identifier: Apache-2.0
//
// Flags and verbs of other engines (llama.cpp, Ollama, gemma.cpp) that this program does not have, and what
// is said about each. A flag that changes no answer is ignored with a note; one that would change the answer
// is refused with what to do instead. A flag that a verb has itself is never looked up here.
#pragma once

#include <algorithm>
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
    no_fetch = "nothing is fetched",
    samplers = "there is no such sampler; --top-k, --top-p, --min-p and --temp choose the token",
    order = "the order of samplers is fixed: penalties, top-k, top-p, min-p, temperature",
    grammar = "answers cannot be held to a grammar or a JSON schema",
    rope = "RoPE is scaled as the model's file says; mica inspect shows how",
    merge = "adapters are not applied; merge them into the model first, then use mica convert",
    eyes = "only text goes in; images and audio do not",
    get =
        "models come as files for now: download the GGUF from huggingface.co and name it, as in "
        "mica run FILE; of a folder of safetensors, mica convert makes one",
    draft = "of a draft, --draft FILE, --draft-max and --draft-min can be chosen",
    session = "--session FILE keeps what was read and goes on there",
    many_lines = "in a chat, three quotes begin and end text of many lines",
    thoughts = "the model's template decides; --chat-template-file takes another",
    server = "there is no server; mica run, mica chat and mica complete answer here";

// clang-format off
inline constexpr ForeignFlag flags[] = {
    // llama.cpp: where things run
    {"-ngl", valued, on_cpu},
    {"--n-gpu-layers", valued, on_cpu},
    {"--gpu-layers", valued, on_cpu},
    {"-sm", valued, on_cpu},
    {"--split-mode", valued, on_cpu},
    {"-mg", valued, on_cpu},
    {"--main-gpu", valued, on_cpu},
    {"-ts", valued, on_cpu},
    {"--tensor-split", valued, on_cpu},
    {"-dev", valued, on_cpu},
    {"--device", valued, on_cpu},
    {"-ot", valued, on_cpu},
    {"--override-tensor", valued, on_cpu},
    {"-cmoe", switched, on_cpu},
    {"--cpu-moe", switched, on_cpu},
    {"-ncmoe", valued, on_cpu},
    {"--n-cpu-moe", valued, on_cpu},
    {"-nkvo", switched, on_cpu},
    {"--no-kv-offload", switched, on_cpu},
    {"--no-op-offload", switched, on_cpu},
    {"--list-devices", refused, "mica doctor shows this machine"},
    {"--rpc", refused, "a model runs on one machine"},
    {"-fa", valued, in_chunks},
    {"--flash-attn", valued, in_chunks},
    {"-tb", valued, one_team},
    {"--threads-batch", valued, one_team},
    {"-C", valued, nice},
    {"--cpu-mask", valued, nice},
    {"-Cr", valued, nice},
    {"--cpu-range", valued, nice},
    {"--cpu-strict", valued, nice},
    {"--prio", valued, nice},
    {"--poll", valued, nice},
    {"--numa", valued, nice},
    {"-nr", switched, "weights lie as --weights says"},
    {"--no-repack", switched, "weights lie as --weights says"},

    // llama.cpp: memory
    {"--mmap", switched, "use --weights mapped"},
    {"--no-mmap", switched, "use --weights resident"},
    {"--mlock", switched, "use --weights mapped-locked"},
    {"-lm", valued, "use --weights"},
    {"--load-mode", valued, "use --weights"},
    {"-dio", switched, "use --weights resident"},
    {"--direct-io", switched, "use --weights resident"},
    {"-lzm", valued, "use --weights mapped"},
    {"--lazy-mode", valued, "use --weights mapped"},
    {"-fit", valued, "use --memory"},
    {"-fitt", valued, "use --memory"},
    {"-fitc", valued, "use --memory"},
    {"-fitp", refused, "mica plan MODEL shows what a run will need"},
    {"-dt", valued, "the cache needs no defragmentation"},
    {"--defrag-thold", valued, "the cache needs no defragmentation"},
    {"--swa-full", switched, "windows keep what they see"},
    {"--check-tensors", switched, "mica pack MODEL DIR checks every tensor"},
    {"--no-warmup", switched, "there is no warm-up"},
    {"--warmup", switched, "there is no warm-up"},

    // llama.cpp: the model
    {"-hf", refused, get},
    {"-hfr", refused, get},
    {"--hf-repo", refused, get},
    {"-hff", refused, get},
    {"--hf-file", refused, get},
    {"-hfd", refused, get},
    {"--hf-repo-draft", refused, get},
    {"-hft", refused, get},
    {"--hf-token", refused, get},
    {"-mu", refused, get},
    {"--model-url", refused, get},
    {"-dr", refused, get},
    {"--docker-repo", refused, get},
    {"--offline", switched, no_fetch},
    {"--lora", refused, merge},
    {"--lora-scaled", refused, merge},
    {"--control-vector", refused, merge},
    {"--control-vector-scaled", refused, merge},
    {"-mm", refused, eyes},
    {"--mmproj", refused, eyes},
    {"--no-mmproj", switched, eyes},
    {"--image", refused, eyes},
    {"--audio", refused, eyes},
    {"--override-kv", refused, "a model is run with the metadata of its file"},
    {"--rope-scaling", refused, rope},
    {"--rope-scale", refused, rope},
    {"--rope-freq-base", refused, rope},
    {"--rope-freq-scale", refused, rope},
    {"--yarn-orig-ctx", refused, rope},
    {"--yarn-ext-factor", refused, rope},
    {"--yarn-attn-factor", refused, rope},
    {"--yarn-beta-slow", refused, rope},
    {"--yarn-beta-fast", refused, rope},
    {"-gan", refused, "there is no self-extend; use -c, or --on-full shift"},
    {"--grp-attn-n", refused, "there is no self-extend; use -c, or --on-full shift"},
    {"-gaw", refused, "there is no self-extend; use -c, or --on-full shift"},
    {"--grp-attn-w", refused, "there is no self-extend; use -c, or --on-full shift"},
    {"-ngld", valued, on_cpu},
    {"--gpu-layers-draft", valued, on_cpu},
    {"-devd", valued, on_cpu},
    {"--device-draft", valued, on_cpu},
    {"-cd", valued, draft},
    {"--ctx-size-draft", valued, draft},
    {"--draft-p-min", valued, draft},
    {"--draft-p-split", valued, draft},
    {"--spec-type", refused, "use --speculate ngram, or --draft FILE"},

    // llama.cpp: the choice of tokens
    {"--samplers", refused, order},
    {"--sampler-seq", refused, order},
    {"--sampling-seq", refused, order},
    {"--typical", refused, samplers},
    {"--typical-p", refused, samplers},
    {"--top-nsigma", refused, samplers},
    {"--top-n-sigma", refused, samplers},
    {"--tfs", refused, samplers},
    {"--xtc-probability", refused, samplers},
    {"--xtc-threshold", refused, samplers},
    {"--dynatemp-range", refused, samplers},
    {"--dynatemp-exp", refused, samplers},
    {"--mirostat", refused, samplers},
    {"--mirostat-lr", refused, samplers},
    {"--mirostat-ent", refused, samplers},
    {"--dry-multiplier", refused, "use --repeat-penalty"},
    {"--dry-base", refused, "use --repeat-penalty"},
    {"--dry-allowed-length", refused, "use --repeat-penalty"},
    {"--dry-penalty-last-n", refused, "use --repeat-last-n"},
    {"--dry-sequence-breaker", refused, "use --repeat-penalty"},
    {"-l", refused, "the logits of single tokens cannot be changed"},
    {"--logit-bias", refused, "the logits of single tokens cannot be changed"},
    {"--grammar", refused, grammar},
    {"--grammar-file", refused, grammar},
    {"-j", refused, grammar},
    {"--json-schema", refused, grammar},
    {"-jf", refused, grammar},
    {"--json-schema-file", refused, grammar},
    {"--context-shift", refused, "use --on-full shift"},
    {"--no-context-shift", switched, "the context shifts with --on-full shift alone"},
    {"--backend-sampling", switched, on_cpu},

    // llama.cpp: talking
    {"--jinja", switched, "templates are always used"},
    {"--no-jinja", refused, "use --chat-template NAME, a format that is built in"},
    {"-i", refused, "use mica chat"},
    {"--interactive", refused, "use mica chat"},
    {"-if", refused, "use mica chat"},
    {"--interactive-first", refused, "use mica chat"},
    {"-ins", refused, "use mica chat"},
    {"--instruct", refused, "use mica chat"},
    {"-mli", switched, many_lines},
    {"--multiline-input", switched, many_lines},
    {"--in-prefix", refused, "use --chat-template-file"},
    {"--in-suffix", refused, "use --chat-template-file"},
    {"--in-prefix-bos", refused, "use --chat-template-file"},
    {"--prompt-cache", refused, session},
    {"--prompt-cache-all", refused, session},
    {"--prompt-cache-ro", refused, session},
    {"--reasoning", refused, thoughts},
    {"--reasoning-budget", refused, "-n bounds the whole answer"},
    {"--reasoning-format", refused, "what a model writes is shown as it is"},
    {"--chat-template-kwargs", refused, "mica template --set NAME=JSON shows what one does"},
    {"-bf", refused, "use -f"},
    {"--binary-file", refused, "use -f"},
    {"--no-escape", switched, "text is taken as it is, unless -e is given"},
    {"--no-display-prompt", switched, "the prompt is never shown"},
    {"--display-prompt", refused, "the prompt is never shown"},
    {"--verbose-prompt", switched, "mica tokenize shows the tokens of a text"},
    {"-sp", refused, "use --special"},
    {"--simple-io", switched, "output is plain on a pipe"},

    // llama.cpp: what is shown
    {"--log-disable", switched, "use -q"},
    {"--log-file", valued, plain_log},
    {"--log-colors", valued, plain_log},
    {"--log-jsonl", switched, plain_log},
    {"--log-prefix", switched, plain_log},
    {"--log-timestamps", switched, plain_log},
    {"-lv", valued, plain_log},
    {"--verbosity", valued, plain_log},
    {"--log-verbosity", valued, plain_log},
    {"--log-verbose", switched, plain_log},
    {"--show-timings", switched, "timings are always shown, unless -q is given"},
    {"--perf", switched, "timings are always shown, unless -q is given"},
    {"--no-perf", switched, "timings cost nothing; -q hides them"},
    {"-pg", refused, "use -d for tokens that come before, with -n"},
    {"--completion-bash", refused, "there are no shell completions"},

    // llama.cpp: the server
    {"--host", refused, server},
    {"--port", refused, server},
    {"--api-key", refused, server},
    {"-a", refused, server},
    {"--alias", refused, server},

    // Ollama
    {"--format", refused, grammar},
    {"--keepalive", valued, "a model stays in memory until the program ends"},
    {"--nowordwrap", switched, "lines are not wrapped"},
    {"--insecure", switched, no_fetch},
    {"--think", refused, thoughts},
    {"--hidethinking", refused, "what a model writes is shown as it is"},

    // gemma.cpp
    {"--tokenizer", refused, "the tokenizer is in the model's file"},
    {"--seq_len", refused, "use -c"},
    {"--max_generated_tokens", refused, "use -n"},
    {"--prefill_tbatch", refused, "use --chunk"},
    {"--top_k", refused, "use --top-k"},
    {"--deterministic", refused, "use --temp 0, or --seed"},
    {"--multiturn", refused, "use mica chat"},
};

inline constexpr ForeignVerb verbs[] = {
    {"pull", get},
    {"push", "models are files, and other tools move them"},
    {"list", "models are files; mica fit FOLDER looks at those of a folder"},
    {"ls", "models are files; mica fit FOLDER looks at those of a folder"},
    {"show", "use mica inspect FILE"},
    {"ps", "a model is in memory while the program runs"},
    {"stop", "a model is in memory while the program runs"},
    {"rm", "models are files, and rm removes them"},
    {"cp", "models are files, and cp copies them"},
    {"create", "use mica convert DIR OUT.gguf, then mica quantize"},
    {"serve", server},
    {"cli", "use mica run or mica chat"},
    {"completion", "there are no shell completions"},
};
// clang-format on

}  // namespace foreign

/// The row of a flag or a verb; null when there is none.
template <class Row, std::size_t n>
[[nodiscard]] constexpr const Row* find_foreign(const Row (&rows)[n], std::string_view name) noexcept {
  const auto found =
      std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : &*found;
}

}  // namespace mica::program
