#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills mica complete at random moments while it saves a session: the file must be the old one or the new one.

usage: bench/session_kills.py MODEL [--kills 1000] [--tokens 1000] [--seed 1] [--program build/release/mica]

A session of some tokens is continued by one token and saved over itself. Each run is killed (SIGKILL) after a
random time, most of them near its end, where it writes. The file then has the bytes from before the run or
those of a run that was not killed; what else is in the folder is gone after the next run.
"""
import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--tokens", type=int, default=1000, help="words of the saved prompt")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", default=str(ROOT / "build/release/mica"))
    args = parser.parse_args()
    if not pathlib.Path(args.program).is_file():
        sys.exit(f"{args.program} is missing: build it (./setup run), or name another one with --program")
    rng = random.Random(args.seed)
    work = pathlib.Path(tempfile.mkdtemp(prefix="session-kills-"))
    session = work / "folder" / "session"
    session.parent.mkdir()
    command = [args.program, "complete", args.model, "--session", str(session), "--temp", "0", "-q",
               "-c", str(args.tokens + 64)]

    def run(*more):
        ran = subprocess.run(command + list(more), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ran.returncode != 0:
            sys.exit(f"exit code {ran.returncode}: {ran.stderr}")

    try:
        run(" ".join(rng.choice(["fox", "king", "old", "wood"]) for _ in range(args.tokens)), "-n", "0")
        old = session.read_bytes()
        seconds = []
        for _ in range(5):
            session.write_bytes(old)
            begun = time.monotonic()
            run("-n", "1")
            seconds.append(time.monotonic() - begun)
        new, whole = session.read_bytes(), sorted(seconds)[2]
        found = {"old": 0, "new": 0}
        parts = 0
        for kill in range(args.kills):
            session.write_bytes(old)
            child = subprocess.Popen(command + ["-n", "1"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(whole * (rng.uniform(0.6, 1.05) if rng.random() < 0.8 else rng.uniform(0, 1)))
            child.kill()
            child.wait()
            now = session.read_bytes()
            if now not in (old, new):
                sys.exit(f"kill {kill} left a session of {len(now)} bytes that is neither the old one "
                         f"({len(old)}) nor the new one ({len(new)})")
            found["new" if now == new else "old"] += 1
            if len(list(session.parent.iterdir())) > 1:
                parts += 1
                session.write_bytes(old)
                run("-n", "1")
                if [p.name for p in session.parent.iterdir()] != ["session"] or session.read_bytes() != new:
                    sys.exit(f"the run after kill {kill} left other files or another session")
        print(f"{args.kills} kills within {whole:.3f} s each, {len(new)} bytes: {found['old']} left the old session, "
              f"{found['new']} the new one; {parts} came during the write, and the next run removed what they had left")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
