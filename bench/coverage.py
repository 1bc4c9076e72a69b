#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
r"""Which branches of parsers, tokenizers and templates run in tests, as one table.

usage: bench/coverage.py BUILD [--inputs DIR] [--list FILE] [--tools SUFFIX]

BUILD is a build by clang with -DMICA_COVERAGE=ON, in which these targets exist; what is missing is left out:
  cmake -S . -B build/coverage -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=None -DMICA_COVERAGE=ON
  cmake --build build/coverage --target replay test_gguf test_text test_schema test_constraint test_calls \
    test_convert test_search test_quantize test_serve
The programs run one after the other, replay with the stored inputs of each fuzz target, and with those below
DIR/NAME. --list: writes each branch that never went one of its ways, with file, line and column. --tools: what
stands behind the names of llvm-profdata and llvm-cov (-14). Standard library only.
"""
import argparse
import bisect
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = {  # what is counted: parts of paths below include/
    "GGUF": ["mica/gguf/"],
    "tokenizers": ["mica/text/"],
    "templates": ["mica_jinja/"],
    "grammars and JSON Schema": ["mica/constraint/", "mica_tools/schema/"],
    "tool calls": ["mica_tools/calls/"],
    "JSON": ["mica_tools/json/"],
    "Hugging Face folders": ["mica_tools/convert/"],
    "importance matrix, base logits": ["quantize/importance.hpp", "measure/base_logits.hpp"],
    "search index": ["search/index_reader.hpp", "search/index_info.hpp"],
}
TABLES = ["unicode_tables.hpp"]  # numbers alone


def run(program, words, profile):
    env = dict(os.environ, LLVM_PROFILE_FILE=str(profile))
    done = subprocess.run([program, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"{program} {' '.join(words)}: exit code {done.returncode}: {done.stderr[-300:]}", file=sys.stderr)


def profiles(build, inputs, folder):
    """Runs all programs; the programs that ran."""
    programs = []
    replay = build / "tests/fuzz/replay"
    if replay.exists():
        programs.append(replay)
        for corpus in sorted((ROOT / "tests/fuzz/corpus").iterdir()):
            for each in [corpus] + ([inputs / corpus.name] if inputs and (inputs / corpus.name).is_dir() else []):
                run(replay, [corpus.name, str(each)], folder / f"replay-{corpus.name}-{each.parent.name}.profraw")
    for test in sorted((build / "tests").glob("test_*")):
        if os.access(test, os.X_OK) and test.is_file():
            programs.append(test)
            run(test, [], folder / f"{test.name}.profraw")
    return programs


def branches(programs, folder, tools):
    """{file: {(line, column, end line, end column): [times true, times false]}}"""
    data = folder / "all.profdata"
    subprocess.run([f"llvm-profdata{tools}", "merge", "-sparse", "-o", data, *folder.glob("*.profraw")], check=True)
    objects = [word for program in programs[1:] for word in ("-object", str(program))]
    out = subprocess.run([f"llvm-cov{tools}", "export", "-format=text", f"-instr-profile={data}", str(programs[0]),
                          *objects, "-ignore-filename-regex=/tests/|/usr/"], check=True, capture_output=True, text=True)
    found = collections.defaultdict(dict)
    for file in json.loads(out.stdout)["data"][0]["files"]:
        name = os.path.relpath(file["filename"], ROOT / "include")
        for line, column, end_line, end_column, yes, no, *_ in file["branches"]:
            counts = found[name].setdefault((line, column, end_line, end_column), [0, 0])
            counts[0] += yes  # instantiations of one template together
            counts[1] += no
        found[name] = decided_by_runs(found[name], file["segments"])
    return found


def decided_by_runs(counts, segments):
    """Without branches that the compiler decided, such as if constexpr: passed, and neither way counted."""
    starts = [(line, column) for line, column, *_ in segments]

    def passed(place):
        at = bisect.bisect_right(starts, place[:2]) - 1
        return at >= 0 and segments[at][2] > 0

    return {place: both for place, both in counts.items() if any(both) or not passed(place)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--inputs", type=pathlib.Path)
    parser.add_argument("--list", type=pathlib.Path)
    parser.add_argument("--tools", default="")
    args = parser.parse_args()
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        programs = profiles(args.build.resolve(), args.inputs, folder)
        if not programs:
            sys.exit(f"{args.build}: has none of the programs; see --help")
        found = branches(programs, folder, args.tools)
    print("| room | ways of branches | taken | % |\n|---|---|---|---|")
    all_ways = all_taken = 0
    for room, parts in ROOMS.items():
        ways = taken = 0
        for file, counts in sorted(found.items()):
            if not any(part in file for part in parts) or file.endswith(tuple(TABLES)):
                continue
            source = (ROOT / "include" / file).read_text().splitlines()
            for (line, column, _, _), both in sorted(counts.items()):
                ways += 2
                taken += sum(n > 0 for n in both)
                for n, way in zip(both, ("true", "false")):
                    if n == 0:
                        missed.append(f"{file}:{line}:{column}: never {way}: {source[line - 1].strip()}")
        if ways:
            print(f"| {room} | {ways:,} | {taken:,} | {100 * taken / ways:.1f} |")
        all_ways += ways
        all_taken += taken
    if all_ways:
        print(f"| together | {all_ways:,} | {all_taken:,} | {100 * all_taken / all_ways:.1f} |")
    if args.list:
        args.list.write_text("\n".join(missed) + "\n")


if __name__ == "__main__":
    main()
