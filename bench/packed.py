#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A packed directory beside the file that it was packed from: the same budget, in turns.

usage: bench/packed.py MODEL.gguf DIR BUDGET... [--tokens 8] [--prompt 64] [--context 512] [--turns 3] [--json FILE]

For each budget (3GiB, 800MiB) mica bench --weights streamed --memory BUDGET runs on the file and on the
directory, in turns, and then with mapped and resident weights without a budget where the budget is "all".
Prints medians of tokens per second and their ratio, directory to file.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MICA = str(ROOT / "build/release/mica")


def speeds(model, how, args):
    command = [MICA, "bench", model, "-p", str(args.prompt), "-n", str(args.tokens), "-r", "1", "-c",
               str(args.context),
               "-o", "json", "-q"] + how
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)}: {ran.stderr}")
    return {"write" if test["n_gen"] else "read": test["avg_ts"] for test in json.loads(ran.stdout)}


def compare(how, args):
    found = {"file": [], "packed": []}
    for _ in range(args.turns):
        found["file"].append(speeds(args.model, how, args))
        found["packed"].append(speeds(args.packed, how, args))
    row = {"how": " ".join(how)}
    for test in ("read", "write"):
        a, b = (statistics.median(x[test] for x in found[kind]) for kind in ("file", "packed"))
        row[test] = {"file": a, "packed": b, "ratio": b / a,
                     "turns": [y[test] / x[test] for x, y in zip(found["file"], found["packed"])]}
        print(f"{row['how']:40} {test:6} file {a:9.3f} t/s   packed {b:9.3f} t/s   ratio {b / a:.3f}",
              flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("packed")
    parser.add_argument("budgets", nargs="+")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    for budget in args.budgets:
        kinds = ([["--weights", "mapped"], ["--weights", "resident"]] if budget == "all" else
                 [["--weights", "streamed", "--memory", budget]])
        rows += [compare(how, args) for how in kinds]
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
