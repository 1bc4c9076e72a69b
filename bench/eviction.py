#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What forgetting does to one model: perplexity, and KL against the cache that keeps everything.

usage: bench/eviction.py MODEL.gguf -f TEXT [--mica build/release/mica] [-c 512] [--chunks N]
                         [--policies "none;sinks:256;heavy:256"]
                         [--json bench/results/NAME.json]

KL is to the first policy. Windows are longer than what is kept; their second halves count.
"""
import shlex
import tempfile

from kv_elements import common_words, parser_of, run, write

POLICIES = "none;sinks:256,0;sinks:256;heavy:256"


def main():
    parser = parser_of(__doc__, 512)
    parser.add_argument("--policies", default=POLICIES, help="with semicolons between them")
    options = parser.parse_args()
    mica, common = shlex.split(options.mica), common_words(options)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        base = f"{folder}/base"
        print("| policy | kv bytes | perplexity | +/- | KL | top token the same, % "
              "|\n|---|---|---|---|---|---|")
        for policy in options.policies.split(";"):
            how = ["--evict", policy]
            kv = run([*mica, "plan", options.model, "-c", str(options.context), "--json",
                      *how])["accounts"]["kv"]
            if not results:
                seen = run([*mica, "perplexity", options.model, "-f", options.text, "--kl-divergence-base",
                            base,
                            *how, *common])
                seen = {"ppl": seen["ppl"], "ppl_se": seen["se"], "kl": 0, "same_top": 1}
            else:
                seen = run([*mica, "perplexity", options.model, "--kl-divergence", "--kl-divergence-base",
                            base,
                            *how, *common])
            results.append({"policy": policy, "kv_bytes": kv,
                            **{name: seen[name] for name in ("ppl", "ppl_se", "kl", "same_top")}})
            print(f"| `{policy}` | {kv:,} | {seen['ppl']:.3f} | {seen['ppl_se']:.3f} | {seen['kl']:.3g} "
                  f"| {100 * seen['same_top']:.1f} |", flush=True)
    if options.json:
        write(options, "eviction.py", f" --policies '{options.policies}'", "policies", results)


if __name__ == "__main__":
    main()
