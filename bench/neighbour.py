#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is left of decoding beside a program that never rests.

usage: bench/neighbour.py MODEL.gguf [--mica build/release/mica] [--peer NAME=COMMAND]...
                          [--see NAME=FOLDER]... [-n 64] [-t 2]
                          [--neighbours 1] [--rounds 5] [--json bench/results/neighbour.json]

Each round decodes alone and beside the neighbours, in an order that turns; the figure is the ratio of the
two. Neighbours are loops of one thread, pinned nowhere. Where T threads share C cores with B neighbours, the
fair share of what was there before is about C / (T + B) of a core for each thread: 0.67 for two threads and
one neighbour on two cores.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys

import peers


def loops(count):
    return [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]


def one(engine, model, test, busy):
    others = loops(test["neighbours"]) if busy else []
    try:
        return engine.run(model, test)["avg_ts"]
    finally:
        for each in others:
            each.kill()
            each.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--mica", default=str(peers.ROOT / "build/release/mica"))
    parser.add_argument("--peer", type=peers.named, action="append", default=[])
    parser.add_argument("--see", type=peers.named, action="append", default=[])
    parser.add_argument("-n", "--decode", type=int, default=64)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--neighbours", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--note", default="")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    test = {"kind": "decode", "tokens": options.decode, "depth": 0, "threads": options.threads,
            "type_k": "f16", "type_v": "f16",
            "flash": 0, "neighbours": options.neighbours}
    engines = peers.engines_of(options)
    speeds = {engine.name: {"alone": [], "beside": []} for engine in engines}
    for turn in range(options.rounds):
        for engine in engines:
            for busy in ((False, True) if turn % 2 == 0 else (True, False)):
                speeds[engine.name]["beside" if busy else "alone"].append(one(engine, options.model, test,
                                                                              busy))
    print("| engine | alone t/s | beside t/s | kept (least, most) |\n|---|---|---|---|")
    results = []
    for name, both in speeds.items():
        kept = [b / a for a, b in zip(both["alone"], both["beside"])]
        results.append({"engine": name, **both, "kept": kept, "kept_median": statistics.median(kept)})
        print(f"| {name} | {statistics.median(both['alone']):.2f} | {statistics.median(both['beside']):.2f} "
              f"| "
              f"{statistics.median(kept):.2f} ({min(kept):.2f}, {max(kept):.2f}) |")
    if options.json:
        options.json.write_text(json.dumps({
            "machine": peers.cpu_name(), "command": shlex.join(["bench/neighbour.py", *sys.argv[1:]]),
                                            "note": options.note,
            "model": pathlib.Path(options.model).name, "test": test, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
