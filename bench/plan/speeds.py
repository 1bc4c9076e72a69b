#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The speed that is foretold beside the speed that is found.

usage: bench/plan/speeds.py MODEL... [--streamed MODEL:BUDGET...] [--rounds 3] [--json FILE]

The machine is measured anew (mica doctor --measure, of the disk too), into a cache folder of this script's
own, so that no earlier run corrects anything. Then, in turns, each model reads 512 tokens and writes 32 at a
depth of 0 and of 2,048 tokens; streamed ones write 4. Medians of the rounds.
"""
import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import peers  # noqa: E402

MICA = str(peers.ROOT / "build/release/mica")


def run(environment, *words):
    done = subprocess.run([MICA, *words], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(words)}: {done.stderr}")
    return json.loads(done.stdout)


def bench(environment, model, budget):
    if budget:
        words = ["-p", "0", "-n", "4", "-d", "0", "-r", "1", "-c", "512", "--chunk", "64", "--weights",
                 "streamed", "--memory", budget]
    else:
        words = ["-p", "512", "-n", "32", "-d", "0,2048", "-r", "1"]
    for row in run(environment, "bench", model, *words, "-o", "json"):
        name = f"{'read' if row['n_prompt'] else 'write'} at {row['n_depth']}" + (f", streamed in {budget}"
                                                                                  if budget else "")
        yield name, row["predicted_ts"], row["avg_ts"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--streamed", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    quiet, results = peers.Stolen(), []
    subjects = [(model, None) for model in options.models] + [tuple(each.rsplit(":", 1))
                                                              for each in options.streamed]
    found = {}
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as cache:
            environment = dict(os.environ, XDG_CACHE_HOME=cache)
            run(environment, "doctor", options.models[0], "--measure", "--json")
            kept = (pathlib.Path(cache) / "mica/machine.json").read_text()
            for model, budget in subjects:
                for name, foretold, measured in bench(environment, model, budget):
                    found.setdefault((pathlib.Path(model).name, name), []).append((foretold, measured))
                (pathlib.Path(cache) / "mica/machine.json").write_text(kept)  # nothing is learnt
    print("| model | what | foretold, tokens a second | found | ratio |\n|---|---|---|---|---|")
    for (model, name), pairs in found.items():
        foretold, measured = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(f / m for f, m in pairs)
        results.append({"model": model, "what": name, "foretold": foretold, "found": measured,
                        "ratio": ratio})
        print(f"| {model} | {name} | {foretold:.2f} | {measured:.2f} | {ratio:.2f} |")
    others, steal = quiet.end()
    print(f"cores of others {others:.2f}, stolen {steal:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": peers.cpu_name(), "command": "bench/plan/speeds.py "
                                            + shlex.join(sys.argv[1:]),
                                            "results": results, "cores_of_others": round(others, 3)},
                                           indent=1) + "\n")


if __name__ == "__main__":
    main()
