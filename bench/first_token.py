#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Milliseconds from the start of a process to its first token.

usage: bench/first_token.py [--runs 100] [--json bench/results/first-token.json] [-- COMMAND...]

Starts the command again and again and takes the time until the first byte stands on its stdout. Without a
command it is mica with the model that travels with it: mica complete examples/models/fairy.gguf "Once" -n 1
--temp 0 -q. The file is in the page cache from the first run on, which is not counted.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

import peers


def first_byte(command):
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    byte = process.stdout.read(1)
    seconds = time.perf_counter() - begin
    process.stdout.read()
    if process.wait() != 0 or not byte:
        sys.exit(f"{shlex.join(command)}: no token came, exit code {process.returncode}")
    return seconds * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    command = options.command or [str(peers.ROOT / "build/release/mica"), "complete",
                                  str(peers.ROOT / "examples/models/fairy.gguf"), "Once", "-n", "1", "--temp",
                                  "0", "-q"]
    first_byte(command)
    quiet = peers.Stolen()
    runs = sorted(first_byte(command) for _ in range(options.runs))
    others, steal = quiet.end()
    result = {"machine": peers.cpu_name(), "command": "bench/first_token.py " + shlex.join(sys.argv[1:]),
              "runs": options.runs,
              "best_ms": runs[0], "median_ms": statistics.median(runs), "p90_ms": runs[int(len(runs) * 0.9)],
              "cores_of_others": round(others, 3), "cores_stolen": round(steal, 3)}
    print(f"best {result['best_ms']:.1f} ms, median {result['median_ms']:.1f} ms, nine in ten below "
          f"{result['p90_ms']:.1f} ms; "
          f"cores of others {others:.2f}, stolen {steal:.2f}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
