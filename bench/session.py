#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it takes to go on with a saved session after a restart.

usage: bench/session.py MODEL... [--tokens 4096 16384] [--runs 5] [--json bench/results/session.json] [-- OPTIONS...]

For each model and length: a prompt is read and saved (mica complete -n 0 --session), and at the shortest
length the text that goes on after a restart is compared with that of one run. When all are saved, processes
are started that go on with one token, and the time until it stands on stdout is taken: with the saved file in
the page cache, with the file dropped from it, and, for comparison, of a process that goes on with one byte of
text and no session (loading the model and one step). OPTIONS go to every run of mica.
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
import time

import first_token
import peers
import prompts

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


def compare(model, run, prompt, again):
    """The text that goes on after a restart with that of one run."""
    whole = text_of(run + ["-f", prompt, "-n", "8"])
    parts = text_of(run + ["-f", prompt, "-n", "3", "--session", again]) + text_of(run + ["-n", "5",
                                                                                          "--session", again])
    if whole != parts:
        sys.exit(f"{model}: after a restart the text is another one")
    os.remove(again)


def prepare(model, tokens, options, folder):
    """Reads a prompt and saves it."""
    prompt, saved, again = (str(folder / name) for name in ("prompt.txt", "session", "again"))
    pathlib.Path(prompt).write_text(prompts.of_tokens(tokens))
    run = [MICA, "complete", model, "-c", str(tokens + 64), "--temp", "0", "-q"] + options.mica
    begin = time.perf_counter()
    text_of(run + ["-f", prompt, "-n", "0", "--session", saved])
    read = time.perf_counter() - begin
    if tokens == min(options.tokens):
        compare(model, run, prompt, again)
    return {"run": run, "saved": saved, "model": pathlib.Path(model).name, "tokens": tokens,
            "session_bytes": os.path.getsize(saved), "read_and_save_ms": read * 1e3}


def measure(case, runs):
    """Times of the first token: with a session, and of a process that goes on with one byte of text."""
    run, saved = case.pop("run"), case.pop("saved")
    go_on, alone = run + ["-n", "1", "--session", saved], run + ["-p", "a", "-n", "1"]
    original = pathlib.Path(saved).read_bytes()
    times = {"cached_file": [], "dropped_file": [], "no_session": []}
    for _ in range(runs):
        for state, measured in times.items():
            pathlib.Path(saved).write_bytes(original)  # each run saves at its end
            if state == "dropped_file":
                drop(saved)
            measured.append(first_token.first_byte(alone if state == "no_session" else go_on))
    return case | {"first_token_ms": {state: statistics.median(measured) for state,
                                      measured in times.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 16384])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, help="where sessions are saved; a temporary folder "
                                                            "by default")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.mica = arguments[at + 1:]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        cases = []
        for model in options.models:
            for tokens in options.tokens:
                place = pathlib.Path(folder) / str(len(cases))
                place.mkdir()
                cases.append(prepare(model, tokens, options, place))
        print("| model | tokens | file | read once | goes on: file in the cache | file not in the cache | "
              "without a session |")
        print("|---|---|---|---|---|---|---|", flush=True)
        quiet = peers.Stolen()
        results = [measure(case, options.runs) for case in cases]
    for r in results:
        t = r["first_token_ms"]
        print(f"| {r['model']} | {r['tokens']:,} | {r['session_bytes'] / 2**20:,.0f} MiB | "
              f"{r['read_and_save_ms'] / 1e3:.1f} s | "
              f"{t['cached_file'] / 1e3:.2f} s | {t['dropped_file'] / 1e3:.2f} s | "
              f"{t['no_session'] / 1e3:.2f} s |")
    others, steal = quiet.end()
    print(f"medians of {options.runs}; cores of others {others:.2f}, stolen {steal:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": peers.cpu_name(), "command": "bench/session.py "
                                            + shlex.join(sys.argv[1:]),
                                            "results": results, "cores_of_others": round(others, 3),
                                            "cores_stolen": round(steal, 3)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
