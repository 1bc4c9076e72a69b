#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mica under hard limits of memory: does it keep its budget, and what does that cost?

usage: bench/memory.py MODEL BUDGET... [--tokens 16] [--prompt 64] [--context 512] [--rounds 1] [--unlimited]
                       [--peer COMMAND] [--json FILE]
                       [-- OPTIONS...]

For each budget (1GiB, 800MiB) a cgroup is made whose limit is the budget and 5 %, without swap, page cache
included, and mica complete runs in it with --memory BUDGET, as a user would call it: what gives way is its
choice, and is shown. MODEL is a file that mica synth wrote; tokens are drawn nearly at random, so that
experts differ from one to the next, and the file is taken out of the page cache before each run. The disk is
measured before and after by mica doctor: reads of the same file in order, past the page cache. --unlimited
runs the same without a budget and a cgroup, in turns with the other. --peer runs a command in the same cgroup
({model} stands for the file), such as llama-bench in a chroot, and prints what it says. OPTIONS go to every
run of mica. Needs root and a memory controller, v1 or v2.
"""
import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

import peers
import prompts
from cage import Cage, bytes_of, drop

MICA = str(peers.ROOT / "build/release/mica")

DRAW = ["--temp", "100", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "1"]


def checked(done, command):
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done


def disk_rate(model):
    """Bytes per second of direct reads in order."""
    command = [MICA, "doctor", model, "--json"]
    return json.loads(checked(subprocess.run(command, capture_output=True, text=True),
                              command).stdout)["disk_in_order"]


def speeds(done, command):
    """What a run says of itself."""
    said = json.loads(checked(done, command).stdout)
    timings, answer = said["timings"], said["stats"]["answer"]
    steps = timings["predicted_n"] - 1 - timings.get("draft_n_accepted",
                                                     0)  # the first token comes with the prompt
    return {"prompt": timings["prompt_per_second"],
            "tokens": (timings["predicted_n"] - 1) / answer["ms"] * 1e3,
            "tokens_per_step": (timings["predicted_n"] - 1) / steps,
            "bytes_per_step": answer["read_bytes"] / steps,
            "bytes_per_second": answer["read_bytes"] / answer["ms"] * 1e3,
            "waited": answer["wait_ms"] / answer["ms"],
            "expert_hits": answer["expert_hits"], "expert_misses": answer["expert_misses"],
            "gave_way": next((line.partition("to fit ")[2] for line in done.stderr.splitlines()
                              if "to fit " in line), "")}


def median_of(runs):
    return {key: value if isinstance(value, str) else statistics.median(run[key] for run in runs) for key,
            value in runs[0].items()}


def measure(options, budget, prompt):
    run = [MICA, "complete", options.model, "-f", prompt, "-n", str(options.tokens + 1), "--ignore-eos", "-c",
           str(options.context),
           "--json", "--stats"] + DRAW + options.mica
    limit = int(bytes_of(budget) * 1.05)
    disk, limited, unlimited = [disk_rate(options.model)], [], []
    cage = Cage(limit)
    for _ in range(options.rounds):
        command = run + ["--memory", budget]
        drop(options.model)
        limited.append(speeds(cage.run(command), command))
        if options.unlimited:
            unlimited.append(speeds(subprocess.run(run, capture_output=True, text=True), run))
        disk.append(disk_rate(options.model))
    result = {"budget_bytes": bytes_of(budget), "speeds": median_of(limited), **cage.facts()}
    cage.remove()
    result["disk_bytes_per_second"] = statistics.median(disk)
    result["part_of_disk"] = result["speeds"]["bytes_per_second"] / result["disk_bytes_per_second"]
    if unlimited:
        result["unlimited"] = median_of(unlimited)
        result["part_of_unlimited"] = {key: result["speeds"][key] / result["unlimited"][key]
                                       for key in ("prompt", "tokens")}
    if options.peer:
        cage = Cage(limit)
        command = shlex.split(options.peer.format(model=options.model))
        drop(options.model)
        done = cage.run(command)
        result["peer"] = {"command": options.peer, "exit_code": done.returncode, "said": done.stdout[-600:],
                          **cage.facts()}
        cage.remove()
    return result


def row(budget, r):
    """Of the table."""
    s = r["speeds"]
    unlimited = "".join(f" {r['part_of_unlimited'][key]:.2f} |" for key in ("prompt",
                                                                            "tokens")) if "unlimited" in r else " | |"
    read = f"{s['bytes_per_step'] / 2**20:,.0f} MiB | {r['part_of_disk']:.2f}" if s["bytes_per_step"] else "nothing | "
    return (f"| {budget} | {r['peak_bytes'] / 2**20:,.0f} MiB | {r['times_at_limit']} | {s['prompt']:.1f} "
            f"t/s | {s['tokens']:.2f} t/s |"
            f"{unlimited} {s['tokens_per_step']:.2f} | {read} | {s['gave_way']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("budgets", nargs="+")
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--unlimited", action="store_true")
    parser.add_argument("--peer")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:at])
    options.mica = arguments[at + 1:]
    quiet, results = peers.Stolen(), []
    print("| budget | peak of the cgroup | times at the limit | prompt | tokens | prompt, of unlimited | "
          "tokens, of unlimited | tokens a step | "
          "read for each step | of the disk's speed | what gave way |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt:
        prompt.write(prompts.of_tokens(options.prompt))
        prompt.flush()
        for budget in options.budgets:
            r = measure(options, budget, prompt.name)
            results.append(r)
            print(row(budget, r), flush=True)
            if r["oom_kills"]:
                print(f"killed {r['oom_kills']} times")
            if "peer" in r:
                print(f"peer: exit code {r['peer']['exit_code']}, killed {r['peer']['oom_kills']} "
                      f"times\n{r['peer']['said']}")
    others, steal = quiet.end()
    print(f"cores of others {others:.2f}, stolen {steal:.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": peers.cpu_name(), "command": "bench/memory.py "
                                            + shlex.join(sys.argv[1:]),
                                            "model": pathlib.Path(options.model).name, "results": results,
                                            "cores_of_others": round(others, 3)}, indent=1) + "\n")


if __name__ == "__main__":
    main()
