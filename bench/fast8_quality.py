#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rounding weights to eight bits (--kernels fast8) costs: perplexity of both kernels, and their
divergence.

usage: bench/fast8_quality.py --mica build/release/mica MODEL.gguf -f TEXT [--formats Q4_K_M,...] [-c 256]
                              [--folder DIR] [--json FILE]

mica quantises MODEL (of F32 or F16) into --folder. Exact kernels write the logits of the text, and fast8 is
compared with them: the Kullback-Leibler divergence stands beside that of the exact kernels from MODEL itself,
which is what the format costs.
"""
import argparse
import json
import pathlib
import shlex

from perplexity import run

FORMATS = "F16,BF16,Q8_0,Q6_K,Q5_K_M,Q4_K_M,Q4_0,IQ4_XS,Q3_K_M,Q2_K"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-f", "--text", required=True)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("--formats", default=FORMATS)
    parser.add_argument("-c", "--context", default="256")
    parser.add_argument("--chunks", default="0", help="windows of the text; 0: all")
    parser.add_argument("-t", "--threads", default="2")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/perplexity"))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    mica = shlex.split(options.mica)
    options.folder.mkdir(parents=True, exist_ok=True)
    common = ["-f", options.text, "-c", options.context, "--chunks", options.chunks, "-t", options.threads,
              "--json", "-q"]

    def measure(file, kernels, *more):
        return json.loads(run([*mica, "perplexity", str(file), "--kernels", kernels, *common, *more]))

    original, exact_logits = str(options.folder / "original.logits"), str(options.folder / "exact.logits")
    measure(options.model, "exact", "--kl-divergence-base", original)
    results = []
    print("| format | perplexity, exact | fast8 | fast8 / exact - 1 | KL, exact from original | KL, fast8 "
          "from exact |\n"
          "|---|---|---|---|---|---|")
    for name in options.formats.split(","):
        file = options.folder / f"{name}.gguf"
        run([*mica, "quantize", options.model, str(file), name, "-q"])
        exact = measure(file, "exact", "--kl-divergence-base", exact_logits)
        fast8 = measure(file, "fast8", "--kl-divergence-base", exact_logits, "--kl-divergence")
        format_kl = measure(file, "exact", "--kl-divergence-base", original, "--kl-divergence")
        row = {"format": name, "exact": exact["ppl"], "fast8": fast8["ppl"],
               "format_kl": format_kl["kl"], "fast8_kl": fast8["kl"]}
        results.append(row)
        print(f"| {name} | {row['exact']:.3f} | {row['fast8']:.3f} | {row['fast8'] / row['exact'] - 1:+.5f} "
              f"| "
              f"{row['format_kl']:.6f} | {row['fast8_kl']:.6f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"model": pathlib.Path(options.model).name,
                                            "n_ctx": options.context,
                                            "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
