#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it takes to go on with a saved session after a restart.

usage: bench/session.py MODEL... [--tokens 4096 16384] [--runs 5] [--json bench/results/session.json] [-- OPTIONS...]

For each model and length: a prompt is read and saved (mica complete -n 0 --session). Then processes are started that go on with one
token, and the time until it stands on stdout is taken: with the saved file in the page cache, with the file dropped from it,
and, for comparison, of a process that goes on with one byte of text and no session (loading the model and one step). Before
anything is timed, the text that goes on after a restart is compared with that of one run. OPTIONS go to every run of mica.
"""
import argparse
import json
import os
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import first_token
import peers

MICA = str(peers.ROOT / "build/release/mica")


def drop(path):
    """Takes a file out of the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def text_of(command):
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return done.stdout.rstrip(b"\n")


def measure(model, tokens, options, folder):
    prompt, saved, again = (str(folder / name) for name in ("prompt.txt", "session", "again"))
    letters = random.Random(tokens)
    pathlib.Path(prompt).write_text("".join(letters.choice("abcdefgh") for _ in range(tokens - 2)))  # a token each, BOS, a space
    run = [MICA, "complete", model, "-c", str(tokens + 64), "--temp", "0", "-q"] + options.mica
    begin = time.perf_counter()
    text_of(run + ["-f", prompt, "-n", "0", "--session", saved])
    read = time.perf_counter() - begin
    size = os.path.getsize(saved)

    whole = text_of(run + ["-f", prompt, "-n", "8"])
    text_of(run + ["-f", prompt, "-n", "3", "--session", again])
    parts = text_of(run + ["-f", prompt, "-n", "3"]) + text_of(run + ["-n", "5", "--session", again])
    if whole != parts:
        sys.exit(f"{model}: after a restart the text is another one")
    os.remove(again)

    go_on, alone = run + ["-n", "1", "--session", saved], run + ["-p", "a", "-n", "1"]
    keep = pathlib.Path(saved).read_bytes
    warm, cold, begin_anew = [], [], []
    original = keep()
    for _ in range(options.runs):
        for times, state in ((warm, "warm"), (cold, "cold"), (begin_anew, "alone")):
            pathlib.Path(saved).write_bytes(original)  # each run saves at its end
            if state == "cold":
                drop(saved)
            times.append(first_token.first_byte(alone if state == "alone" else go_on))
    return {"model": pathlib.Path(model).name, "tokens": tokens, "session_bytes": size, "read_and_save_ms": read * 1e3,
            "first_token_ms": {"cached_file": statistics.median(warm), "dropped_file": statistics.median(cold),
                               "no_session": statistics.median(begin_anew)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 16384])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, help="where sessions are saved; a temporary folder by default")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.mica = arguments[at + 1:]
    quiet = peers.Stolen()
    results = []
    print("| model | tokens | file | read once | goes on: file in the cache | file not in the cache | without a session |")
    print("|---|---|---|---|---|---|---|")
    for model in options.models:
        for tokens in options.tokens:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                r = measure(model, tokens, options, pathlib.Path(folder))
            results.append(r)
            t = r["first_token_ms"]
            print(f"| {r['model']} | {tokens:,} | {r['session_bytes'] / 2**20:,.0f} MiB | {r['read_and_save_ms'] / 1e3:.1f} s | "
                  f"{t['cached_file'] / 1e3:.2f} s | {t['dropped_file'] / 1e3:.2f} s | {t['no_session'] / 1e3:.2f} s |", flush=True)
    others, steal = quiet.end()
    print(f"medians of {options.runs}; cores of others {others:.2f}, stolen {steal:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": peers.cpu_name(), "command": "bench/session.py " + shlex.join(sys.argv[1:]),
                                            "results": results, "cores_of_others": round(others, 3),
                                            "cores_stolen": round(steal, 3)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
