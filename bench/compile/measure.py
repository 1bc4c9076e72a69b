#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What mica costs to compile: the umbrella header, a scalar model, one family of kernels.

usage: bench/compile/measure.py [--compiler g++] [--runs 5] [--json bench/results/compile.json] [-- EXTRA FLAGS]

Prints best and median seconds of processor time, peak memory and object size of each unit, and its limit.
Times are processor times of one compiler process, so a busy machine changes them little; compare runs of one
machine only.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = [  # name, source, limit in seconds
    ("umbrella header", ROOT / "bench/compile/umbrella.cpp", 2.0),
    ("scalar model", ROOT / "bench/compile/scalar_model.cpp", 6.0),
    ("kernels of K-formats", ROOT / "include/mica/kernel/highway/units/matmul_k.cpp", 25.0),
]
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", f"-I{ROOT / 'include'}", "-DHWY_WANT_AVX3_DL=1",
         "-DHWY_DISABLED_TARGETS=HWY_SSSE3+HWY_SSE4+HWY_ALL_SVE+HWY_NEON+HWY_NEON_BF16"]


def compile_once(compiler, flags, source, target):
    """Processor seconds and peak bytes of one compilation."""
    process = subprocess.Popen([compiler, *flags, "-c", str(source), "-o", str(target)])
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{source}: does not compile")
    return usage.ru_utime + usage.ru_stime, resource_bytes(usage)


def resource_bytes(usage):
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("flags", nargs="*", default=[])
    options = parser.parse_args()
    version = subprocess.run([options.compiler, "--version"], capture_output=True, text=True,
                             check=True).stdout.splitlines()[0]
    print(f"{version}, -O2, {options.runs} runs\n")
    print("| unit | best s | median s | peak MiB | object KiB | limit s |\n|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "unit.o"
        for name, source, limit in UNITS:
            runs = [compile_once(options.compiler, FLAGS + options.flags, source, target)
                    for _ in range(options.runs)]
            seconds = [s for s, _ in runs]
            row = {"unit": name, "best_s": min(seconds), "median_s": statistics.median(seconds),
                   "peak_bytes": max(b for _, b in runs), "object_bytes": target.stat().st_size,
                   "limit_s": limit}
            rows.append(row)
            print(f"| {name} | {row['best_s']:.2f} | {row['median_s']:.2f} | {row['peak_bytes'] >> 20} | "
                  f"{row['object_bytes'] >> 10} | {limit:.0f} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"compiler": version, "runs": options.runs, "units": rows},
                                           indent=1) + "\n")
    return 0 if all(row["best_s"] <= row["limit_s"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
