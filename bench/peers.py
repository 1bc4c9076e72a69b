#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mica beside other engines on the same files, interleaved, and beside what the machine can do.

usage: bench/peers.py MODEL.gguf... --peer NAME=COMMAND [--peer NAME=COMMAND]... [--see NAME=FOLDER]...
                      [--mica "build/release/mica"] [-p 512] [-n 64] [-d 0,8192] [-ctk q8_0] [-ctv q8_0] [-t 1,2]
                      [--rounds 5] [--limits build/release/bench/machine_bench] [--json bench/results/NAME.json]

A peer is any command that takes llama-bench's flags and prints its JSON; COMMAND may be several words, such
as "chroot DIR llama-bench". --see names the folder in which that peer finds the models; without it, the path
is the same. Peers get -fa 1 as soon as the cache is not F16 or the depth is not 0, and -fa 0 otherwise (--fa
0|1 chooses).

Each round runs every program once for one test, in an order that turns from round to round, so that a change
of the machine's speed meets all. What counts is the ratio of mica to the FASTER peer of a round, and its
median.

Beside the peers stands the machine, measured in the same rounds: decode as part of reading memory (weights
that a token uses, keys and values at that depth, all once, over the bandwidth of that many threads), prefill
as part of the dot of bytes. The load of other programs and stolen time of each test are in the report: a
round with more than --busy cores of either is done again, and a test with more than 0.05 is not worth much.
"""
import argparse
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def named(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text}: needed: NAME=VALUE")
    return name, value


def numbers(text):
    return [int(part) for part in text.split(",")]


class Stolen:
    """Cores that others used while something ran: processor time of the machine that is not our
    children's."""

    def __init__(self):
        self.begin, self.before, self.own = time.monotonic(), self.read(), self.children()

    @staticmethod
    def children():
        times = os.times()
        return times.children_user + times.children_system + times.user + times.system

    @staticmethod
    def read():
        try:
            fields = [int(x) for x in open("/proc/stat").readline().split()[1:9]]
        except OSError:
            return None
        user, nice, system, _idle, _wait, irq, softirq, steal = fields
        return (user + nice + system + irq
                + softirq) / os.sysconf("SC_CLK_TCK"), steal / os.sysconf("SC_CLK_TCK")

    def end(self):
        """(cores of other programs, cores of other machines)"""
        if self.before is None:
            return 0.0, 0.0
        seconds, after = max(time.monotonic() - self.begin, 1e-9), self.read()
        busy = after[0] - self.before[0] - (self.children() - self.own)
        return max(0.0, busy / seconds), max(0.0, (after[1] - self.before[1]) / seconds)


def speak(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


class Engine:
    def __init__(self, name, command, folder=None):
        self.name, self.command, self.folder = name, shlex.split(command), folder
        self.is_mica = folder == "mica"

    def run(self, model, test):
        """The first object of JSON that the engine prints for one run of a test."""
        path = model
        if not self.is_mica and self.folder is not None:
            path = str(pathlib.Path(self.folder) / pathlib.Path(model).name)
        words = [*self.command, "-m", path, "-p", str(test["tokens"] if test["kind"] == "prefill" else 0),
                 "-n", str(test["tokens"] if test["kind"] == "decode" else 0), "-t", str(test["threads"]),
                 "-r", "1", "-o", "json",
                 "-ctk", test["type_k"], "-ctv", test["type_v"]]
        if test["depth"]:
            words += ["-d", str(test["depth"])]
        if not self.is_mica:
            words += ["-fa", str(test["flash"])]
        return speak(words)[0]


def engines_of(options):
    """mica, and the peers of a command line."""
    see, mica = dict(options.see), shlex.split(options.mica)
    ours = Engine("mica", shlex.join([mica[0], "bench", *mica[1:]]), "mica")
    return [ours] + [Engine(name, command, see.get(name)) for name, command in options.peer]


class Machine:
    """Limits of the machine, measured in every round like an engine."""

    name = "the machine"

    def __init__(self, program):
        self.program = program

    def run(self, _model, test):
        return speak([self.program, str(test["threads"])])["threads"][test["threads"] - 1]


def machine_of(options):
    """The machine, where somebody can measure it."""
    return [Machine(options.limits)] if options.limits and pathlib.Path(options.limits).exists() else []


def tests_of(options):
    for depth in options.depth:
        for threads in options.threads:
            for kind, tokens in (("prefill", options.prefill), ("decode", options.decode)):
                if tokens:
                    flash = options.fa if options.fa is not None else int(depth > 0
                                                                          or options.type_k != "f16")
                    yield {"kind": kind, "tokens": tokens, "depth": depth, "threads": threads,
                           "type_k": options.type_k,
                           "type_v": options.type_v, "flash": flash}


def one_round(engines, model, test, turn):
    """What each engine said, and the machine, and the cores that were not theirs."""
    quiet, at = Stolen(), turn % len(engines)
    said = {engine.name: engine.run(model, test) for engine in engines[at:] + engines[:at]}
    return said, quiet.end()


def measure(engines, model, test, rounds, busy):
    """Rounds that were disturbed are done again, as long as no more of those come together than were asked
    for."""
    kept, disturbed = [], []
    while len(kept) < rounds:
        said, cores = one_round(engines, model, test, len(kept) + len(disturbed))
        if max(cores) > busy and len(disturbed) < rounds:
            disturbed.append(cores)
        else:
            kept.append((said, cores))
    speeds = {engine.name: [said[engine.name]["avg_ts"] for said, _ in kept] for engine in engines
              if engine.name != Machine.name}
    ours = kept[0][0]["mica"]
    result = {**test, "model": pathlib.Path(model).name, "speeds": speeds,
              "token_bytes": ours.get("token_bytes", 0),
              "token_macs": ours.get("token_macs", 0), "cores_of_others": round(max(cores[0] for _,
                                                                                    cores in kept), 3),
              "cores_stolen": round(max(cores[1] for _, cores in kept), 3),
              "rounds_disturbed": len(disturbed)}
    peers = [name for name in speeds if name != "mica"]
    if peers:
        faster = [max(speeds[name][i] for name in peers) for i in range(rounds)]
        ratios = [a / b for a, b in zip(speeds["mica"], faster)]
        result.update(ratios=ratios, ratio_median=statistics.median(ratios))
    add_parts(result, [said[Machine.name] for said, _ in kept if Machine.name in said])
    return result


def add_parts(result, limits):
    """Medians over rounds of the parts of what the machine did in the same round."""
    is_decode = result["kind"] == "decode"
    unit = result["token_bytes"] if is_decode else result["token_macs"]
    if not limits or not unit:
        return
    result["limits"] = [limit["read_gbs" if is_decode else "dot_gmacs"] for limit in limits]
    result["limit"] = statistics.median(result["limits"])
    result["part"] = {name: statistics.median(speed * unit / 1e9 / limit for speed, limit in zip(all_,
                                                                                                 result["limits"]))
                      for name, all_ in result["speeds"].items()}


def table(results):
    lines = ["| model | test | mica t/s | peers t/s | mica / faster peer (least, most) | part of the "
             "machine: mica; peers |",
             "|---|---|---|---|---|---|"]
    for r in results:
        peers = [name for name in r["speeds"] if name != "mica"]
        test = f"{r['kind']} {r['tokens']} at {r['depth']}, {r['type_k']}, {r['threads']} thr."
        speeds = ", ".join(f"{name} {statistics.median(r['speeds'][name]):.2f}" for name in peers)
        ratio = f"{r['ratio_median']:.2f} ({min(r['ratios']):.2f}, {max(r['ratios']):.2f})" if peers else ""
        part = r.get("part")
        parts = f"{part['mica']:.2f}; " + ", ".join(f"{part[name]:.2f}" for name in peers) if part else ""
        lines.append(f"| {r['model']} | {test} | {statistics.median(r['speeds']['mica']):.2f} | {speeds} | "
                     f"{ratio} | {parts} |")
    return "\n".join(lines)


def cpu_name():
    try:
        return next(line.split(":")[1].strip() for line in open("/proc/cpuinfo")
                    if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--mica", default=str(ROOT / "build/release/mica"))
    parser.add_argument("--peer", type=named, action="append", default=[])
    parser.add_argument("--see", type=named, action="append", default=[])
    parser.add_argument("-p", "--prefill", type=int, default=512)
    parser.add_argument("-n", "--decode", type=int, default=64)
    parser.add_argument("-d", "--depth", type=numbers, default=[0])
    parser.add_argument("-t", "--threads", type=numbers, default=[2])
    parser.add_argument("-ctk", "--type-k", default="f16")
    parser.add_argument("-ctv", "--type-v", default="f16")
    parser.add_argument("--fa", type=int, choices=(0, 1))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=float, default=0.2, help="cores of others or stolen with which a "
                                                                "round is done again")
    parser.add_argument("--limits", default=str(ROOT / "build/release/bench/machine_bench"))
    parser.add_argument("--note", default="", help="what a reader of the JSON should know, such as versions "
                                                   "of the peers")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    engines = engines_of(options) + machine_of(options)
    load = os.getloadavg()[0]
    results = []
    for model in options.models:
        for test in tests_of(options):
            result = measure(engines, model, test, options.rounds, options.busy)
            results.append(result)
            busy = result["cores_of_others"], result["cores_stolen"]
            said = ", ".join(f"{name} {statistics.median(all_):.2f}" for name,
                             all_ in result["speeds"].items())
            print(f"{result['model']} {test['kind']} at {test['depth']}: {said}; cores of others "
                  f"{busy[0]:.2f}, stolen {busy[1]:.2f}"
                  + (f"; {result['rounds_disturbed']} rounds done again" if result["rounds_disturbed"]
                     else "")
                  + ("  NOT QUIET" if max(busy) > 0.05 else ""), file=sys.stderr, flush=True)
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps({
            "machine": cpu_name(), "command": shlex.join(["bench/peers.py", *sys.argv[1:]]),
                                            "note": options.note,
            "load_before": load, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
