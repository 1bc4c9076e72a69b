# SPDX-License-Identifier: Apache-2.0
"""Runs of bench/pressure.py --serve: a server that answers clients, beside a neighbour that takes the memory
of their control group."""
import http.client
import json
import math
import mmap
import random
import shlex
import subprocess
import tempfile
import threading
import time
import urllib.parse

import cage
import prompts
from cage import MIB, Cage, Started

CLIENTS = 3
SHARED = 64  # first tokens that all prompts have in common
QUESTIONS = (24, 72, 40, 96, 56)  # tokens behind them
RECOVERY = 180  # seconds after the neighbour in which each client has to get an answer
CONTEXT = 512


class Command:
    """A server on a free port."""

    def __init__(self, options, state=None):
        self.words = [options.mica, "serve", options.model, "--port", "0", "-c", str(CONTEXT), "-ctk", "f16",
                      "-ctv", "f16", "--parallel", "4"]
        if state is not None:
            self.words += ["--state", str(state)]
        self.words += options.mica_options
        self.plan = [options.mica, "plan", options.model, "-c", str(CONTEXT), "-ctk", "f16", "-ctv", "f16",
                     "--weights", "streamed", "--chunk", "64", "--memory", "1MiB", "--json"]

    def floor(self):
        """Bytes of the smallest streamed run."""
        done = subprocess.run(self.plan, capture_output=True, text=True)
        plan = json.loads(done.stdout)
        if "least" not in plan:
            raise RuntimeError(f"{shlex.join(self.plan)}: no smallest budget: {done.stderr}")
        return plan["least"]["peak_bytes"] + 24 * MIB  # HTTP, and the sampler of each answer


def bodies(tokens):
    """The requests of all clients. The text depends on logits, as in the other runs."""
    first = prompts.of_tokens(SHARED)
    return [{
        "prompt": first + prompts.of_tokens(n, seed=n), "n_predict": tokens, "temperature": 0,
        "presence_penalty": 100, "repeat_last_n": CONTEXT, "ignore_eos": True
    } for n in QUESTIONS]


class Gone(Exception):
    """The connection ended."""


def ask(url, body, stream):
    """(status, text, whether it was cut, seconds to wait)"""
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
    try:
        connection.request("POST", "/completion", json.dumps(dict(body, stream=stream)),
                           {"Content-Type": "application/json"})
        reply = connection.getresponse()
        wait = float(reply.getheader("Retry-After") or 0)
        if reply.status != 200 or not stream:
            value = json.loads(reply.read())
            if reply.status != 200:
                return reply.status, "", False, wait
            return 200, value["content"], bool(value.get("truncated")), 0
        text, last = "", {}
        for line in reply:
            if line.startswith(b"data: "):
                last = json.loads(line[6:])
                if "error" in last:
                    return int(last["error"].get("code", 500)), text, False, 0
                text += last["content"]
        if not last.get("stop"):
            raise Gone("the stream has no end")
        return 200, text, bool(last.get("truncated")), 0
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Gone(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()


class Client(threading.Thread):
    """Asks in a loop. Counts: same, cut (a beginning), shed (503, and when to ask again), ended (503 within
    an answer), busy (429), wrong."""

    def __init__(self, url, requests, texts, number):
        super().__init__(daemon=True)
        self.url, self.requests, self.texts = url, requests, texts
        self.rng = random.Random(number)
        self.counts = dict.fromkeys(("same", "cut", "shed", "ended", "busy", "gone", "wrong"), 0)
        self.wrong, self.done, self.last_same, self.gone = [], threading.Event(), 0.0, ""

    def run(self):
        while not self.done.is_set():
            i, stream = self.rng.randrange(len(self.requests)), self.rng.random() < 0.5
            try:
                status, text, cut, wait = ask(self.url, self.requests[i], stream)
            except Gone as error:
                self.counts["gone"] += 1
                self.gone = str(error)
                self.done.wait(0.2)
                continue
            kind = self.kind_of(status, text, cut, wait, self.texts[i])
            self.counts[kind] += 1
            if kind == "same":
                self.last_same = time.monotonic()
            if kind == "wrong":
                self.wrong.append({"status": status, "text": text, "expected": self.texts[i], "cut": cut})
            if kind in ("shed", "ended", "busy"):
                self.done.wait(min(max(wait, 0.1), 2))

    @staticmethod
    def kind_of(status, text, cut, wait, expected):
        if status == 200 and text == expected:
            return "same"
        if status == 200 and cut and expected.startswith(text):
            return "cut"
        if status == 503 and expected.startswith(text):
            return "shed" if wait and not text else "ended"
        return "busy" if status == 429 else "wrong"


class Server:
    """A server in a group, and its clients."""

    def __init__(self, bench, group, command):
        self.mica = Started(bench.starter, group, command.words, bench.folder, "mica")
        self.url, self.clients = None, []

    def wait_until_ready(self, seconds):
        """False where it ended before it listened."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.mica.running():
            line = self.mica.out().split(b"\n")[0]
            if line.endswith(b"}"):
                self.url = urllib.parse.urlsplit(json.loads(line)["url"])
                return True
            time.sleep(0.01)
        return False

    def begin_clients(self, requests, texts, number):
        self.clients = [Client(self.url, requests, texts, f"{number}/{i}") for i in range(CLIENTS)]
        for client in self.clients:
            client.start()

    def end_clients(self):
        for client in self.clients:
            client.done.set()
        for client in self.clients:
            client.join(150)
        return {name: sum(client.counts[name] for client in self.clients)
                for name in self.clients[0].counts} if self.clients else {}

    def all_answered_since(self, moment):
        return all(client.last_same > moment for client in self.clients)


def alone(bench):
    """The texts of all requests, the peak with clients, and the time of a request; measured once."""
    if "serve" in bench.known:
        return bench.known["serve"]
    requests, command = bodies(bench.options.tokens), Command(bench.options)
    cage.drop(bench.options.model)
    with Cage(None) as group:
        server = Server(bench, group, command)
        try:
            if not server.wait_until_ready(120):
                raise RuntimeError(f"alone {shlex.join(command.words)}: not ready\n{server.mica.err()}")
            texts = []
            for body in requests:
                status, text, _, _ = ask(server.url, body, False)
                if status != 200 or not text:
                    raise RuntimeError(f"alone: status {status}, '{text}'\n{server.mica.err()}")
                texts.append(text)
            server.begin_clients(requests, texts, "alone")
            used, end = 0, time.monotonic() + 5
            while time.monotonic() < end:
                used = max(used, group.use()[1])
                time.sleep(0.02)
            counts = server.end_clients()
        finally:
            server.mica.stop()
    if counts["same"] != sum(counts.values()):
        raise RuntimeError(f"alone: {counts}")
    bench.known["serve"] = requests, texts, {"peak_bytes": used, "floor_bytes": command.floor(),
                                             "requests": counts["same"]}
    return bench.known["serve"]


def draw(bench, number, stretched, top_of, rates, limits, room):
    """Facts of a run: all that is random comes from the seed and the number."""
    _, _, known = alone(bench)
    rng = random.Random(f"{bench.options.seed}/serve/{number}")
    gives, loading = number % 2 == 0, number % 4 == 3
    limit_at, rate_at, step_at, amount_at = (rng.random() for _ in range(4))
    smooth, hold, start = rng.random() < 0.5, rng.uniform(1, 3), rng.uniform(0.3, 2)
    peak, floor = known["peak_bytes"], known["floor_bytes"]
    low = max(limits[0], peak + room)
    limit = int(stretched(limit_at, low, min(limits[1], 1.6 * low)))
    rate = stretched(rate_at, 40, rates[1])
    step = stretched(step_at, max(2**16, rate * 500), 2**20) if smooth else 5 * MIB + step_at * 35 * MIB
    top = top_of(limit)
    if gives:
        most = max(top - floor - 16 * MIB - limit // 40, MIB)
        least = min(max(top - peak, MIB), most)
    else:
        most, least = top, top - floor // 2
    pages = int(least + amount_at * (most - least)) // mmap.PAGESIZE
    return {
        "run": number, "moment": "serve while it loads" if loading else "serve", "gives": gives,
        "limit_bytes": limit, "state": rng.random() < 0.5, "loading": loading,
        "start_seconds": 0.3 * start if loading else start, "alone": known,
        "neighbour": {
            "bytes": pages * mmap.PAGESIZE,
            "step_bytes": math.ceil(step / mmap.PAGESIZE) * mmap.PAGESIZE,
            "bytes_per_second": rate * 1e6, "hold_ms": int(hold * 1e3), "smooth": smooth
        }
    }


def press(bench, facts, make_neighbour):
    """Runs the server, its clients and the neighbour; adds what was seen to facts."""
    requests, texts, _ = alone(bench)
    cage.drop(bench.options.model)
    used, counts, neighbour = 0, {}, None
    with tempfile.TemporaryDirectory(dir=bench.folder) as state, Cage(facts["limit_bytes"]) as group:
        command = Command(bench.options, state if facts["state"] else None)
        facts["command"] = shlex.join(command.words)
        server = Server(bench, group, command)
        try:
            begun = time.monotonic()
            if not facts["loading"] and server.wait_until_ready(120):
                server.begin_clients(requests, texts, facts["run"])
                begun = time.monotonic()
            while server.mica.running() and time.monotonic() - begun < facts["start_seconds"]:
                time.sleep(0.005)
            neighbour = make_neighbour(group, facts["neighbour"])
            facts["started_seconds"] = time.monotonic() - server.mica.begin
            if facts["loading"] and server.wait_until_ready(120):
                server.begin_clients(requests, texts, facts["run"])
            while server.mica.running() and neighbour.process.running():
                neighbour.look()
                used = max(used, group.use()[1])
                time.sleep(0.005)
            late = time.monotonic() + 2  # the end of one that was killed is seen a moment later
            while group.facts()["oom_kills"] and neighbour.process.running() and time.monotonic() < late:
                time.sleep(0.01)
            facts["neighbour"]["alive_at_end"] = neighbour.process.running()
            had = neighbour.facts()
            seen = group.facts()
            neighbour.process.stop()
            facts["neighbour"].update(
                exit=None if facts["neighbour"]["alive_at_end"] else neighbour.process.exit,
                touched_bytes=had["bytes"], was_full=bool(had["full"]))
            over = time.monotonic()
            while server.mica.running() and not server.all_answered_since(over):
                if time.monotonic() - over > RECOVERY:
                    break
                time.sleep(0.02)
            facts["recovery_seconds"] = time.monotonic() - over
            facts["lives"] = server.mica.running()
            facts["answers_again"] = bool(server.clients) and server.all_answered_since(over)
            counts = server.end_clients()
            seen["oom_kills"] = group.facts()["oom_kills"]
        finally:
            server.mica.stop()
            if neighbour is not None:
                neighbour.process.stop()
    err = server.mica.err()
    governor = [line for line in err.splitlines() if line.startswith("mica: governor")]
    facts.update(seen, seconds=server.mica.seconds, used_bytes=used, exit=None if facts["lives"] else
                 server.mica.exit, left_bytes=facts["limit_bytes"] - used, governor=governor,
                 stderr=err[-4000:], requests=counts,
                 wrong=[wrong for client in server.clients for wrong in client.wrong][:3])
    mark = min(max(facts["limit_bytes"] // 50, 8 * MIB), 512 * MIB)
    facts["pressed"] = facts["left_bytes"] < 2 * mark or bool(governor) or facts["oom_kills"] > 0


def judge(facts, sentence):
    """(outcome, reason)"""
    requests, neighbour = facts["requests"], facts["neighbour"]
    counted = ", ".join(f"{n} {name}" for name, n in requests.items() if n)
    if facts["oom_kills"]:
        killed = [name for name, code in (("mica", facts["exit"]), ("neighbour", neighbour.get("exit")))
                  if code == -9]
        return "killed", (" and ".join(killed) or "another process") + f"; {counted}"
    if requests.get("wrong"):
        return "other", f"wrong answers: {counted}"
    if not facts["lives"]:
        if facts["exit"] == 4 and sentence:
            return "ended", f"{counted}: {sentence}"
        return "other", f"exit code {facts['exit']}: {sentence or facts['stderr'][-200:]}"
    if requests.get("gone"):
        return "other", f"connections were cut, and the server lives: {counted}"
    if not facts["answers_again"]:
        return "other", f"not all clients have an answer {facts['recovery_seconds']:.0f} s later: {counted}"
    return "same", f"{counted}, answers again after {facts['recovery_seconds']:.1f} s"
