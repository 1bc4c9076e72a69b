#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of one model in several formats, by mica and by another engine on the same files.

usage: bench/perplexity.py --mica build/release/mica --peer llama-perplexity MODEL.gguf -f TEXT
                           [--formats F16,Q8_0,...] [-c 256] [--folder DIR] [--peer-folder DIR]
                           [--json bench/results/NAME.json]

mica quantises MODEL (of F32 or F16) into --folder; both programs then read the files that it wrote and the
text. --peer may be several words, such as "chroot DIR llama-perplexity"; --peer-folder is --folder as the
peer sees it.
"""
import argparse
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

FORMATS = "F16,Q8_0,Q6_K,Q5_K_M,Q4_K_M,Q4_0,IQ4_XS,Q3_K_M,Q2_K"


def run(words):
    """What a command prints on either stream."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-f", "--text", required=True, type=pathlib.Path)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("--peer", default="llama-perplexity")
    parser.add_argument("--formats", default=FORMATS)
    parser.add_argument("-c", "--context", type=int, default=256)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/perplexity"))
    parser.add_argument("--peer-folder", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    mica, peer = shlex.split(options.mica), shlex.split(options.peer)
    seen = options.peer_folder or options.folder
    options.folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.text, options.folder / "text.txt")
    common = ["-c", str(options.context), "-t", str(options.threads)]
    results = []
    print("| format | bytes | mica | peer | mica / peer - 1 |\n|---|---|---|---|---|")
    for name in options.formats.split(","):
        file = options.folder / f"{name}.gguf"
        run([*mica, "quantize", options.model, str(file), name, "-q"])
        ours = json.loads(run([*mica, "perplexity", str(file), "-f", str(options.text), "--json", "-q",
                               *common]))
        said = run([*peer, "-m", str(seen / file.name), "-f", str(seen / "text.txt"), *common])
        theirs = re.search(r"Final estimate: PPL = ([0-9.]+) \+/- ([0-9.]+)", said)
        if not theirs:
            sys.exit(f"the peer gave no final estimate for {name}: {said[-500:]}")
        results.append({"format": name, "bytes": file.stat().st_size, "mica": ours["ppl"],
                        "mica_se": ours["se"],
                        "peer": float(theirs[1]), "peer_se": float(theirs[2])})
        print(f"| {name} | {file.stat().st_size} | {ours['ppl']:.4f} +/- {ours['se']:.4f} | {theirs[1]} +/- "
              f"{theirs[2]} | "
              f"{ours['ppl'] / float(theirs[1]) - 1:+.5f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"model": pathlib.Path(options.model).name,
                                            "text": options.text.name,
                                            "n_ctx": options.context, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
