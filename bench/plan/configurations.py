#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans beside runs, for configurations that are drawn at random from a seed.

usage: bench/plan/configurations.py [--count 40] [--seed 1] [--rows 3,17] [--rounds 3] [--threads 2]
                                    [--processor-clock] [--measure-each] [--lock FILE]
                                    [--program build/release/mica] [--machine FILE] [--headers DIR]
                                    [--again FILE] [--json FILE]

The machine is measured (mica doctor --measure) into a cache folder of this script's own. Then, for each
configuration: a file of a published shape with fewer layers, experts or entries of the vocabulary (mica
synth), `mica plan --json`, and two runs of `mica bench`. One reads a prompt, the other one decodes at the end
of the full context, with the planned number of sequences. Compared are the bytes of all accounts with the
peak of the run's ledger and with its peak resident memory, and both planned speeds with the medians of the
rounds.

--processor-clock: on a machine that others use, with --threads 1: times are processor time
(processor_clock.c), and speeds of streamed weights, which wait for a disk, are left out.
--measure-each: mica plan --measure runs before each round, and the medians of predictions are compared: where
virtual machines share a memory bus, its speed changes from minute to minute.
--lock FILE: this lock is held while something is measured, for some two minutes at a time, so that programs
can share a machine. --machine FILE: the measurement of an earlier run, or the place for that of this one.
--headers DIR: keeps the files with holes in place of the weights, and the measurements of --measure-each.
--again FILE: the runs of an earlier result, whose files have been kept, are compared with new plans. Standard
library only.
"""
import argparse
import fcntl
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import peers  # noqa: E402

MIB = 1 << 20
HEADER_BYTES = 32 * MIB  # at most
TURN_SECONDS = 135  # for which a lock is held
BUSY_CORES = 0.15  # of other programs, above which a measurement is repeated
LIMITS = {"ledger_off": 0.02, "resident_off": 0.02, "prefill_off": 0.15, "decode_off": 0.15}

COLUMNS = ["row", "model", "flags", "planned, MiB", "off the ledger, %", "off the resident peak, %",
           "prompt, tokens/s", "plan off, %", "decode, tokens/s", "plan off, %", "cores of others"]

# The shape, the flags that make it small enough, and what it stands for.
SHAPES = [
    ("llama-1b", ["--layers", "3", "--vocab", "16000"], "dense"),
    ("qwen3.5-0.8b", ["--layers", "8", "--vocab", "32000"], "hybrid"),
    ("qwen3-30b-a3b", ["--layers", "2", "--experts", "24", "--vocab", "8000"], "mixture"),
    ("gemma3-1b", ["--layers", "7", "--vocab", "32000"], "dense"),
    ("qwen3.5-35b-a3b", ["--layers", "4", "--experts", "16", "--vocab", "8000"], "hybrid mixture"),
    ("qwen2-0.5b", ["--layers", "8", "--vocab", "64000"], "dense"),
    ("gpt-oss-20b", ["--layers", "1", "--experts", "8", "--vocab", "8000"], "mixture"),
    ("qwen3.5-4b", ["--layers", "4", "--vocab", "8000"], "hybrid"),
    ("gemma4-e2b", ["--layers", "10", "--vocab", "8000"], "dense"),
    ("qwen3-0.6b", ["--layers", "12", "--vocab", "32000"], "dense"),
    ("gemma4-26b-a4b", ["--layers", "6", "--experts", "8", "--vocab", "8000"], "mixture"),
    ("phi3-mini", ["--layers", "2", "--vocab", "8000"], "dense"),
    ("gemma2-2b", ["--layers", "3", "--vocab", "16000"], "dense"),
    ("smollm2-360m", ["--layers", "20"], "dense"),
]
TYPES = ["Q4_0", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"]


def drawn(seed, index):
    """The configuration of a row: it does not depend on the other rows."""
    choose = random.Random(f"{seed}/{index}")
    shape, smaller, kind = SHAPES[index % len(SHAPES)]
    n_ctx = choose.choice([256, 384, 512, 768, 1024])
    parallel = choose.choice([1, 1, 2, 4]) if n_ctx <= 768 else 1
    key = choose.choice(["f16", "f16", "q8_0", "q4_0"])
    # Sequences of a bench share the pages of their common beginning, which a plan counts for each.
    storage = choose.choice(["segmented", "segmented", "contiguous", "paged"] if parallel == 1 else
                            ["segmented", "contiguous"])
    weights = choose.choice(["resident", "resident", "resident", "mapped", "streamed"])
    flags = ["-c", str(n_ctx), "--chunk", str(choose.choice([64, 128, 256, 512, 512])), "-ctk", key, "-ctv",
             choose.choice([key, "q8_0"]), "--kv", storage, "--weights", weights, "-np", str(parallel)]
    if n_ctx >= 512 and choose.random() < 0.4:
        flags += ["--evict", f"sinks:{choose.choice([256, 320, 384])}"]
    return {"shape": shape, "smaller": smaller, "kind": kind, "type": choose.choice(TYPES), "n_ctx": n_ctx,
            "parallel": parallel, "flags": flags, "streamed_part": choose.choice([0.5, 0.65, 0.8]),
            "streamed": weights == "streamed"}


class Turns:
    """Holds a lock for some time, so that other programs have the machine in turns."""

    def __init__(self, path):
        self.file = open(path, "a") if path else None
        self.since = None

    def begin(self):
        """Called before a measurement: it waits for the lock where it is not held, or was held too long."""
        if self.file is None:
            return
        if self.since and time.monotonic() - self.since > TURN_SECONDS:
            self.end()
            time.sleep(0.2)
        if self.since is None:
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.since = time.monotonic()

    def end(self):
        if self.since is not None:
            fcntl.flock(self.file, fcntl.LOCK_UN)
            self.since = None


class Program:
    """mica with a cache folder of its own, in which nothing is learnt from run to run."""

    def __init__(self, path, threads, folder):
        self.path, self.threads, self.folder = path, ["-t", str(threads)], folder
        self.kept = folder / "mica/machine.json"
        self.machine = None
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(folder))

    def use_processor_clock(self):
        """Times are the processor time of the thread that measures."""
        library = self.folder / "processor_clock.so"
        source = pathlib.Path(__file__).resolve().parent / "processor_clock.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source)], check=True)
        self.environment["LD_PRELOAD"] = str(library)

    def run(self, *words, codes=(0,)):
        if self.machine:
            self.kept.parent.mkdir(exist_ok=True)
            self.kept.write_text(self.machine)
        done = subprocess.run([self.path, *words], capture_output=True, text=True,
                              env=self.environment)
        if done.returncode not in codes:
            raise RuntimeError(f"mica {' '.join(words)}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def measure(self, kept, model):
        """The machine and the disk of a model, or what an earlier run measured."""
        if kept and kept.exists():
            self.machine = kept.read_text()
            return
        # By the processor's clock a disk takes no time, so that it is not measured.
        disk = [] if "LD_PRELOAD" in self.environment else [str(model)]

        def measure():
            self.run("doctor", *disk, "--measure", "--json", *self.threads)
            return self.kept.read_text()

        self.machine, others = quiet(self, measure)
        print(f"the machine was measured while others took {others:.2f} cores", file=sys.stderr, flush=True)
        if kept:
            kept.write_text(self.machine)

    def measure_parts(self, model, flags):
        """The stored measurement, with the parts of this plan measured again."""
        self.run("plan", str(model), "--json", "--measure", *flags, *self.threads, codes=(0, 4))
        return self.kept.read_text()

    def plan(self, model, flags):
        return json.loads(self.run("plan", str(model), "--json", *flags, *self.threads, codes=(0, 4)))

    def bench(self, model, rounds, flags):
        words = ["-r", str(rounds), "-o", "json", *flags, *self.threads]
        return json.loads(self.run("bench", str(model), *words))[0]


def make_holes(path):
    """Only the header stays on the disk."""
    size = path.stat().st_size
    with open(path, "r+b") as file:
        file.truncate(min(size, HEADER_BYTES))
        file.truncate(size)


def set_budget(program, row, model):
    """A part of what resident weights take, or the smallest budget that runs."""
    if row["streamed"]:
        resident = [word if word != "streamed" else "resident" for word in row["flags"]]
        budget = int(program.plan(model, resident)["peak_bytes"] * row["streamed_part"])
        plan = program.plan(model, [*row["flags"], "--memory", str(budget)])
        if not plan["fits"]:
            budget = plan["least"]["peak_bytes"]
        row["flags"] += ["--memory", str(budget)]


def quiet(program, measure):
    """The result of measure() in which other programs took the least time, and the cores that they took. With
    a processor clock it does not matter."""
    best = None
    for _ in range(1 if "LD_PRELOAD" in program.environment else 2):
        load = peers.Stolen()
        result = measure()
        others = sum(load.end())
        if best is None or others < best[1]:
            best = result, others
        if others <= BUSY_CORES:
            break
    return best


def timed(program, row):
    """Whether the speeds of a row are compared."""
    return not (row["streamed"] and "LD_PRELOAD" in program.environment)


def measured(program, row, model, rounds, each):
    """Runs a row; with `each` also the measurements of the machine, one for each round."""
    if each and timed(program, row):
        turns = []
        for _ in range(rounds):
            machine = program.measure_parts(model, row["flags"])
            turns.append((machine, measured(program, row, model, 1, False)[0]))
        found = {name: max(run[name] for _, run in turns)
                 for name in ("ledger_bytes", "resident_bytes", "cores_of_others")}
        found |= {name: statistics.median(run[name] for _, run in turns) for name in ("prefill", "decode")}
        return found, [machine for machine, _ in turns]
    found, others = quiet(program, lambda: run_both(program, row, model, rounds))
    return found | {"cores_of_others": round(others, 3)}, []


def run_both(program, row, model, rounds):
    n_ctx, tokens = row["n_ctx"], 6 if row["streamed"] else 20
    prompt = program.bench(model, rounds, ["-p", str(min(n_ctx, 512)), "-n", "0", *row["flags"]])
    answer = program.bench(model, rounds,
                           ["-p", "0", "-n", str(tokens), "-d", str(n_ctx - tokens), *row["flags"]])
    return {
        "ledger_bytes": answer["ledger_peak_bytes"],
        "resident_bytes": answer["peak_bytes"],
        "prefill": statistics.median(prompt["samples_ts"]),
        "decode": statistics.median(answer["samples_ts"]),
    }


def compare(program, row, model, machines):
    """Adds the plan to a measured row; speeds are medians over the measurements."""
    plans, whole = [], program.machine
    for machine in machines or [whole]:
        program.machine = machine
        plans.append(program.plan(model, row["flags"]))
    program.machine = whole

    def speed(name):
        return statistics.median(plan["speed"][name] for plan in plans)

    row |= {
        "weight_bytes": plans[0]["weight_bytes"],
        "planned_bytes": plans[0]["peak_bytes"],
        "planned_prefill": speed("prefill_per_second"),
        "planned_decode": speed("decode_per_second_full"),
    }
    row["ledger_off"] = row["planned_bytes"] / row["ledger_bytes"] - 1
    row["resident_off"] = row["planned_bytes"] / row["resident_bytes"] - 1
    compares = timed(program, row)
    row["prefill_off"] = row["planned_prefill"] / row["prefill"] - 1 if compares else None
    row["decode_off"] = row["planned_decode"] / row["decode"] - 1 if compares else None


def short(row):
    """The flags without those that say what is said elsewhere, or what is the default."""
    text = " ".join(row["flags"])
    for word in ("--kv segmented", "--weights resident", "-np 1", "-ctk f16 -ctv f16", "--chunk 512"):
        text = text.replace(word, "")
    return " ".join(text.split())


def percent(value, limit):
    return "" if value is None else f"{100 * value:+.1f}{'*' if abs(value) > limit else ''}"


def report(row):
    """A row of the table; a star marks what is outside of its limit."""
    ledger, resident, prefill, decode = (percent(row[name], limit) for name, limit in LIMITS.items())
    cells = [row["row"], f"{row['shape']} {row['type']}", f"`{short(row)}`",
             f"{row['planned_bytes'] / MIB:.0f}", ledger, resident, f"{row['prefill']:.0f}", prefill,
             f"{row['decode']:.1f}", decode, f"{row['cores_of_others']:.2f}"]
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def summary(rows):
    """How many rows are outside of each limit, and the largest deviation."""
    result = {}
    for name, limit in LIMITS.items():
        known = [row for row in rows if row[name] is not None]
        outside = [row["row"] for row in known if abs(row[name]) > limit]
        largest = max((abs(row[name]) for row in known), default=0)
        result[name] = {"limit": limit, "rows": len(known), "outside": outside, "largest": largest}
        print(f"{name:13} outside {100 * limit:.0f} %: {len(outside)} of {len(known)}, at most "
              f"{100 * largest:.1f} %")
    return result


def rows_of(options):
    if options.again:
        return json.loads(options.again.read_text())["rows"]
    return [{"row": index, **drawn(options.seed, index)} for index in options.rows or range(options.count)]


def write(options, rows, failed, result):
    if not options.json:
        return
    command = (f"bench/plan/configurations.py --count {options.count} --seed {options.seed} "
               f"--rounds {options.rounds} --threads {options.threads}"
               + " --processor-clock" * options.processor_clock + " --measure-each" * options.measure_each)
    options.json.write_text(json.dumps({"machine": peers.cpu_name(), "command": command, "result": result,
                                        "failed": failed, "rows": rows}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=peers.numbers, help="only these rows of them")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", default=str(peers.ROOT / "build/release/mica"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor-clock", action="store_true")
    parser.add_argument("--measure-each", action="store_true")
    parser.add_argument("--lock")
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--headers", type=pathlib.Path)
    parser.add_argument("--again", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows, failed, turns = [], [], Turns(options.lock)
    with tempfile.TemporaryDirectory() as name:
        folder = options.headers or pathlib.Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        program = Program(options.program, options.threads, pathlib.Path(name))
        if options.processor_clock:
            program.use_processor_clock()
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
        for row in rows_of(options):
            model = folder / f"{row['row']}.gguf"
            try:
                if not options.again:
                    turns.begin()
                    program.run("synth", row["shape"], row["type"], str(model), *row["smaller"])
                if not program.machine:
                    program.measure(options.machine, model)
                kept = folder / f"{row['row']}.json"
                if options.again:
                    machines = json.loads(kept.read_text()) if kept.exists() else []
                else:
                    set_budget(program, row, model)
                    found, machines = measured(program, row, model, options.rounds, options.measure_each)
                    row |= found
                    if options.headers:
                        make_holes(model)
                        kept.write_text(json.dumps(machines))
                compare(program, row, model, machines)
                rows.append(row)
                report(row)
                write(options, rows, failed, None)  # in case it is interrupted
            except RuntimeError as error:
                failed.append({"row": row["row"], "error": str(error)})
                print(f"{row['row']:3} {row['shape']:16} {' '.join(row['flags'])}: {error}", flush=True)
            if not options.headers:
                model.unlink(missing_ok=True)
        turns.end()
    write(options, rows, failed, summary(rows))


if __name__ == "__main__":
    main()
