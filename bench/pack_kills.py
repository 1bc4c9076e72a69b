#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills mica pack at random moments: what is left must be nothing, a directory that says it is unfinished, or
a whole one.

usage: bench/pack_kills.py MODEL [--kills 1000] [--seed 1] [--folder DIR] [--program build/release/mica]

Each time a packer is started on an empty folder, or on what the kills before have left, and killed (SIGKILL)
after a random part of the time that a run takes. Then mica pack --verify must say 0 (whole) or 3 (unfinished,
by that word), and a run that is not killed must end with the same bytes as the first one. DIR needs room for
the model twice.
"""
import argparse
import hashlib
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pack(program, model, folder):
    return subprocess.run([program, "pack", model, str(folder), "-q"], capture_output=True, text=True)


def contents(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def kill_one(program, model, folder, seconds):
    packer = subprocess.Popen([program, "pack", model, str(folder), "-q"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    packer.kill()
    return packer.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where to work; a temporary folder if not given")
    parser.add_argument("--program", default=str(ROOT / "build/release/mica"))
    args = parser.parse_args()
    mica = args.program
    if not pathlib.Path(mica).is_file():
        sys.exit(f"{mica} is missing: build it (./setup run), or name another one with --program")
    rng = random.Random(args.seed)
    work = pathlib.Path(tempfile.mkdtemp(dir=args.folder, prefix="pack-kills-"))
    try:
        begun = time.monotonic()
        if (ran := pack(mica, args.model, work / "whole")).returncode != 0:
            sys.exit(ran.stderr)
        seconds = time.monotonic() - begun
        whole = contents(work / "whole")
        left = {"whole": 0, "unfinished": 0, "nothing": 0}
        resumed = 0
        folder = work / "packed"
        for kill in range(args.kills):
            code = kill_one(mica, args.model, folder, rng.uniform(0, 1.1 * seconds))
            if not folder.is_dir() or not any(not p.name.endswith(".part") for p in folder.iterdir()):
                left["nothing"] += 1
            else:
                verified = subprocess.run([mica, "pack", str(folder), "--verify"], capture_output=True,
                                          text=True)
                if verified.returncode == 0:
                    left["whole"] += 1
                elif verified.returncode == 3 and "packing was not finished" in verified.stderr:
                    left["unfinished"] += 1
                else:
                    sys.exit(f"kill {kill} (exit {code}) left a directory of which mica says "
                             f"{verified.returncode}: {verified.stderr}")
            if rng.random() < 0.5:  # else the next packer goes on from here, and is killed too
                if (ran := pack(mica, args.model, folder)).returncode != 0:
                    sys.exit(f"after kill {kill} packing failed: {ran.stderr}")
                if contents(folder) != whole:
                    sys.exit(f"after kill {kill} the finished directory has other bytes")
                resumed += 1
                shutil.rmtree(folder)
        print(f"{args.kills} kills within {1.1 * seconds:.2f} s each: {left['nothing']} left nothing, "
              f"{left['unfinished']} an unfinished directory, {left['whole']} a whole one; "
              f"{resumed} finished afterwards, all with the same bytes")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
