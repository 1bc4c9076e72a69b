#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs mica beside a neighbour that takes the memory of their control group: is one of them killed, and is
the text the same?

usage: bench/pressure.py MODEL [--runs 200] [--seed 1] [--first 0] [--only N] [--tokens 48] [--prompt 3000]
                         [--serve] [--mica build/release/mica] [--folder DIR] [--json FILE] [-- OPTIONS...]

Each run draws, from the seed and its number, a command, a limit of a control group (300 MiB to 3 GiB, and at
least the peak of the command alone and 40 MiB) and a neighbour in the group. The neighbour begins at a random
moment while mica loads (load), reads a prompt of 500 to 3,000 tokens (prompt; --prompt is the maximum),
writes (answer), or during a conversation (chat, with --session). It touches memory page by page at 20 to
800 MB/s, smoothly in steps of at most 1 MiB or in bursts of 5 to 40 MiB, until it has its amount, holds it
for 2 to 10 s, and ends. In half of the runs (give) the amount leaves mica the minimum of a streamed run of
this model, and a margin; in the others (take) it leaves less than the minimum, so that mica must end in time.
The commands give the context and the elements of keys and values, so that mica may only choose where bytes
are. A quarter of them have a budget.

The same command alone gives the text, the peak and the times. Limits and rates depend on these, so they
differ a little from machine to machine: they are such that the group would be full in the first half of the
time that mica needs alone. A run ends in one of these ways:
  same     exit code 0, and the text of the command alone, byte for byte
  ended    exit code 4 with a sentence, after the beginning of that text; or an answer that ends where the
           context became shorter, with a sentence. With --session, the same command and
           the saved file give that text again, and the text so far and a continuation of the file are it; a
           conversation goes on with /regen for an answer that was cut
  killed   the kernel killed mica or the neighbour
  other    anything else
With --serve mica is a server that three clients ask in a loop, with and without streams, by prompts with a
common beginning; a quarter of the neighbours begins while it loads (all of these take), half of the servers
have --state. The texts of a server alone are those that each complete answer must have. When the neighbour
has gone, each client has to get an answer again within three minutes. Outcomes: same (it lives on, and no
complete answer differs), ended (exit code 4 with a sentence), killed and other. Beside them are the numbers
of requests: same, cut (finish reason length, a beginning of the text), shed (503 with Retry-After), ended
(503 within an answer).

A run in which mica had ended before the neighbour began, or that the script could not do, is not counted; the
script then ends with 1. A run counts as pressed if less than twice the mark of the governor (2 % of the
limit, from 8 to 512 MiB) was left, without page cache that can be dropped, or if mica said that it yields
memory. A small model is quick: give it more --tokens, or few runs are pressed. --only N does run N alone.
OPTIONS go to every run of mica. Needs root, a C compiler and a memory controller, v1 or v2.
"""
import argparse
import json
import math
import mmap
import pathlib
import random
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import time

import cage
import peers
import pressed_server
import prompts
from cage import MIB, Cage, Started, mib

MOMENTS = ("load", "prompt", "answer", "chat")
QUESTIONS = (200, 120, 300, 60)  # tokens of those of a conversation
LIMITS = (300 * MIB, 3072 * MIB)
RATES = (20, 800)  # MB/s
CLASSES = ((20, 80), (80, 250), (250, 801))
ROOM = 40 * MIB  # that a limit has above the peak of a run alone

# A text that depends on logits: the likeliest token each time, and of models with random weights, which would
# repeat one, the likeliest that is not in the text. A conversation that goes on has no sampler to restore.
FIXED = ["-ctk", "f16", "-ctv", "f16", "--temp", "0", "--ignore-eos"]
NO_REPEATS = ["--presence-penalty", "100", "--repeat-last-n", "4096"]

# Touches a byte of each page of an amount of memory, at a rate. Its facts are in a shared page: bytes that
# were touched, and the times (CLOCK_MONOTONIC, ns) when it began, had all, and had freed it.
NEIGHBOUR = r"""
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct facts { volatile uint64_t bytes, begun, full, freed; };

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns) {
  const struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0) == EINTR) {}
}

int main(int count, char** words) {  // neighbour FACTS BYTES STEP BYTES_PER_SECOND HOLD_MS
  if (count != 6) return 2;
  const uint64_t bytes = strtoull(words[2], 0, 10), step = strtoull(words[3], 0, 10);
  const uint64_t hold = strtoull(words[5], 0, 10);
  const double rate = strtod(words[4], 0);
  const int file = open(words[1], O_RDWR);
  if (file < 0) return 3;
  struct facts* facts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  volatile char* memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (facts == MAP_FAILED || memory == MAP_FAILED) return 4;
  madvise((void*)memory, bytes, MADV_NOHUGEPAGE);  // else a touch could take 2 MiB
  const uint64_t begun = facts->begun = now();
  for (uint64_t at = 0; at < bytes;) {
    const uint64_t end = bytes - at > step ? at + step : bytes;
    for (; at < end; at += 4096) memory[at] = 1;
    facts->bytes = at;
    if (at < bytes) sleep_until(begun + (uint64_t)((double)at / rate * 1e9));
  }
  facts->full = now();
  sleep_until(facts->full + hold * 1000000u);
  munmap((void*)memory, bytes);
  facts->freed = now();
  return 0;
}
"""


class Neighbour:
    """Facts of a neighbour that runs in a cage."""

    def __init__(self, bench, group, wanted):
        path = bench.folder / "neighbour.shared"
        path.write_bytes(bytes(mmap.PAGESIZE))
        with open(path, "r+b") as file:
            self.shared = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.wanted, self.resident = wanted, None
        self.process = Started(bench.starter, group, [
            bench.neighbour,
            str(path),
            str(wanted["bytes"]),
            str(wanted["step_bytes"]),
            str(wanted["bytes_per_second"]),
            str(wanted["hold_ms"])
        ], bench.folder, "neighbour")

    def facts(self):
        return dict(zip(("bytes", "begun", "full", "freed"), struct.unpack("4Q", self.shared[:32])))

    def look(self):
        """Once it has all, checks that the bytes are resident."""
        if self.resident is None and self.facts()["full"] and not self.facts()["freed"]:
            try:
                statm = pathlib.Path(f"/proc/{self.process.pid()}/statm").read_text().split()
            except OSError:
                return
            self.resident = int(statm[1]) * mmap.PAGESIZE
            if not self.facts()["freed"] and self.resident < self.wanted["bytes"]:
                raise RuntimeError(f"the neighbour says that it has {self.wanted['bytes']} bytes, and "
                                   f"{self.resident} are resident")


def stretched(part, low, high):
    """From low to high, with equal chances for equal ratios."""
    return low * (high / low)**part


class Command:
    """A command of mica: the words before the session, and what it gets on stdin."""

    def __init__(self, options, bench, moment, prompt_tokens, has_session, budget):
        self.moment, self.has_session, self.budget = moment, has_session, budget
        self.key = (moment if moment == "chat" else prompt_tokens, moment
                    in ("load", "prompt"), has_session, budget)
        self.text = ""
        if moment == "chat":
            count = max(options.tokens // 4, 16)
            # An answer of a file of mica synth, " t123 t45", has more tokens when it is read again.
            tokens = sum(QUESTIONS) + len(QUESTIONS) * (9 * count + 64)
            self.questions = [prompts.of_tokens(n, seed=n) for n in QUESTIONS]
            self.text = "\n".join(self.questions) + "\n"
            self.words = [options.mica, "chat", options.model, "-n", str(count), "--json"]
        else:
            prompt = bench.folder / f"prompt-{prompt_tokens}.txt"
            prompt.write_text(prompts.of_tokens(prompt_tokens))
            count = options.tokens // (2 if moment in ("load", "prompt") else 1)
            self.words = [options.mica, "complete", options.model, "-f", str(prompt), "-n", str(count),
                          *NO_REPEATS]
            tokens = prompt_tokens + count
        self.context = -(-tokens // 16) * 16 + 16
        self.words += ["-c", str(self.context), *FIXED]
        if budget is not None:
            self.words += ["--memory", str(budget)]
        self.words += options.mica_options
        self.session = bench.folder / "session"
        if has_session:
            self.words += ["--session", str(self.session)]

    def start(self, bench, group, words=None, text=None):
        return Started(bench.starter, group, self.words if words is None else words, bench.folder, "mica",
                       self.text if text is None else text)

    def without(self, *flags):
        """The words without some flags and their values."""
        words, rest = [], iter(self.words)
        for word in rest:
            if word in flags:
                next(rest)
            else:
                words.append(word)
        return words


def answers_of(out):
    """The objects of a chat with --json that are answers."""
    objects = []
    for line in out.decode().splitlines():
        if line.strip():
            objects.append(json.loads(line))
    return [one for one in objects if "content" in one]


def contents(answers):
    return [(one.get("reasoning_content", ""), one["content"]) for one in answers]


def said_by(command, mica):
    """The text of a run, or the contents of its answers."""
    return contents(answers_of(mica.out())) if command.moment == "chat" else mica.out()


def ends_of(out):
    """What stdout may have meant: mica ends a line that an answer does not end."""
    return [out, out[:-1]] if out.endswith(b"\n") else [out]


def sentence_of(err):
    """The last line of mica that is not the governor's."""
    lines = [
        line for line in err.splitlines()
        if line.startswith("mica: ") and not line.startswith("mica: governor")
    ]
    return lines[-1] if lines else ""


class Bench:
    """Programs, the files of the runs, and what is known of commands alone."""

    def __init__(self, options, folder):
        self.options, self.folder = options, pathlib.Path(folder)
        self.starter = cage.compiled(cage.STARTER, self.folder / "starter")
        self.neighbour = cage.compiled(NEIGHBOUR, self.folder / "neighbour")
        self.known = {}
        self.check_neighbour()

    def check_neighbour(self):
        """A neighbour alone has capacity for the maximum that one is given, and keeps its rate."""
        limit = LIMITS[0]
        wanted = {
            "bytes": top_of(limit), "step_bytes": MIB, "bytes_per_second": RATES[1] * 1e6, "hold_ms": 300
        }
        with Cage(limit) as group:
            alone = Neighbour(self, group, wanted)
            while alone.process.running():
                alone.look()
                time.sleep(0.005)
            facts, kills = alone.facts(), group.facts()["oom_kills"]
        if alone.process.exit != 0 or kills or alone.resident is None:
            raise RuntimeError(f"a neighbour alone ended with {alone.process.exit}, {kills} kills: {facts}")
        self.neighbour_rate = wanted["bytes"] / (facts["full"] - facts["begun"]) * 1e9

    def floor(self, command):
        """Bytes of the smallest streamed run of a command, with the steps to which a governor shrinks."""
        words = command.without("-f", "-n", "--session", "--memory", "--temp", "--presence-penalty",
                                "--repeat-last-n", "--governor", "--pace")
        words = [word for word in words if word not in ("--ignore-eos", "--json")]
        words[1] = "plan"
        words += ["--weights", "streamed", "--chunk", "64", "--memory", "1MiB", "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
        plan = json.loads(done.stdout)
        if "least" not in plan:
            raise RuntimeError(
                f"{shlex.join(words)}: exit code {done.returncode}, no smallest budget: {done.stderr}")
        return plan["least"]["peak_bytes"]

    def run_alone(self, command):
        command.session.unlink(missing_ok=True)
        cage.drop(self.options.model)
        with Cage(None) as group:
            mica = command.start(self, group)
            used = 0
            while mica.running():
                used = max(used, group.use()[1])
                time.sleep(0.01)
            facts = group.facts()
        if mica.exit != 0:
            raise RuntimeError(f"alone {shlex.join(command.words)}: exit code {mica.exit}\n{mica.err()}")
        return mica, {
            "peak_bytes": facts["peak_bytes"], "used_bytes": used, "rss_bytes": mica.rss_bytes,
            "seconds": mica.seconds, "times_at_limit": facts["times_at_limit"]
        }

    def alone(self, command):
        """Text, peak and times of a command alone; measured once."""
        if command.key not in self.known:
            mica, facts = self.run_alone(command)
            facts["floor_bytes"] = self.floor(command)
            if command.moment == "chat":
                answers = answers_of(mica.out())
                if len(answers) != len(QUESTIONS):
                    raise RuntimeError(
                        f"alone {shlex.join(command.words)}: {len(answers)} answers\n{mica.err()}")
                text = contents(answers)
                prompt = sum(one["timings"]["prompt_ms"] for one in answers) / 1e3
                answer = sum(one["timings"]["predicted_ms"] for one in answers) / 1e3
            else:
                text = mica.out()
                parts = re.search(r"prompt (\d+) tokens?, ([0-9.]+) t/s; answer (\d+) tokens?, ([0-9.]+) t/s",
                                  mica.err())
                if not parts or not text:
                    raise RuntimeError(
                        f"alone {shlex.join(command.words)}: no text or no times\n{mica.err()}")
                prompt, answer = (float(parts[a]) / float(parts[b]) for a, b in ((1, 2), (3, 4)))
            facts.update(prompt_seconds=prompt, answer_seconds=answer,
                         load_seconds=max(facts["seconds"] - prompt - answer, 0.05))
            self.known[command.key] = text, facts
        return self.known[command.key]

    def is_stable(self, command):
        """Whether the command alone writes the same text once more."""
        text, _ = self.alone(command)
        mica, _ = self.run_alone(command)
        return text == said_by(command, mica)


def top_of(limit):
    """The maximum of bytes that a neighbour can have in a group alone: page tables count too."""
    return (limit - 4 * MIB) // 513 * 512 // mmap.PAGESIZE * mmap.PAGESIZE


def draw(bench, number):
    """The command and the neighbour of a run. All that is random comes from the seed and the number."""
    options = bench.options
    rng = random.Random(f"{options.seed}/{number}")
    moment, gives = MOMENTS[number % 4], number // 4 % 2 == 0
    prompt = rng.randrange(500, max(options.prompt, 500) + 1, 500)
    has_session = rng.random() < 0.5 if moment in ("prompt", "answer") else moment == "chat"
    budget_part = rng.choice((None, None, None, None, None, None, 0.2, 0.5))
    limit_at, rate_at, step_at, amount_at, start_at = (rng.random() for _ in range(5))
    smooth, hold = rng.random() < 0.5, rng.uniform(2, 10)

    def command(budget):
        tokens = prompt if moment == "prompt" else 64
        return Command(options, bench, moment, tokens, has_session, budget)

    chosen = command(None)
    text, alone = bench.alone(chosen)
    if budget_part is not None:  # coarse, so that commands alone are measured once
        floor = alone["floor_bytes"]
        chosen = command(
            math.ceil((floor + budget_part * max(alone["peak_bytes"] - floor, 0)) / (8 * MIB) + 1) * 8 * MIB)
        same, alone = bench.alone(chosen)
        if same != text:
            raise RuntimeError(f"{shlex.join(chosen.words)}: another text than without a budget")
    peak, floor = alone["peak_bytes"], alone["floor_bytes"]
    load, read, write = (alone[key] for key in ("load_seconds", "prompt_seconds", "answer_seconds"))
    after = {
        "load": start_at * load, "prompt": load + 0.9 * start_at * read, "answer": 0.8 * start_at * write,
        "chat": load + 0.8 * start_at * (read + write)
    }[moment]  # of an answer: after its first byte
    rest = write - after if moment == "answer" else load + read + write - after
    # The group is to be full in the first half of the time that is left.
    low = max(LIMITS[0], peak + ROOM)
    slowest = min(max(RATES[0], (low - peak) / (rest / 2) / 1e6), RATES[1])
    rate = stretched(rate_at, slowest, RATES[1])
    limit = int(stretched(limit_at, low, max(low, min(LIMITS[1], peak + rate * 1e6 * rest / 2))))
    # Shorter pauses than half a millisecond are not exact.
    step = stretched(step_at, max(2**16, rate * 500), 2**20) if smooth else 5 * MIB + step_at * 35 * MIB
    top, margin = top_of(limit), 16 * MIB + limit // 40
    if gives:
        most = max(top - floor - margin, MIB)
        least = min(max(top - peak, MIB), most)
    else:
        most, least = top, top - floor // 2
    pages = int(least + amount_at * (most - least)) // mmap.PAGESIZE
    neighbour = {
        "bytes": pages * mmap.PAGESIZE, "step_bytes": int(step) // mmap.PAGESIZE * mmap.PAGESIZE,
        "bytes_per_second": rate * 1e6, "hold_ms": int(hold * 1e3), "smooth": smooth
    }
    facts = {
        "run": number, "moment": moment, "gives": gives, "limit_bytes": limit, "neighbour": neighbour,
        "start_seconds": after, "rest_seconds": rest, "session": has_session, "alone": alone,
        "command": shlex.join(chosen.words)
    }
    return chosen, text, facts


def press(bench, command, facts):
    """Runs mica and its neighbour in one group; returns mica, and adds what was seen to facts."""
    command.session.unlink(missing_ok=True)
    cage.drop(bench.options.model)
    limit, patience = facts["limit_bytes"], 120 + 40 * facts["alone"]["seconds"]
    neighbour, first, used, looked, pressed_at = None, None, 0, 0.0, None
    at_first_byte = facts["moment"] == "answer"
    with Cage(limit) as group:
        mica = command.start(bench, group)
        stopped = False
        try:
            while mica.running():
                now = time.monotonic() - mica.begin
                if first is None and mica.paths["out"].stat().st_size:
                    first = now
                if neighbour is None and (not at_first_byte or first is not None):
                    if now >= facts["start_seconds"] + (first if at_first_byte else 0):
                        neighbour = Neighbour(bench, group, facts["neighbour"])
                        facts["started_seconds"], facts["after_first_byte"] = now, first is not None
                if neighbour is not None:
                    neighbour.look()
                    neighbour.process.running()
                if now - looked > 0.02:
                    used, looked = max(used, group.use()[1]), now
                if now > patience:
                    stopped = True
                    mica.stop()
                time.sleep(0.005 if neighbour is None or neighbour.process.exit is not None else 0.002)
            seen = group.facts()
            if neighbour is not None:  # what it does after mica has ended says nothing of mica
                late = time.monotonic() + 2  # the end of one that was killed is seen a moment later
                while seen["oom_kills"] > (mica.exit
                                           == -9) and neighbour.process.running() and time.monotonic() < late:
                    time.sleep(0.01)
                had = neighbour.facts()
                facts["neighbour"]["alive_at_end"] = neighbour.process.running()
                neighbour.process.stop()
                facts["neighbour"].update(
                    exit=None if facts["neighbour"]["alive_at_end"] else neighbour.process.exit,
                    touched_bytes=had["bytes"], was_full=bool(had["full"]),
                    seconds_to_full=(had["full"] - had["begun"]) / 1e9 if had["full"] else None)
        finally:
            mica.stop()
            if neighbour is not None:
                neighbour.process.stop()
    err = mica.err()
    mark = min(max(limit // 50, 8 * MIB), 512 * MIB)
    governor = [line for line in err.splitlines() if line.startswith("mica: governor")]
    facts.update(seen, seconds=mica.seconds, exit=mica.exit, stopped=stopped, used_bytes=used,
                 left_bytes=limit - used, governor=governor, stderr=err[-4000:],
                 pressed=limit - used < 2 * mark or bool(governor) or seen["oom_kills"] > 0)
    return mica


def resumes_text(bench, command, text, out):
    """What is wrong with a text that goes on after an end, with the saved file; empty if nothing is."""
    saved = command.session.read_bytes() if command.session.exists() else None

    def again(words, what):
        if saved is None:
            command.session.unlink(missing_ok=True)
        else:
            command.session.write_bytes(saved)
        with Cage(None) as group:
            mica = command.start(bench, group, words)
            mica.wait(600)
        if mica.exit != 0:
            raise Wrong(f"{what} ended with {mica.exit}: {sentence_of(mica.err())}")
        return mica.out()

    try:
        if again(command.words, "the same command with its session") != text:
            return "the same command with its session writes another text"
        if saved is None or not out.strip():
            return ""
        longer = [*command.without("-f"), "-c", str(2 * command.context)]  # for another answer
        rest = again(longer, "the command without a prompt, with its session")
        whole = text[:-1] if text.endswith(b"\n") else text
        if not any((begin + rest).startswith(whole) for begin in ends_of(out)):
            return "the text so far and the text that goes on are not the text alone"
    except Wrong as wrong:
        return str(wrong)
    return ""


class Wrong(Exception):
    """Something that mica did, and should not have done."""


def resumes_chat(bench, command, text, answers):
    """The same for a conversation: /regen answers the question again whose answer was cut."""
    whole = 0
    while whole < len(answers) and contents(answers)[whole] == text[whole]:
        whole += 1
    if whole == len(QUESTIONS):
        return ""
    cut, later = answers[whole:whole + 1], answers[whole + 1:]
    lines = ["/undo"] * sum(1 for one in later if one["tokens_predicted"])
    if cut and cut[0]["tokens_predicted"]:
        lines.append("/regen")
    else:
        lines.append(command.questions[whole])
    lines += command.questions[whole + 1:]
    with Cage(None) as group:
        mica = command.start(bench, group, text="\n".join(lines) + "\n")
        mica.wait(600)
    if mica.exit != 0:
        return f"the conversation with its session ended with {mica.exit}: {sentence_of(mica.err())}"
    if contents(answers_of(mica.out())) != text[whole:]:
        return f"after {whole} whole answers the conversation goes on with other ones"
    return ""


def is_beginning(command, text, mica):
    if command.moment != "chat":
        return any(text.startswith(out) for out in ends_of(mica.out()))
    answers = contents(answers_of(mica.out()))
    at = next((i for i, (a, b) in enumerate(zip(answers, text)) if a != b), len(answers))
    return at == len(answers) or text[at][1].startswith(answers[at][1])


def judge(bench, command, text, mica, facts):
    """(outcome, reason)"""
    neighbour = facts["neighbour"]
    if facts["stopped"]:
        return "other", f"mica had not ended after {facts['seconds']:.0f} s"
    if facts["oom_kills"]:
        killed = [name for name, code in (("mica", mica.exit), ("neighbour", neighbour.get("exit")))
                  if code == -9]
        after = "" if mica.exit != 0 or said_by(command, mica) == text else "; mica wrote another text"
        return "killed", (" and ".join(killed) or "another process") + after
    if mica.exit == -9 or neighbour.get("exit") not in (None, 0):
        raise RuntimeError(
            f"mica ended with {mica.exit}, the neighbour with {neighbour.get('exit')}, and the "
            "kernel has killed nothing")
    if "started_seconds" not in facts:
        if mica.exit == 0:
            raise RuntimeError("mica ended before its neighbour began")
        return "other", f"exit code {mica.exit} before the neighbour began: {sentence_of(mica.err())}"
    if mica.exit not in (0, 4):
        return "other", f"exit code {mica.exit}: {sentence_of(mica.err()) or mica.err()[-200:]}"
    is_cut = "other processes took the memory" in sentence_of(mica.err())  # the context became shorter
    if mica.exit == 0 and not is_cut:
        if said_by(command, mica) == text:
            return "same", ""
        if not bench.is_stable(command):
            raise RuntimeError("the command alone writes another text each time")
        return "other", "another text"
    if not (sentence := sentence_of(mica.err())):
        return "other", "exit code 4 without a sentence"
    if not is_beginning(command, text, mica):
        return "other", f"exit code {mica.exit} after another text: {sentence}"
    wrong = ""
    if command.moment == "chat":
        wrong = resumes_chat(bench, command, text, answers_of(mica.out()))
    elif command.has_session:
        wrong = resumes_text(bench, command, text, mica.out())
    return ("other", f"ended, and {wrong} ({sentence})") if wrong else ("ended", sentence)


def do_serve(bench, number):
    facts = pressed_server.draw(bench, number, stretched, top_of, RATES, LIMITS, ROOM)
    pressed_server.press(bench, facts, lambda group, wanted: Neighbour(bench, group, wanted))
    facts["outcome"], facts["reason"] = pressed_server.judge(facts, sentence_of(facts["stderr"]))
    return facts


def do_run(bench, number):
    if bench.options.serve:
        return do_serve(bench, number)
    command, text, facts = draw(bench, number)
    for _ in range(3):
        mica = press(bench, command, facts)
        if mica.exit != 0 or "started_seconds" in facts:
            break
        facts["start_seconds"] /= 2  # it was quicker than alone
    facts["outcome"], facts["reason"] = judge(bench, command, text, mica, facts)
    return facts


COLUMNS = ("run", "moment", "amount", "limit, MiB", "peak alone", "minimum", "neighbour has, MiB", "rate",
           "begins", "peak of the group", "least left without page cache",
           "lines of the governor", "outcome")


def row(f):
    """Cells of COLUMNS."""
    n = f["neighbour"]
    whole = [f"{size / MIB:,.0f}" for size in (f["limit_bytes"], f["alone"]["peak_bytes"],
                                               f["alone"]["floor_bytes"])]
    kind = "smooth" if n["smooth"] else f"bursts of {n['step_bytes'] / MIB:.0f} MiB"
    return [f["run"], f["moment"], "give" if f["gives"] else "take", *whole,
            f"{n.get('touched_bytes', 0) / MIB:,.0f} of {n['bytes'] / MIB:,.0f}",
            f"{n['bytes_per_second'] / 1e6:.0f} MB/s, {kind}",
            f"{f.get('started_seconds', 0):.1f} of {f['seconds']:.1f} s", f"{f['peak_bytes'] / MIB:,.0f}",
            f"{f['left_bytes'] / MIB:,.0f}", len(f["governor"]),
            ": ".join(filter(None, ["" if f["pressed"] else "not pressed", f["outcome"], f["reason"]]))]


def counts(results):
    of = {name: [r for r in results if r["outcome"] == name] for name in ("same", "ended", "killed", "other")}
    killed = {who: sum(who in r["reason"] for r in of["killed"]) for who in ("mica", "neighbour")}
    return (
        f"| {len(results)} | {sum(r['pressed'] for r in results)} | {len(of['same'])} | {len(of['ended'])} | "
        f"{killed['mica']} | {killed['neighbour']} | {len(of['other'])} |")


def summary(results):
    lines = [
        "| runs | all | pressed | same | ended | mica killed | neighbour killed | other |",
        "|---|---|---|---|---|---|---|---|"
    ]
    groups = [("all", results)]
    groups += [(name, [r for r in results if r["gives"] == gives])
               for name, gives in (("give: mica can live beside it", True), ("take: both cannot live", False))
               ]
    moments = sorted({r["moment"] for r in results}, key=lambda name: (*MOMENTS, name).index(name))
    groups += [(name, [r for r in results if r["moment"] == name]) for name in moments]
    groups += [(f"{low} to {high // 10 * 10} MB/s",
                [r for r in results if low <= r["neighbour"]["bytes_per_second"] / 1e6 < high])
               for low, high in CLASSES]
    groups += [(name, [r for r in results if r["neighbour"]["smooth"] == smooth])
               for name, smooth in (("smooth", True), ("bursts", False))]
    lines += [f"| {name} {counts(some)}" for name, some in groups if some]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=48, help="of an answer")
    parser.add_argument("--prompt", type=int, default=3000, help="the maximum of its tokens")
    parser.add_argument("--serve", action="store_true", help="a server with clients, in place of commands")
    cage.add_run_options(parser, runs=200)
    options = cage.options_after_dashes(parser, sys.argv[1:])
    quiet = peers.Stolen()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="pressure-") as folder:
        bench = Bench(options, folder)
        results, not_counted = cage.numbered_runs(options, COLUMNS, lambda number: do_run(bench, number), row)
    others, steal = quiet.end()
    print(f"\n{summary(results)}")
    if options.serve:
        print(f"\nrequests: {request_counts(results)}")
    print(f"\n{len(not_counted)} runs not counted; a neighbour alone touches "
          f"{bench.neighbour_rate / 1e6:.0f} MB/s when {RATES[1]} are wanted; cores of others {others:.2f}, "
          f"stolen {steal:.2f}")
    for r in results:
        if r["outcome"] in ("killed", "other"):
            print(f"again: bench/pressure.py {shlex.join(again_words(options, r['run']))}")
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "machine": peers.cpu_name(), "command": shlex.join(
                        ["bench/pressure.py", *sys.argv[1:]]), "model": pathlib.Path(options.model).name,
                    "neighbour_bytes_per_second": bench.neighbour_rate, "cores_of_others": round(others, 3),
                    "cores_stolen": round(steal, 3), "not_counted": not_counted, "results": results
                }, indent=1) + "\n")
    sys.exit(1 if not_counted else 0)


def request_counts(results):
    names = list(dict.fromkeys(name for r in results for name in r["requests"]))
    return ", ".join(f"{sum(r['requests'].get(name, 0) for r in results)} {name}" for name in names)


def again_words(options, number):
    values = {"seed": options.seed, "only": number, "tokens": options.tokens, "prompt": options.prompt}
    words = [options.model, *cage.flags_of(values)] + (["--serve"] if options.serve else [])
    return words + (["--", *options.mica_options] if options.mica_options else [])


if __name__ == "__main__":
    main()
