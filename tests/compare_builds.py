#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the logits of two builds of the program mica, byte by byte, on every model of a folder.

  compare_builds.py OLD NEW FOLDER [--threads N] [--only WORDS] [-- FLAG ...]

FOLDER holds models (*.gguf, at any depth; of a sharded model the first shard is run). Each program computes the
logits after all tokens of one fixed list of ids; flags behind -- go to both. A model that both refuse with the
same message is equal. Prints one line for each model, and exits with 1 when one differs.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile

IDS = [(7 * i * i + 3 * i + 1) % 251 for i in range(45)]


def logits(program, model, ids, flags):
    """The hash of the logits, or what the program says where it refuses the model."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "logits.f32")
        text = ",".join(str(i) for i in ids)
        done = subprocess.run([program, "logits", model, "--ids", text, "--positions", "all", "-o", out] + flags,
                              capture_output=True, text=True)
        if done.returncode != 0:
            return "refused: " + " ".join(done.stderr.split()).replace(folder, "")
        with open(out, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()


def models_of(folder):
    for path, _, files in sorted(os.walk(folder)):
        for name in sorted(files):
            shard = re.search(r"-(\d{5})-of-\d{5}\.gguf$", name)
            if name.endswith(".gguf") and (shard is None or shard.group(1) == "00001"):
                yield os.path.join(path, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="models whose path contains this")
    parser.add_argument("flags", nargs="*", help="behind --: flags of mica logits")
    args = parser.parse_args()
    flags = ["--threads", str(args.threads)] + args.flags
    equal = differing = 0
    for model in models_of(args.folder):
        if args.only not in model:
            continue
        old, new = (logits(program, model, IDS, flags) for program in (args.old, args.new))
        same = old == new
        equal, differing = equal + same, differing + (not same)
        print("equal  " if same else "DIFFERS", os.path.relpath(model, args.folder), old[:60],
              "" if same else new[:200], flush=True)
    print(f"{equal} equal, {differing} different")
    return 1 if differing or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
