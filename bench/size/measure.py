#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many bytes a small program has, where they are, and how that compares.

usage: bench/size/measure.py [--program build/release/examples/example_05_small] [--symbols FILE] [--peer FILE...]
                             [--json bench/results/size.json]

The program is lesson 5: one family, one recipe of weights, one KV policy, with tokenizer and file reader. Its
size is that of the stripped file. --peer names the libraries that do the same elsewhere, such as libllama.so,
libggml.so, libggml-base.so and ONE of the libggml-cpu-*.so: a distribution installs one for each kind of
processor, and a run loads one. They count as they are installed, stripped too. --symbols is the same program
linked without -s: its symbols are counted by parts.
"""
import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = [  # the first that is found in a demangled name
    ("vector kernels, products",
     r"kernel::highway::.*N_\w+::.*(matmul|product|Codec|integer|real_|tile|panel)"),
    ("vector kernels, attention", r"kernel::highway::.*N_\w+::.*attention"),
    ("vector kernels, the rest", r"kernel::highway::.*N_\w+::"),
    ("kernels, other", r"mica::kernel::"),
    ("model", r"mica::(model|BasicTransformer|Transformer|block|arch|kv|paging|alloc|budget|exec|Session)"),
    ("files", r"mica::(gguf|io|format|quantize)"),
    ("text", r"mica::text"),
    ("Highway", r"\bhwy::"),
    ("standard library", r"\bstd::|__gnu_cxx|operator (new|delete)"),
]


def stripped_size(path):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "stripped"
        subprocess.run(["strip", "-o", str(copy), str(path)], check=True)
        return copy.stat().st_size


def parts_of(path):
    """Bytes of symbols by part, from nm."""
    text = subprocess.run(["nm", "-CS", "--defined-only", str(path)], check=True, capture_output=True,
                          text=True).stdout
    sums = {}
    for line in text.splitlines():
        found = re.match(r"[0-9a-f]+ ([0-9a-f]+) (\w) (.*)", line)
        if not found or found[2] in "bB":
            continue
        part = next((name for name, pattern in PARTS if re.search(pattern, found[3])), "other")
        sums[part] = sums.get(part, 0) + int(found[1], 16)
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/release/examples/example_05_small")
    parser.add_argument("--symbols", type=pathlib.Path)
    parser.add_argument("--peer", type=pathlib.Path, nargs="*", default=[])
    parser.add_argument("--note", default="")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    result = {"command": shlex.join(["bench/size/measure.py", *sys.argv[1:]]), "note": options.note,
              "program_bytes": stripped_size(options.program),
              "peers": {path.name: path.resolve().stat().st_size for path in options.peer}}
    print(f"{options.program.name}: {result['program_bytes']:,} bytes, stripped")
    if options.peer:
        all_ = sum(result["peers"].values())
        result["ratio"] = result["program_bytes"] / all_
        for name, size in result["peers"].items():
            print(f"  {name}: {size:,}")
        print(f"the peer's together: {all_:,} bytes; part {result['ratio']:.3f}, that is "
              f"1/{1 / result['ratio']:.1f}")
    if options.symbols:
        result["parts"] = parts_of(options.symbols)
        for name, size in result["parts"].items():
            print(f"  {name}: {size:,}")
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
