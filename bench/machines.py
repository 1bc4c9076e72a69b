#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model on several ranks, each in a network namespace and a control group of its own, as on machines.

  bench/machines.py --model llama-8b.gguf --ranks 2 --rate 1gbit --delay 100us --memory 4GiB

Needs root, iproute2, Open MPI, and a C++ compiler. A bridge of the kernel connects the namespaces; with --rate
or --delay it is a switch of our own (wire.cpp), whose links have that rate and that latency: not every kernel
has netem. Each run writes the text of one process, which is checked first. Reported: tokens a second, bytes
and messages that rank 0 sent for a token, the time in exchanges, and the peak of each rank beside its plan.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import cage

ADDRESS = "10.77.0.{}"
BRIDGE = "micabr"
HERE = pathlib.Path(__file__).parent
# Runs a rank in its group, and writes the largest memory that it had.
RANK = """import os, resource, subprocess, sys
folder, words = sys.argv[1], sys.argv[2:]
rank = os.environ["OMPI_COMM_WORLD_RANK"]
groups = open(f"{folder}/groups").read().split("\\n")
if groups[int(rank)]:
    open(groups[int(rank)] + "/cgroup.procs", "w").write(str(os.getpid()))
code = subprocess.call(words)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
open(f"{folder}/peak-{rank}", "w").write(str(peak))
os._exit(code)
"""

RATES = {"gbit": 1e9, "mbit": 1e6}  # bits a second
DELAYS = {"us": 1, "ms": 1000}  # microseconds

# Half a round trip of a small message, in microseconds: of 400 the median.
PING = """import socket, statistics, sys, time
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1] == "echo":
    there.bind((sys.argv[2], 7077))
    print("ready", flush=True)
    for _ in range(400):
        there.sendto(*there.recvfrom(64))
else:
    times = []
    for _ in range(400):
        begin = time.perf_counter()
        there.sendto(b"x" * 32, (sys.argv[2], 7077))
        there.recvfrom(64)
        times.append(time.perf_counter() - begin)
    print(statistics.median(times) / 2 * 1e6)
"""


def call(*words):
    subprocess.run(words, check=True)


def number_of(text, units):
    """The number of a text such as 100us, in the units; 0 of an empty one."""
    for unit, factor in units.items():
        if text.endswith(unit):
            return float(text[:-len(unit)]) * factor
    if text:
        sys.exit(f"{text}: allowed are numbers with {', '.join(units)}")
    return 0


class Machines:
    """Namespaces mica0, mica1, ... with addresses 10.77.0.1, 10.77.0.2, ..."""

    def __init__(self, count, rate, delay, folder):
        self.count, self.rate, self.delay, self.folder = count, rate, delay, folder
        self.wire, self.latency = None, 0.0

    def start_wire(self, latency):
        """A switch of our own, with eth0 in each namespace."""
        binary = self.folder / "wire"
        if not binary.exists():
            call(os.environ.get("CXX", "c++"), "-std=c++20", "-O2", str(HERE / "wire.cpp"), "-o", str(binary))
        names = [f"mica{i}" for i in range(self.count)]
        words = (str(binary), str(number_of(self.rate, RATES)), str(latency), *names)
        self.wire = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        if self.wire.stdout.readline() != "ready\n":
            sys.exit("the switch did not start")

    def stop_wire(self):
        if self.wire:
            self.wire.terminate()
            self.wire.wait()
        self.wire = None

    def half_trip(self, listener):
        """To a namespace from namespace 0, without what the two processes and the kernel take by themselves."""

        def measure(inside, address):
            at = ("ip", "netns", "exec", f"mica{inside}", sys.executable, "-c", PING, "echo", address)
            echo = subprocess.Popen(at, stdout=subprocess.PIPE, text=True)
            echo.stdout.readline()
            done = subprocess.run(
                ("ip", "netns", "exec", "mica0", sys.executable, "-c", PING, "ask", address),
                capture_output=True,
                text=True,
                check=True)
            echo.wait()
            return float(done.stdout)

        return measure(listener, ADDRESS.format(listener + 1)) - measure(0, "127.0.0.1")

    def connect(self):
        """A device eth0 in each namespace."""
        if self.rate or self.delay:
            self.start_wire(0)
            return
        call("ip", "link", "add", BRIDGE, "type", "bridge")
        call("ip", "link", "set", BRIDGE, "up")
        for i in range(self.count):
            call("ip", "link", "add", f"micav{i}", "type", "veth", "peer", "name", "eth0", "netns",
                 f"mica{i}")
            call("ip", "link", "set", f"micav{i}", "master", BRIDGE)
            call("ip", "link", "set", f"micav{i}", "up")

    def __enter__(self):
        self.__exit__()
        for i in range(self.count):
            call("ip", "netns", "add", f"mica{i}")
        self.connect()
        self.set_addresses()
        if self.wire and self.count > 1:  # its own time is a part of the latency
            own = self.half_trip(1)
            self.stop_wire()
            self.start_wire(max(0.0, number_of(self.delay, DELAYS) - own))
            self.set_addresses()
            self.latency = self.half_trip(1)
        return self

    def set_addresses(self):
        for i in range(self.count):
            inside = ("ip", "netns", "exec", f"mica{i}")
            call(*inside, "ip", "addr", "add", ADDRESS.format(i + 1) + "/24", "dev", "eth0")
            call(*inside, "ip", "link", "set", "eth0", "up")
            call(*inside, "ip", "link", "set", "lo", "up")

    def __exit__(self, *_):
        self.stop_wire()
        for i in range(64):
            if pathlib.Path(f"/run/netns/mica{i}").exists():
                subprocess.run(("ip", "netns", "del", f"mica{i}"), check=False)
            if pathlib.Path(f"/sys/class/net/micav{i}").exists():
                subprocess.run(("ip", "link", "del", f"micav{i}"), check=False, stderr=subprocess.DEVNULL)
        if pathlib.Path(f"/sys/class/net/{BRIDGE}").exists():
            subprocess.run(("ip", "link", "del", BRIDGE), check=False)


def words_of(args, tokens):
    return [
        args.program, "complete", args.model, "-p", "Once upon a time", "-n",
        str(tokens), "-c",
        str(args.context), "--temp", "0", "--ignore-eos", "--json", "--stats", "-q", *args.flags
    ]


def run(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "{" not in done.stdout:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def mpirun_words(machines, folder):
    """Starts a process in each namespace; the words of the process follow."""
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\n# host command...: in the namespace with that address\n"
                     "n=${1##*.}; shift; exec nsenter --net=/run/netns/mica$((n - 1)) sh -c \"$*\"\n")
    agent.chmod(0o755)
    hosts = ",".join(ADDRESS.format(i + 1) for i in range(machines.count))
    net = [
        "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include",
        "eth0"
    ]
    return [
        "nsenter", "--net=/run/netns/mica0", "mpirun", "--allow-run-as-root", "--bind-to", "none",
        "--enable-recovery", "-n",
        str(machines.count), "--host", hosts, "--mca", "plm_rsh_agent",
        str(agent), *net
    ]


def run_on(args, machines, folder, tokens):
    """The answer of rank 0, and the peaks of all."""
    (folder / "rank.py").write_text(RANK)
    own = words_of(args, tokens) + ["-t", str(args.threads), "--rank-split", args.split]
    if args.shares:
        own += ["--rank-shares", args.shares]
    words = [*mpirun_words(machines, folder), sys.executable, str(folder / "rank.py"), str(folder), *own]
    answer = run(words)
    return answer, [int((folder / f"peak-{i}").read_text()) for i in range(machines.count)]


def exchanges_alone(args, machines, folder):
    """Milliseconds that the exchanges of a token take without its products."""
    binary = folder / "exchanges"
    call("mpicxx", "-std=c++20", "-O2", "-I", str(HERE.parent / "include"), str(HERE / "exchanges.cpp"), "-o",
         str(binary))
    words = [*mpirun_words(machines, folder), str(binary), *args.exchanges.split(",")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return float(done.stdout)


def planned(args):
    """Peaks of the ranks by mica plan --ranks, which has a line for each machine."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as hosts:
        for i in range(args.ranks):
            hosts.write(f"m{i} memory={args.memory or '1TiB'} reads=20GB/s disk=1GB/s\n")
        hosts.flush()
        words = [
            args.program, "plan", args.model, "-c",
            str(args.context), "-t",
            str(args.threads), "--ranks", hosts.name, "--rank-split", args.split, "--json",
            *(["--weights", "streamed"] if args.streamed else [])
        ]
        plan = run(words)
    return [rank["peak_bytes"] for rank in plan["ranks"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/mica")
    parser.add_argument("--model", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--shares", default="")
    parser.add_argument("--split", default="rows", help="what the ranks divide: rows or layers")
    parser.add_argument("--streamed", action="store_true", help="weights are read from the disk")
    parser.add_argument("--rate", default="", help="of a link, such as 1gbit; default: none")
    parser.add_argument("--delay", default="", help="of a message, such as 100us")
    parser.add_argument("--memory",
                        default="",
                        help="of each rank: its control group and its budget, such as 2GiB")
    parser.add_argument("-n", "--tokens", type=int, default=32)
    parser.add_argument("-c", "--context", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--alone",
        type=int,
        default=0,
        metavar="THREADS",
        help="after each run one process runs with this many threads; 0: it runs once, for its text")
    parser.add_argument("--exchanges",
                        default="",
                        metavar="WIDTH,FF_WIDTH,LAYERS",
                        help="run the exchanges of such a model too, without its products (exchanges.cpp)")
    parser.add_argument("--json", default="", help="a file for the results")
    args = parser.parse_args()
    args.program = str(pathlib.Path(args.program).resolve())
    args.model = str(pathlib.Path(args.model).resolve())
    args.flags = ["--memory", args.memory] if args.memory else []
    args.flags += ["--weights", "streamed"] if args.streamed else []
    for tool in ("ip", "mpirun"):
        if shutil.which(tool) is None:
            sys.exit(f"{tool} is needed: iproute2 and openmpi-bin")
    plan = planned(args)
    alone = words_of(argparse.Namespace(**{**vars(args), "flags": []}), args.tokens)
    expected = run(alone + ["-t", str(max(args.alone, 1))])
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        machines = stack.enter_context(Machines(args.ranks, args.rate, args.delay, folder))
        groups = [""] * args.ranks
        if args.memory:
            groups = [
                str(stack.enter_context(cage.Cage(cage.bytes_of(args.memory), f"-{i}")).path)
                for i in range(args.ranks)
            ]
        (folder / "groups").write_text("\n".join(groups))
        network = exchanges_alone(args, machines, folder) if args.exchanges else None
        several, one, last = [], [], None
        for _ in range(args.rounds):
            answer, peaks = run_on(args, machines, folder, args.tokens)
            if answer["content"] != expected["content"]:
                sys.exit(
                    f"another text than that of one process:\n{answer['content']}\n{expected['content']}")
            several.append(answer["timings"]["predicted_per_second"])
            last = answer["stats"]["answer"]
            if args.alone:
                one.append(run(alone + ["-t", str(args.alone)])["timings"]["predicted_per_second"])
    tokens = max(args.tokens - 1, 1)
    result = {
        "model": pathlib.Path(args.model).name,
        "ranks": args.ranks,
        "threads": args.threads,
        "split": args.split,
        "streamed": args.streamed,
        "rate": args.rate,
        "delay": args.delay,
        "half_trip_us": machines.latency,
        "memory": args.memory,
        "tokens_per_second": statistics.median(several),
        "alone_threads": args.alone,
        "alone_per_second": statistics.median(one) if one else None,
        "sent_bytes": round(last["sent_bytes"] / tokens),
        "sent_messages": round(last["sent_messages"] / tokens),
        "exchange_ms": last["exchange_ms"] / tokens,
        "token_ms": last["ms"] / tokens,
        "exchanges_alone_ms": network,
        "peaks": peaks,
        "planned": plan,
    }
    print(
        f"{result['model']}: {args.ranks} ranks of {args.threads} threads, {args.split}, link {args.rate or 'unlimited'} {args.delay}, "
        f"memory {args.memory or 'unlimited'}: {result['tokens_per_second']:.2f} tokens a second" +
        (f", one process of {args.alone} threads {result['alone_per_second']:.2f}, ratio "
         f"{result['tokens_per_second'] / result['alone_per_second']:.3f}" if one else ""))
    print(
        f"  rank 0 sent {result['sent_bytes']:,} bytes in {result['sent_messages']} messages a token; exchanges took "
        f"{result['exchange_ms']:.1f} ms of {result['token_ms']:.1f}" +
        (f", {network:.1f} ms without products" if network else "") +
        (f"; half a round trip of a small message took {machines.latency:.0f} us" if args.delay else ""))
    for rank, (peak, planned_peak) in enumerate(zip(peaks, plan)):
        print(f"  rank {rank}: peak {cage.mib(peak)}, planned {cage.mib(planned_peak)}")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
