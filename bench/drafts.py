#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often a small quantisation of a model guesses what the model itself says: tokens that one pass over the
weights gives.

usage: bench/drafts.py MODEL [--type Q4_K_M] [--drafts 1,2,4,8] [--seeds 8] [--tokens 200] [--json FILE]

MODEL is quantised, and its copy drafts for it a fixed number of tokens a step (--draft-min and --draft-max),
at temperature 0 and at 0.8, for several beginnings and seeds. Counts are the same on every machine and in
every run. Each answer is compared with the one that was written without drafts.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import peers

MICA = str(peers.ROOT / "build/release/mica")
BEGINNINGS = ["Once upon a time", "There was an old man who", "The king said to his daughter",
              "In the middle of the forest"]


def answer(model, beginning, seed, temperature, tokens, more):
    """Text and timings."""
    command = [MICA, "complete", model, beginning, "-n", str(tokens), "--temp", str(temperature), "--seed",
               str(seed), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: {done.stderr}")
    said = json.loads(done.stdout)
    return said["content"], said["timings"]


def measure(options, draft, temperature, drafts):
    sums = {"tokens": 0, "steps": 0, "drafted": 0, "accepted": 0}
    for beginning in BEGINNINGS:
        for seed in range(1, options.seeds + 1 if temperature else 2):
            plain, _ = answer(options.model, beginning, seed, temperature, options.tokens, [])
            more = ["--draft", draft, "--draft-min", str(drafts), "--draft-max", str(drafts)]
            text, timings = answer(options.model, beginning, seed, temperature, options.tokens, more)
            if text != plain:
                sys.exit(f"another answer with drafts: {beginning!r}, seed {seed}")
            accepted = timings["draft_n_accepted"]
            sums["tokens"] += timings["predicted_n"] - 1  # the first comes with the prompt
            sums["steps"] += timings["predicted_n"] - 1 - accepted
            sums["drafted"] += timings["draft_n"]
            sums["accepted"] += accepted
    return {"temperature": temperature, "drafts": drafts, **sums,
            "accepted_part": sums["accepted"] / sums["drafted"],
            "tokens_per_step": sums["tokens"] / sums["steps"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--type", default="Q4_K_M")
    parser.add_argument("--drafts", default="1,2,4,8")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = []
    print("| temperature | drafts a step | accepted | tokens a step |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        draft = str(pathlib.Path(folder) / "draft.gguf")
        subprocess.run([MICA, "quantize", options.model, draft, options.type, "-q"], check=True,
                       stdout=subprocess.DEVNULL)
        for temperature in (0, 0.8):
            for drafts in map(int, options.drafts.split(",")):
                r = measure(options, draft, temperature, drafts)
                results.append(r)
                print(f"| {temperature} | {drafts} | {r['accepted']} of {r['drafted']} | "
                      f"{r['tokens_per_step']:.2f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"command": "bench/drafts.py " + shlex.join(sys.argv[1:]),
                                            "model": pathlib.Path(options.model).name, "results": results},
                                           indent=1) + "\n")


if __name__ == "__main__":
    main()
