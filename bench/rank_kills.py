#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills one rank of a running answer with SIGKILL, again and again, at random moments.

  bench/rank_kills.py --count 100

Each time: the other ranks end by themselves, and their time is taken; rank 0, if it was not the one, says why
in a sentence; the text so far and that of the session, continued on one rank fewer, are the text of one process.
Needs Open MPI.
"""
import argparse
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SENTENCE = "another rank is gone, or did not answer in time"
NOT_MET = "the ranks did not meet within 30 s"  # MPI was starting, or ending


def ranks_of(launcher):
    """Process numbers of the ranks that this mpirun has started, by rank."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) != launcher:
                continue
            for word in (entry / "environ").read_bytes().split(b"\0"):
                if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                    found[int(word.split(b"=")[1])] = int(entry.name)
        except (OSError, IndexError):
            pass  # it has just ended
    return found


def runs(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Kills:

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.expected = self.text(self.words("-n", str(2 * args.tokens)))
        begun = time.monotonic()
        self.text(self.on_ranks(args.ranks, self.words("-n", str(args.tokens))))
        self.whole = time.monotonic() - begun
        self.seconds, self.problems = [], []
        self.moments = {"while MPI starts or ends": 0, "before the first token": 0, "within the answer": 0, "after its end": 0}

    def words(self, *more):
        return [
            self.args.program, "complete", self.args.model, "-p", "Once upon a time", "-c", "2048",
            "--temp", "0", "--ignore-eos", "-q", "-t", "1", *more
        ]

    def on_ranks(self, n, words):
        return [
            "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--enable-recovery",
            "-n",
            str(n), *words
        ]

    @staticmethod
    def text(words):
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.rstrip("\n")

    def turn(self, number, chance):
        session = self.folder / f"{number}.mica"
        words = self.on_ranks(self.args.ranks,
                              self.words("-n", str(self.args.tokens), "--session", str(session)))
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            ranks = {}
            while len(ranks) < self.args.ranks and run.poll() is None:
                time.sleep(0.01)
                ranks = ranks_of(run.pid)
            time.sleep(self.whole * chance.uniform(0.15, 0.9))  # the ranks find each other first
            victim = chance.randrange(self.args.ranks)
            others = [pid for rank, pid in ranks.items() if rank != victim]
            over = not runs(ranks[victim])
            if not over:
                os.kill(ranks[victim], 9)
            killed = time.monotonic()
            while any(runs(pid) for pid in others) and time.monotonic() < killed + 40:
                time.sleep(0.01)
            seconds = time.monotonic() - killed
            hung = [pid for pid in others if runs(pid)]
            for pid in hung:
                os.kill(pid, 9)
            out, err = run.communicate()
        out = out.rstrip("\n")
        say = lambda problem: self.problems.append(f"{number}: rank {victim} killed: {problem}")
        if hung:
            say("others did not end in 40 s")
        complete = len(out) > 0 and session.exists() and SENTENCE not in err and "is gone" not in err
        met = NOT_MET not in err
        self.moments["while MPI starts or ends" if not met else "after its end" if over or complete else
                     "within the answer" if out else "before the first token"] += 1
        if met and not over and not complete:
            self.seconds.append(seconds)
            if victim != 0 and SENTENCE not in err:
                say(f"no sentence: {err[-300:]!r}")
        if not self.expected.startswith(out):
            say("another text before it")
        # Rank 0 saves; without it, or before a token, the prompt is read again.
        again = self.on_ranks(self.args.ranks - 1, self.words("-n", "20", "--session", str(session)))
        if session.exists():
            again = [word for word in again if word not in ("-p", "Once upon a time")]
        else:
            out = ""
        rest = subprocess.run(again, capture_output=True, text=True, check=False)
        whole = out + rest.stdout.rstrip("\n")
        if rest.returncode != 0:
            say(f"the session does not go on: {rest.stderr[-300:]!r}")
        elif whole.replace("\n", "") != self.expected.replace("\n", "")[:len(whole.replace("\n", ""))]:
            say(f"another text after it: {whole[-60:]!r}")
        session.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/release/mica")
    parser.add_argument("--model", default="examples/models/fairy.gguf")
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--tokens", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.program = str(pathlib.Path(args.program).resolve())
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        kills = Kills(args, pathlib.Path(folder))
        for number in range(args.count):
            kills.turn(number, chance)
    print(f"{args.count} kills: " + ", ".join(f"{n} {moment}" for moment, n in kills.moments.items()))
    if kills.seconds:
        print(
            f"the others ended after {statistics.median(kills.seconds):.2f} s (median), {max(kills.seconds):.2f} s at most"
        )
    print(f"problems: {len(kills.problems)}")
    for problem in kills.problems:
        print(" ", problem)
    sys.exit(1 if kills.problems else 0)


if __name__ == "__main__":
    main()
