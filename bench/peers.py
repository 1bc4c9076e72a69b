#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mica beside another engine on the same file, interleaved.

usage: bench/peers.py --mica build/release/mica --peer llama-bench MODEL.gguf
                      [-p 512] [-n 64] [-d 0] [-t 2] [--rounds 5] [--peer-model PATH] [--json bench/results/NAME.json]

The peer is any command that takes llama-bench's flags and prints its JSON. Each round runs one test of either program after
the other, so that a change of the machine's speed meets both; the figure that counts is the ratio of a round, and its
median. --peer may be several words, such as "chroot DIR llama-bench"; --peer-model is the file as the peer sees it.
"""
import argparse
import json
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys


def run(command, model, test, options):
    """Tokens per second of one test, by a program that speaks llama-bench."""
    kind, count = test
    words = [*command, "-m", model, "-p", str(count if kind == "prefill" else 0), "-n", str(count if kind == "decode" else 0),
             "-d", str(options.depth), "-t", str(options.threads), "-r", "1", "-o", "json"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)[0]["avg_ts"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("--peer", default="llama-bench")
    parser.add_argument("--peer-model")
    parser.add_argument("-p", "--prefill", type=int, default=512)
    parser.add_argument("-n", "--decode", type=int, default=64)
    parser.add_argument("-d", "--depth", type=int, default=0)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    mica = [*shlex.split(options.mica), "bench"]
    peer = shlex.split(options.peer)
    results = []
    print("| test | mica t/s (best, median) | peer t/s (best, median) | ratio (median of rounds, least, most) |\n|---|---|---|---|")
    for kind, count in (("prefill", options.prefill), ("decode", options.decode)):
        if count == 0:
            continue
        ours, theirs = [], []
        for _ in range(options.rounds):
            ours.append(run(mica, options.model, (kind, count), options))
            theirs.append(run(peer, options.peer_model or options.model, (kind, count), options))
        ratios = [a / b for a, b in zip(ours, theirs)]
        results.append({"test": kind, "tokens": count, "mica_ts": ours, "peer_ts": theirs, "ratio_median": statistics.median(ratios)})
        print(f"| {kind} {count} at {options.depth} | {max(ours):.2f}, {statistics.median(ours):.2f} | "
              f"{max(theirs):.2f}, {statistics.median(theirs):.2f} | {statistics.median(ratios):.2f}, {min(ratios):.2f}, "
              f"{max(ratios):.2f} |", flush=True)
    if options.json:
        machine = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "") \
            if pathlib.Path("/proc/cpuinfo").exists() else platform.processor()
        options.json.write_text(json.dumps({"machine": machine, "threads": options.threads, "depth": options.depth,
                                            "model": pathlib.Path(options.model).name, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
