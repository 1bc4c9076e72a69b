#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What elements of keys and values do to one model: bytes per token, perplexity, and KL against keys and
values in F32.

usage: bench/kv_elements.py MODEL.gguf -f TEXT [--mica build/release/mica] [-c 256] [--chunks N]
                            [--pairs F16,Q8_0/Q4_0,KIVI2@32,...]
                            [--json bench/results/NAME.json]

A pair is the element of the keys and that of the values; one name is both. KIVI2@32 keeps the last 32 tokens
in F16. Bytes per token are those of old tokens; what recent ones take beside them does not grow with the
text.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

PAIRS = "F32,F16,BF16,Q8_0,Q5_1,Q5_0,Q4_1,Q4_0,IQ4_NL,Q8_0/Q4_0,KIVI4@32,KIVI2@32," \
    "Q5_1_ROTATED,Q4_1_ROTATED,Q4_0_PLAIN,IQ4_NL_ROTATED"


def run(words):
    """The JSON that a command prints."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def parser_of(text, context):
    """What comparisons by KL are told."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-f", "--text", required=True)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("-c", "--context", type=int, default=context)
    parser.add_argument("--chunks", type=int, default=0)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    return parser


def common_words(options):
    """What all runs of mica perplexity are told."""
    words = ["-c", str(options.context), "-t", str(options.threads), "--json", "-q"]
    return words + (["--chunks", str(options.chunks)] if options.chunks else [])


def write(options, script, how, name, results):
    """The figures beside the command that repeats them."""
    rows = ",\n".join("  " + json.dumps(row) for row in results)
    head = {"command": f"bench/{script} {options.model} -f TEXT -c {options.context}"
            + (f" --chunks {options.chunks}" if options.chunks else "") + how,
            "model": pathlib.Path(options.model).name, "text": pathlib.Path(options.text).name}
    options.json.write_text(json.dumps(head)[:-1] + f', "{name}": [\n{rows}\n]}}\n')


def main():
    parser = parser_of(__doc__, 256)
    parser.add_argument("--pairs", default=PAIRS)
    options = parser.parse_args()
    mica, common = shlex.split(options.mica), common_words(options)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        base = f"{folder}/base"
        run([*mica, "perplexity", options.model, "-f", options.text, "-ctk", "f32", "-ctv", "f32",
             "--kl-divergence-base", base, *common])
        print("| keys | values | bytes per token | perplexity | +/- | KL | top token the same, % "
              "|\n|---|---|---|---|---|---|---|")
        for pair in options.pairs.split(","):
            names, _, recent = pair.partition("@")
            keys, _, values = names.partition("/")
            values = values or keys
            types = ["-ctk", keys, "-ctv", values]
            if recent:
                types += ["--cache-recent", recent]
                keys += f", after {recent}"
            plan = run([*mica, "plan", options.model, "-c", str(options.context), "--json", *types])
            seen = run([*mica, "perplexity", options.model, "--kl-divergence", "--kl-divergence-base", base,
                        *types, *common])
            results.append({"keys": names.partition("/")[0], "values": values,
                            "bytes_per_token": plan["kv_bytes_per_token"],
                            "recent": int(recent or 0), "ppl": seen["ppl"], "ppl_se": seen["ppl_se"],
                            "kl": seen["kl"], "kl_se": seen["kl_se"],
                            "same_top": seen["same_top"]})
            print(f"| {keys} | {values} | {plan['kv_bytes_per_token']:,} | {seen['ppl']:.3f} | "
                  f"{seen['ppl_se']:.3f} "
                  f"| {seen['kl']:.2g} | {100 * seen['same_top']:.1f} |", flush=True)
    if options.json:
        write(options, "kv_elements.py", f" --pairs {options.pairs}", "elements", results)


if __name__ == "__main__":
    main()
