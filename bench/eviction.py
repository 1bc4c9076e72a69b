#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What forgetting does to one model: perplexity, and KL against the cache that keeps everything.

usage: bench/eviction.py MODEL.gguf -f TEXT [--mica build/release/mica] [-c 512] [--chunks N] [--policies "none;sinks:256;heavy:256"]
                         [--json bench/results/NAME.json]

KL is to the first policy. Windows are longer than what is kept; their second halves count.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

POLICIES = "none;sinks:256,0;sinks:256;heavy:256"


def run(words):
    """The JSON that a command prints."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-f", "--text", required=True)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("-c", "--context", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=0)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--policies", default=POLICIES, help="with semicolons between them")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    mica = shlex.split(options.mica)
    common = ["-c", str(options.context), "-t", str(options.threads), "--json", "-q"]
    if options.chunks:
        common += ["--chunks", str(options.chunks)]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        base = f"{folder}/base"
        print("| policy | kv bytes | perplexity | +/- | KL | top token the same, % |\n|---|---|---|---|---|---|")
        for policy in options.policies.split(";"):
            how = ["--evict", policy]
            kv = run([*mica, "plan", options.model, "-c", str(options.context), "--json", *how])["accounts"]["kv"]
            if not results:
                seen = run([*mica, "perplexity", options.model, "-f", options.text, "--kl-divergence-base", base,
                            *how, *common])
                seen = {"ppl": seen["ppl"], "ppl_se": seen["se"], "kl": 0, "same_top": 1}
            else:
                seen = run([*mica, "perplexity", options.model, "--kl-divergence", "--kl-divergence-base", base,
                            *how, *common])
            results.append({"policy": policy, "kv_bytes": kv,
                            **{name: seen[name] for name in ("ppl", "ppl_se", "kl", "same_top")}})
            print(f"| `{policy}` | {kv:,} | {seen['ppl']:.3f} | {seen['ppl_se']:.3f} | {seen['kl']:.3g} "
                  f"| {100 * seen['same_top']:.1f} |", flush=True)
    if options.json:
        rows = ",\n".join("  " + json.dumps(row) for row in results)
        head = {"command": f"bench/eviction.py {options.model} -f TEXT -c {options.context}"
                + (f" --chunks {options.chunks}" if options.chunks else "") + f" --policies '{options.policies}'",
                "model": pathlib.Path(options.model).name, "text": pathlib.Path(options.text).name}
        options.json.write_text(json.dumps(head)[:-1] + f', "policies": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    main()
