#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mica under hard limits of memory: does it keep its budget, and how much of the disk's speed is left?

usage: bench/memory.py MODEL BUDGET... [--tokens 16] [--prompt 64] [--context 512] [--peer COMMAND] [--json FILE] [-- OPTIONS...]

For each budget (1GiB, 800MiB) a cgroup is made whose limit is the budget and 5 %, without swap, page cache included, and mica bench runs in it
with --memory BUDGET --weights streamed. Needs root and a memory controller, v1 or v2. The disk's own speed is that of reading the file past the page
cache in order, in requests of 4 MiB, four under way, taken before and after; bytes per token are those that mica plan announces. --peer runs a command in the same cgroup ({model} stands for the file), such as llama-bench in a
chroot, and prints what it says.
"""
import argparse
import concurrent.futures
import json
import mmap
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import peers

MICA = str(peers.ROOT / "build/release/mica")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def bytes_of(size):
    number, unit = re.fullmatch(r"([0-9.]+)(KiB|MiB|GiB)", size).groups()
    return int(float(number) * UNITS[unit])


class Cage:
    """A cgroup with a hard limit."""

    def __init__(self, limit):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.v1 = v1.is_dir()
        self.path = (v1 if self.v1 else pathlib.Path("/sys/fs/cgroup")) / f"mica-bench-{os.getpid()}"
        self.path.mkdir(exist_ok=True)
        self.write("memory.limit_in_bytes" if self.v1 else "memory.max", limit)
        try:
            self.write("memory.memsw.limit_in_bytes" if self.v1 else "memory.swap.max", limit if self.v1 else 0)
        except OSError:
            pass  # no accounting of swap: there is none

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def read(self, name):
        return (self.path / name).read_text()

    def run(self, command):
        return subprocess.run(command, capture_output=True, text=True,
                              preexec_fn=lambda: (self.path / "cgroup.procs").write_text(str(os.getpid())))

    def facts(self):
        if self.v1:
            kills = re.search(r"oom_kill (\d+)", self.read("memory.oom_control"))
            return {"peak_bytes": int(self.read("memory.max_usage_in_bytes")), "times_at_limit": int(self.read("memory.failcnt")),
                    "oom_kills": int(kills.group(1)) if kills else 0}
        events = dict(line.split() for line in self.read("memory.events").splitlines())
        return {"peak_bytes": int(self.read("memory.peak")), "times_at_limit": int(events["max"]), "oom_kills": int(events["oom_kill"])}

    def remove(self):
        for _ in range(50):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.1)


def disk_rate(path, amount=2**30):
    """Bytes per second of direct reads in order, four under way."""
    step, size = 4 * 2**20, os.path.getsize(path)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    start = time.time_ns() % max(1, (size - amount) // step) * step
    offsets = range(start, min(start + amount, size - step), step)

    def read(part):
        buffer = mmap.mmap(-1, step)
        for offset in part:
            os.preadv(fd, [buffer], offset)
        return len(part) * step

    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(read, [offsets[i::4] for i in range(4)]))
    seconds = time.perf_counter() - begin
    os.close(fd)
    return total / seconds


def speeds(done, command):
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr}")
    rows = json.loads(done.stdout)
    return {("prompt" if row["n_prompt"] else "tokens"): row["avg_ts"] for row in rows}


def measure(options, budget):
    how = ["-c", str(options.context), "--weights", "streamed", "--memory", budget] + options.mica
    run = [MICA, "bench", options.model, "-p", str(options.prompt), "-n", str(options.tokens), "-r", "1", "-o", "json"] + how
    plan = json.loads(subprocess.run([MICA, "plan", options.model, "--json"] + how, capture_output=True, text=True).stdout)
    before = disk_rate(options.model)
    cage = Cage(int(bytes_of(budget) * 1.05))
    result = {"budget_bytes": bytes_of(budget), "speeds": speeds(cage.run(run), run), **cage.facts()}
    cage.remove()
    result["planned_bytes"], result["bytes_per_token"] = plan["peak_bytes"], plan["streamed_bytes"]
    result["disk_bytes_per_second"] = max(before, disk_rate(options.model))
    result["part_of_disk"] = result["bytes_per_token"] * result["speeds"]["tokens"] / result["disk_bytes_per_second"]
    if options.peer:
        cage = Cage(int(bytes_of(budget) * 1.05))
        command = shlex.split(options.peer.format(model=options.model))
        done = cage.run(command)
        result["peer"] = {"command": options.peer, "exit_code": done.returncode, "said": done.stdout[-600:], **cage.facts()}
        cage.remove()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("budgets", nargs="+")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--peer")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.mica = arguments[at + 1:]
    quiet, results = peers.Stolen(), []
    print("| budget | peak of the cgroup | times at the limit | prompt | tokens | read per token | disk | part of the disk's speed |")
    print("|---|---|---|---|---|---|---|---|")
    for budget in options.budgets:
        r = measure(options, budget)
        results.append(r)
        print(f"| {budget} | {r['peak_bytes'] / 2**20:,.0f} MiB | {r['times_at_limit']} | {r['speeds']['prompt']:.1f} t/s | "
              f"{r['speeds']['tokens']:.2f} t/s | {r['bytes_per_token'] / 2**20:,.0f} MiB | {r['disk_bytes_per_second'] / 1e9:.2f} GB/s | "
              f"{r['part_of_disk']:.2f} |", flush=True)
        if r["oom_kills"]:
            print(f"killed {r['oom_kills']} times")
        if "peer" in r:
            print(f"peer: exit code {r['peer']['exit_code']}, killed {r['peer']['oom_kills']} times\n{r['peer']['said']}")
    others, steal = quiet.end()
    print(f"cores of others {others:.2f}, stolen {steal:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": peers.cpu_name(), "command": "bench/memory.py " + shlex.join(sys.argv[1:]),
                                            "model": pathlib.Path(options.model).name, "results": results,
                                            "cores_of_others": round(others, 3)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
