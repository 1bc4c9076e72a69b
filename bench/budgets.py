#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random runs of mica with a budget in control groups of random size: does a run exceed its budget?

usage: bench/budgets.py MODEL... [--runs 500] [--seed 1] [--first 0] [--only N] [--context 2048]
                        [--mica build/release/mica] [--folder DIR] [--json FILE] [-- OPTIONS...]

Each run draws, from the seed and its number: a model, a context of 64 to --context tokens, storage and
elements of keys and values, how weights come into memory (or none of these flags), a budget from 5 to 200 %
of the file, and a control group whose limit is the budget, or above or below it. A prompt and its answer fill
the context; in an eighth of the runs no context is given, and the prompt is short. These must hold:
  - the peak of the group, page cache included, and the peak of the process (VmHWM, with its code and its
    libraries) are within the smaller number of budget and limit;
  - nothing is killed;
  - a run that is refused (exit code 4) names the smallest budget. The same command with that budget, in a
    group that is larger, runs and keeps it; with 2 % less it is refused again;
  - a run that is not refused ends with exit code 0, and its context is full.
Combinations that mica refuses as such (exit codes 2 and 5) are counted apart, with their sentence. Violations
are printed with the command line, and with the words that repeat the run. OPTIONS go to every run of mica.
Needs root, a C compiler and a memory controller, v1 or v2.
"""
import argparse
import collections
import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time

import cage
import peers
import prompts
from cage import MIB, Cage, Started, mib

STORAGES = ("segmented", "contiguous", "reserved", "paged", "spilled", "spilled-paged")
ELEMENTS = ("f16", "q8_0", "bf16", "f32", "q5_1", "q5_0", "q4_1", "q4_0", "q4_s", "iq4_nl", "kivi4", "kivi2",
            "q6_0", "kvarn4", "kvarn3")
RESIDENCIES = ("resident", "streamed", "mapped")
SMALLEST_GROUP = 32 * MIB  # in which the program can be started, and can refuse
PATIENCE = 900  # seconds


class NotCounted(RuntimeError):
    """Something that says nothing about mica."""


class Bench:
    """Programs and files of the runs."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.starter = cage.compiled(cage.STARTER, self.folder / "starter")
        self.fills = {}

    def tokens_of(self, model, text):
        words = [self.options.mica, "tokenize", model, text, "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise NotCounted(f"mica tokenize {model}: exit code {done.returncode}: {done.stderr}")
        return len(json.loads(done.stdout)["ids"])

    def prompt(self, model, tokens):
        """A file with a prompt of at most that many tokens, and no more than a hundredth less."""
        if (model, tokens) not in self.fills:
            letters = tokens + 2
            for _ in range(30):
                text = prompts.of_tokens(letters, seed=tokens)
                found = self.tokens_of(model, text)
                if tokens - max(tokens // 100, 2) <= found <= tokens:
                    break
                letters = max(letters + tokens - found - (found > tokens), 3)
            else:
                raise NotCounted(f"{model}: no prompt of {tokens} tokens was found")
            path = self.folder / f"prompt-{len(self.fills)}.txt"
            path.write_text(text)
            self.fills[model, tokens] = path, found
        return self.fills[model, tokens]

    def run(self, case, budget, limit):
        """Runs the command of a case once. Exit code, peaks and the object that mica prints."""
        cage.drop(case["model"])
        words = [*case["words"], "--memory", str(budget)]
        with Cage(limit) as group:
            mica = Started(self.starter, group, words, self.folder, "mica")
            used = 0
            while mica.running():
                used = max(used, group.use()[1])
                if time.monotonic() - mica.begin > PATIENCE:
                    mica.stop()
                    raise NotCounted(f"{shlex.join(words)} had not ended after {PATIENCE} s")
                time.sleep(0.01)
            facts = {**group.facts(), "used_bytes": used}
        try:
            said = json.loads(mica.out().decode() or "{}")
        except ValueError:
            said = {}
        return {
            "budget_bytes": budget, "limit_bytes": limit, "words": words, "exit": mica.exit,
            "rss_bytes": mica.rss_bytes, "seconds": mica.seconds,
            **facts, "stop_reason": said.get("stop_reason"), "stderr": mica.err()[-3000:],
            "tokens": (said["timings"]["prompt_n"],
                       said["timings"]["predicted_n"]) if "timings" in said else None
        }


def file_bytes(model):
    path = pathlib.Path(model)
    return sum(each.stat().st_size for each in path.iterdir()) if path.is_dir() else path.stat().st_size


def draw(bench, number):
    """A case: its words, budget and limit. All of it comes from the seed and the number."""
    options = bench.options
    rng = random.Random(f"{options.seed}/{number}")
    model = rng.choice(options.models)
    context = int(64 * (options.context / 64)**rng.random()) // 16 * 16
    answer = rng.randrange(4, 17)
    storage = rng.choice((None, *STORAGES))
    keys, values = (rng.choice(ELEMENTS) for _ in range(2))
    elements = rng.choice(((None, None), (keys, keys), (keys, values)))
    weights = rng.choice((None, *RESIDENCIES))
    chunk = rng.choice((None, None, None, 16, 64, 256))
    part = rng.choice((rng.uniform(0.05, 2), 0.05 * (2 / 0.05)**rng.random()))
    budget = max(int(file_bytes(model) * part), MIB)
    limit = max(int(budget * rng.choice((1.0, rng.uniform(1.02, 3.0), rng.uniform(0.4, 0.98)))),
                SMALLEST_GROUP)
    is_filled = rng.random() >= 0.125
    words = [options.mica, "complete", model, "--json", "--ignore-eos", "--temp", "0"]
    path, tokens = bench.prompt(model, context - answer if is_filled else 8)
    # One more than fits: the run ends because the context is full.
    words += ["-f", str(path), "-n", str(context - tokens + 16 if is_filled else 4)]
    flags = [("-c", context if is_filled else None), ("--kv", storage), ("-ctk", elements[0]),
             ("-ctv", elements[1]), ("--weights", weights), ("--chunk", chunk)]
    for flag, value in flags:
        words += [] if value is None else [flag, str(value)]
    return {
        "run": number, "model": model, "context": context if is_filled else None, "storage": storage,
        "elements": elements, "weights": weights, "chunk": chunk, "budget_bytes": budget,
        "limit_bytes": limit, "file_bytes": file_bytes(model), "words": words + options.mica_options
    }


def excess(case, ran):
    """What is wrong with a run that was not refused; empty if nothing is."""
    bound, wrong = min(ran["budget_bytes"], ran["limit_bytes"]), []
    if ran["peak_bytes"] > bound:
        wrong.append(f"the group had {mib(ran['peak_bytes'])}, {mib(ran['peak_bytes'] - bound)} more than "
                     f"{mib(bound)}; without page cache that can be dropped {mib(ran['used_bytes'])}")
    if ran["rss_bytes"] > bound:
        wrong.append(
            f"the process had {mib(ran['rss_bytes'])}, {mib(ran['rss_bytes'] - bound)} more than {mib(bound)}"
        )
    if case["context"] is not None and ran["stop_reason"] != "context_full":
        wrong.append(f"the context was not filled: {ran['stop_reason']}")
    return wrong


def is_refusal(ran):
    return ran["exit"] == 4 and " budget " in ran["stderr"] and "needs " in ran["stderr"]


def smallest(ran):
    """The budget that a refusal names, in bytes; None if it names none."""
    found = re.search(r"The minimum is --memory ([0-9.]+(?:KiB|MiB|GiB))", ran["stderr"])
    return cage.bytes_of(found[1]) if found else None


def last_line(ran):
    lines = [line for line in ran["stderr"].splitlines() if line.startswith("mica")]
    return lines[-1] if lines else ran["stderr"][-200:]


def killed(ran):
    if ran["exit"] == -9 and not ran["oom_kills"]:
        raise NotCounted("mica was killed, and not by the kernel for memory")
    return ran["oom_kills"] > 0


def check_refusal(bench, case, ran, tried):
    """Runs with the budget that a refusal names, and with 2 % less. Violations: (text, the run)."""
    least = smallest(ran)
    if least is None:
        return [(f"the refusal names no smallest budget: {last_line(ran)}", ran)]
    if least + 16 * MIB < min(ran["budget_bytes"], ran["limit_bytes"]):  # the group is not empty at the start
        return [(f"refused, and the smallest budget is said to be {mib(least)}: {last_line(ran)}", ran)]
    limit = least + least // 4 + 64 * MIB
    named = f"with the budget that the refusal names, {mib(least)}"
    with_least = bench.run(case, least, limit)
    less = bench.run(case, int(least * 0.98), limit)
    tried += [with_least, less]
    if killed(with_least):
        wrong = ["it is killed"]
    elif with_least["exit"] != 0:
        wrong = [f"it ends with {with_least['exit']}: {last_line(with_least)}"]
    else:
        wrong = excess(case, with_least)
    wrong = [(f"{named}, {each}", with_least) for each in wrong]
    if not is_refusal(less):
        wrong.append((f"{named}, less 2 %, it is not refused: exit code {less['exit']}", less))
    return wrong


def do_run(bench, number):
    """A case with its outcome (ran, refused, killed, other, unsupported) and what is wrong."""
    case = draw(bench, number)
    ran = bench.run(case, case["budget_bytes"], case["limit_bytes"])
    tried, wrong = [ran], []
    if killed(ran):
        outcome, wrong = "killed", [(f"killed at {mib(ran['peak_bytes'])}", ran)]
    elif ran["exit"] == 0:
        outcome, wrong = "ran", [(each, ran) for each in excess(case, ran)]
    elif is_refusal(ran):
        outcome, wrong = "refused", check_refusal(bench, case, ran, tried)
    elif ran["exit"] in (2, 5):
        outcome = "unsupported"
    else:
        outcome = "other"
        wrong = [(f"exit code {ran['exit']}, stop_reason {ran['stop_reason']}: {last_line(ran)}", ran)]
    return {**case, "outcome": outcome, "tried": tried,
            "wrong": [{"what": what, "limit_bytes": one["limit_bytes"], "command": shlex.join(one["words"])}
                      for what, one in wrong]}


COLUMNS = ("run", "model", "context", "storage", "elements", "weights", "chunk", "budget, of the file",
           "budget", "limit", "peak of the group", "peak of the process", "of the smaller number",
           "times at the limit", "smallest budget named", "time", "outcome")


def row(r):
    """Cells of COLUMNS."""
    ran, tried = r["tried"][0], r["tried"]
    bound = min(r["budget_bytes"], r["limit_bytes"])
    part = f"{max(ran['peak_bytes'], ran['rss_bytes']) / bound:.3f}" if r["outcome"] == "ran" else ""
    named = mib(tried[1]["budget_bytes"]) if r["outcome"] == "refused" and len(tried) > 1 else ""
    elements = "/".join(r["elements"]) if r["elements"][0] else None
    chosen = [r["context"], r["storage"], elements, r["weights"], r["chunk"]]
    return [r["run"], pathlib.Path(r["model"]).name, *("" if one is None else one for one in chosen),
            f"{r['budget_bytes'] / r['file_bytes']:.0%}", mib(r["budget_bytes"]), mib(r["limit_bytes"]),
            mib(ran["peak_bytes"]), mib(ran["rss_bytes"]), part, ran["times_at_limit"], named,
            f"{ran['seconds']:.1f} s", ": ".join([r["outcome"], *(one["what"] for one in r["wrong"])])]


def summary(results):
    lines = []
    outcomes = collections.Counter(r["outcome"] for r in results)
    wrong = [r for r in results if r["wrong"]]
    lines.append(f"{len(results)} runs: "
                 + ", ".join(f"{outcomes[name]} {name}"
                             for name in ("ran", "refused", "killed", "unsupported", "other"))
                 + f"; {len(wrong)} violations")
    kills = sum(one["oom_kills"] for r in results for one in r["tried"])
    checked = sum(r["outcome"] == "refused" and len(r["tried"]) == 3 for r in results)
    lines.append(
        f"{kills} kills in {sum(len(r['tried']) for r in results)} runs of mica; {checked} refusals were run "
        "again with the budget that they name, and with 2 % less")
    whole = [one for r in results for one in r["tried"] if one["exit"] == 0]
    for name, key in (("group", "peak_bytes"), ("group without page cache", "used_bytes"),
                      ("process", "rss_bytes")):
        over = [one[key] - min(one["budget_bytes"], one["limit_bytes"]) for one in whole]
        above = [each for each in over if each > 0]
        if whole:
            lines.append(f"peak of the {name}: above the smaller number of budget and limit in {len(above)} "
                         f"of {len(whole)} runs that ended with 0; the highest is {mib(abs(max(over)))} "
                         f"{'above' if max(over) > 0 else 'below'} it")
    sentences = collections.Counter(
        last_line(r["tried"][0]) for r in results if r["outcome"] == "unsupported")
    lines += [f"unsupported, {count} times: {sentence}" for sentence, count in sentences.most_common()]
    return "\n".join(lines)


def violations(options, results):
    lines = []
    for r in results:
        for one in r["wrong"]:
            lines.append(f"\nrun {r['run']}: {one['what']}\n  limit {one['limit_bytes']}: {one['command']}")
        if r["wrong"]:
            values = {"seed": options.seed, "context": options.context, "only": r["run"]}
            again = [*options.models, *cage.flags_of(values)]
            again += ["--", *options.mica_options] if options.mica_options else []
            lines.append(f"  again: bench/budgets.py {shlex.join(again)}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--context", type=int, default=2048)
    cage.add_run_options(parser, runs=500)
    options = cage.options_after_dashes(parser, sys.argv[1:])
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="budgets-") as folder:
        bench = Bench(options, folder)
        results, not_counted = cage.numbered_runs(options, COLUMNS, lambda number: do_run(bench, number), row)
    print(f"\n{summary(results)}\n{len(not_counted)} runs not counted{violations(options, results)}")
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "machine": peers.cpu_name(), "command": shlex.join(["bench/budgets.py", *sys.argv[1:]]),
                    "not_counted": not_counted, "results": results
                }, indent=1) + "\n")
    sys.exit(1 if not_counted else 0)


if __name__ == "__main__":
    main()
