#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What mica costs to compile: the umbrella header, a scalar model, one family of kernels.

usage: bench/compile/measure.py [--compiler g++] [--runs 5] [--beside FOLDER] [--json bench/results/compile.json]
                                [-- EXTRA FLAGS]
       bench/compile/measure.py --build build/release [--slowest 10]

Prints best and median seconds of processor time, peak memory and object size of each unit, and its limit. With
--beside, the same units of another checkout of mica are compiled in turns, and the ratio of the best times is
printed. Times are processor times of one compiler process, so a busy machine changes them little; compare runs
of one machine only.

With --build, nothing is compiled: the slowest units of a finished build are read from its .ninja_log (seconds of
the clock, with all the units that were compiled beside them), and the sum over all units.
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = [  # name, source, limit in seconds
    ("umbrella header", "bench/compile/umbrella.cpp", 1.5),
    ("scalar model", "bench/compile/scalar_model.cpp", 3.5),
    ("kernels of K-formats", "include/mica/kernel/highway/units/matmul_k.cpp", 25.0),
]
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off"]


def compile_once(compiler, flags, root, source, target):
    """Processor seconds and peak bytes of one compilation."""
    process = subprocess.Popen([compiler, *FLAGS, f"-I{root / 'include'}", *flags, "-c", str(root / source),
                                "-o", str(target)])
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{root / source}: does not compile")
    return usage.ru_utime + usage.ru_stime, resource_bytes(usage)


def resource_bytes(usage):
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def processor():
    """The processor's name."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def slowest_units(build, count):
    """Prints the units of a build that took longest by the clock."""
    seconds = {}
    for line in (build / ".ninja_log").read_text(encoding="utf-8").splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[3].endswith(".o"):
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000  # a later line is a later build
    print(f"{len(seconds)} units, {sum(seconds.values()):.0f} s in all\n\n| unit | s |\n|---|---|")
    for name, time in sorted(seconds.items(), key=lambda row: -row[1])[:count]:
        print(f"| {name} | {time:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--beside", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--slowest", type=int, default=10)
    parser.add_argument("flags", nargs="*", default=[])
    options = parser.parse_args()
    if options.build:
        slowest_units(options.build, options.slowest)
        return 0
    roots = [ROOT] + ([options.beside.resolve()] if options.beside else [])
    version = subprocess.run([options.compiler, "--version"], capture_output=True, text=True,
                             check=True).stdout.splitlines()[0]
    print(f"{version}, -O2, {options.runs} runs, {processor()}\n")
    print("| unit | best s | median s | peak MiB | object KiB | limit s | beside |\n|---|---|---|---|---|---|---|")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "unit.o"
        for name, source, limit in UNITS:
            runs = [[] for _ in roots]
            for _ in range(options.runs):
                for i in reversed(range(len(roots))):  # this checkout last: the object that is left is its own
                    runs[i].append(compile_once(options.compiler, options.flags, roots[i], source, target))
            seconds = [s for s, _ in runs[0]]
            row = {"unit": name, "best_s": min(seconds), "median_s": statistics.median(seconds),
                   "peak_bytes": max(b for _, b in runs[0]), "object_bytes": target.stat().st_size,
                   "limit_s": limit}
            ratio = "-"
            if options.beside:
                row["beside_best_s"] = min(s for s, _ in runs[1])
                ratio = f"{row['best_s'] / row['beside_best_s']:.2f}"
            rows.append(row)
            print(f"| {name} | {row['best_s']:.2f} | {row['median_s']:.2f} | {row['peak_bytes'] >> 20} | "
                  f"{row['object_bytes'] >> 10} | {limit:.1f} | {ratio} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"compiler": version, "processor": processor(),
                                            "runs": options.runs, "units": rows}, indent=1) + "\n")
    return 0 if all(row["best_s"] <= row["limit_s"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
