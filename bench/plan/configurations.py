#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans beside runs, for configurations that are drawn at random from a seed.

usage: bench/plan/configurations.py [--count 40] [--seed 1] [--rows 3,17] [--rounds 3] [--lock FILE]
                                    [--machine FILE] [--folder DIR] [--json FILE]

The machine is measured (mica doctor --measure) into a cache folder of this script's own. Then, for each
configuration: a file of a published shape with fewer layers, experts or entries of the vocabulary (mica
synth), `mica plan --json`, and two runs of `mica bench`. One reads a prompt, the other one decodes at the end
of the full context, with the planned number of sequences. Compared are the bytes of all accounts with the
peak of the run's ledger and with its peak resident memory, and both speeds with the medians of the rounds.
--lock FILE: each measurement holds this lock, so that several programs can share a machine. --machine FILE:
the measurement of an earlier run. Standard library only.
"""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import peers  # noqa: E402

MICA = str(peers.ROOT / "build/release/mica")
MIB = 1 << 20
BYTES_OFF, SPEED_OFF = 0.02, 0.15  # deviations that count as outside

# The shape, the flags that make it small enough, and what it stands for.
SHAPES = [
    ("llama-1b", ["--vocab", "32000"], "dense"),
    ("qwen3.5-0.8b", ["--vocab", "64000"], "hybrid"),
    ("qwen3-30b-a3b", ["--layers", "5", "--experts", "32", "--vocab", "32000"], "mixture"),
    ("gemma3-1b", ["--vocab", "64000"], "dense"),
    ("qwen3.5-35b-a3b", ["--layers", "8", "--experts", "32", "--vocab", "32000"], "hybrid mixture"),
    ("qwen2-0.5b", [], "dense"),
    ("gpt-oss-20b", ["--layers", "4", "--experts", "8", "--vocab", "32000"], "mixture"),
    ("qwen3.5-4b", ["--layers", "8", "--vocab", "32000"], "hybrid"),
    ("gemma4-e2b", ["--layers", "10", "--vocab", "32000"], "dense"),
    ("qwen3-0.6b", ["--vocab", "64000"], "dense"),
    ("gemma4-26b-a4b", ["--layers", "6", "--experts", "32", "--vocab", "32000"], "mixture"),
    ("phi3-mini", ["--layers", "6"], "dense"),
    ("gemma2-2b", ["--layers", "8", "--vocab", "32000"], "dense"),
    ("smollm2-360m", [], "dense"),
]
TYPES = ["Q4_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"]


def drawn(seed, index):
    """The configuration of a row: it does not depend on the other rows."""
    choose = random.Random(f"{seed}/{index}")
    shape, smaller, kind = SHAPES[index % len(SHAPES)]
    n_ctx = choose.choice([256, 512, 768, 1024, 1536, 2048])
    key = choose.choice(["f16", "f16", "q8_0", "q4_0"])
    flags = ["-c", str(n_ctx), "--chunk", str(choose.choice([64, 128, 256, 512, 512])), "-ctk", key, "-ctv",
             choose.choice([key, "q8_0"])]
    flags += ["--kv", choose.choice(["segmented", "segmented", "contiguous", "paged"])]
    weights = choose.choice(["resident", "resident", "resident", "mapped", "streamed"])
    flags += ["--weights", weights]
    if n_ctx >= 1024 and choose.random() < 0.4:
        flags += ["--evict", f"sinks:{choose.choice([256, 384, 512])}"]
    parallel = choose.choice([1, 1, 2, 4]) if n_ctx <= 1024 else 1
    flags += ["-np", str(parallel)]
    return {"shape": shape, "smaller": smaller, "kind": kind, "type": choose.choice(TYPES), "n_ctx": n_ctx,
            "parallel": parallel, "flags": flags, "streamed_part": choose.choice([0.5, 0.65, 0.8]),
            "streamed": weights == "streamed"}


class Program:
    """mica with a cache folder of its own, in which nothing is learnt."""

    def __init__(self, folder, lock):
        self.folder, self.lock = folder, lock
        self.kept = folder / "mica/machine.json"
        self.machine = None

    @contextlib.contextmanager
    def alone(self):
        if not self.lock:
            yield
            return
        with open(self.lock, "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def run(self, *words, codes=(0,)):
        if self.machine:
            self.kept.parent.mkdir(exist_ok=True)
            self.kept.write_text(self.machine)
        done = subprocess.run([MICA, *words], capture_output=True, text=True,
                              env=dict(os.environ, XDG_CACHE_HOME=str(self.folder)))
        if done.returncode not in codes:
            raise RuntimeError(f"mica {' '.join(words)}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def measure(self, kept):
        """The machine, or what an earlier run measured of it."""
        if kept and kept.exists():
            self.machine = kept.read_text()
            return
        with self.alone():
            self.run("doctor", "--measure", "--json")
        self.machine = self.kept.read_text()
        if kept:
            kept.write_text(self.machine)

    def measure_disk(self, model):
        """The disk of the models, which is a part of the machine."""
        machine = json.loads(self.machine)
        if machine.get("disks"):
            return
        with self.alone():
            self.run("doctor", model, "--measure", "--json")
        machine["disks"] = json.loads(self.kept.read_text())["disks"]
        self.machine = json.dumps(machine)

    def plan(self, model, flags):
        return json.loads(self.run("plan", model, "--json", *flags, codes=(0, 4)))

    def bench(self, model, rounds, flags):
        return json.loads(self.run("bench", model, "-r", str(rounds), "-o", "json", *flags))[0]


def write_model(program, row, folder):
    path = folder / f"{row['shape']}-{row['type']}.gguf"
    with program.alone():
        program.run("synth", row["shape"], row["type"], str(path), *row["smaller"])
    return path


def off(planned, measured):
    return planned / measured - 1 if measured else None


def compare(program, row, model, rounds):
    """The row with what was planned and what was found."""
    if row["streamed"]:
        resident = [word if word != "streamed" else "resident" for word in row["flags"]]
        whole = program.plan(model, resident)["peak_bytes"]
        row["flags"] += ["--memory", str(int(whole * row["streamed_part"]))]
    plan = program.plan(model, row["flags"])
    n_ctx, gen = row["n_ctx"], 8 if row["streamed"] else 24
    with program.alone():
        prompt = program.bench(model, rounds, ["-p", str(min(n_ctx, 512)), "-n", "0", *row["flags"]])
        answer = program.bench(model, rounds,
                               ["-p", "0", "-n", str(gen), "-d", str(n_ctx - gen), *row["flags"]])
    speed = plan["speed"]
    row |= {
        "model_bytes": plan["weight_bytes"],
        "planned_bytes": plan["peak_bytes"],
        "ledger_bytes": answer["ledger_peak_bytes"],
        "resident_bytes": answer["peak_bytes"],
        "planned_prefill": speed["prefill_per_second"],
        "prefill": statistics.median(prompt["samples_ts"]),
        "planned_decode": speed["decode_per_second_full"],
        "decode": statistics.median(answer["samples_ts"]),
    }
    row["ledger_off"] = off(row["planned_bytes"], row["ledger_bytes"])
    row["resident_off"] = off(row["planned_bytes"], row["resident_bytes"])
    row["prefill_off"] = off(row["planned_prefill"], row["prefill"])
    row["decode_off"] = off(row["planned_decode"], row["decode"])
    return row


def report(index, row):
    cells = [f"{100 * row[name]:+6.1f}%" for name in ("ledger_off", "resident_off", "prefill_off", "decode_off")]
    print(f"{index:3} {row['shape']:16} {row['type']:7} {row['planned_bytes'] / MIB:7.1f} MiB {' '.join(cells)}"
          f"  pp {row['prefill']:7.1f} tg {row['decode']:6.1f}  {' '.join(row['flags'])}", flush=True)


def summary(rows):
    """How many rows are outside, for each figure."""
    limits = {"ledger_off": BYTES_OFF, "resident_off": BYTES_OFF, "prefill_off": SPEED_OFF,
              "decode_off": SPEED_OFF}
    counts = {name: sum(abs(row[name]) > limit for row in rows) for name, limit in limits.items()}
    worst = {name: max((abs(row[name]) for row in rows), default=0) for name in limits}
    for name, limit in limits.items():
        print(f"{name:13} outside {100 * limit:.0f} %: {counts[name]} of {len(rows)}, at most "
              f"{100 * worst[name]:.1f} %")
    return {"outside": counts, "largest": worst}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=peers.numbers, help="only these rows of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lock")
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--folder", help="where models are written for a while")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows, failed = [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        program = Program(folder, options.lock)
        program.measure(options.machine)
        print("row shape            type       planned  ledger resident prefill decode")
        for index in options.rows or range(options.count):
            row = drawn(options.seed, index)
            model = write_model(program, row, folder)
            try:
                program.measure_disk(str(model))
                rows.append({"row": index, **compare(program, row, str(model), options.rounds)})
                report(index, rows[-1])
            except (RuntimeError, KeyError) as error:
                failed.append({"row": index, "error": str(error)})
                print(f"{index:3} {row['shape']:16} {' '.join(row['flags'])}: {error!r}", flush=True)
            model.unlink()
    result = summary(rows)
    if options.json:
        options.json.write_text(json.dumps({
            "machine": peers.cpu_name(),
            "command": f"bench/plan/configurations.py --count {options.count} --seed {options.seed} --rounds "
                       f"{options.rounds}", **result, "failed": failed, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
