#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokens per second with a constraint and without, in turns, and whether speculation changes the answer.

  bench/constraint/speed.py build/release/mica MODEL.gguf

Prints a line for each kind: free text, JSON of a schema, a pattern that forces no token; then answers of a server, one
and eight at a time, and the answers with and without drafts, which must be the same.
"""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

WORDS = {"type": "string", "minLength": 20, "maxLength": 60}
SCHEMA = {"type": "object", "properties": {
    "name": WORDS, "city": WORDS, "street": WORDS, "occupation": WORDS,
    "notes": {"type": "array", "items": {"type": "string", "minLength": 30, "maxLength": 80}, "minItems": 4,
              "maxItems": 6},
    "age": {"type": "integer", "minimum": 1, "maximum": 120}},
    "required": ["name", "city", "street", "occupation", "notes", "age"], "additionalProperties": False}
PROMPT = "A person as JSON:"


def complete(program, model, *flags):
    return subprocess.run([program, "complete", model, PROMPT, *flags], check=True, capture_output=True, text=True,
                          errors="replace")  # random weights write any bytes


def served(url, constrained, seed):
    body = {"prompt": PROMPT, "n_predict": 96, "seed": seed, "temperature": 0.8, "ignore_eos": True}
    if constrained:
        body["json_schema"] = SCHEMA
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request, timeout=300))["tokens_predicted"]


def main():
    program, model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        schema = pathlib.Path(folder, "schema.json")
        schema.write_text(json.dumps(SCHEMA))
        kinds = {"free": [], "schema": ["--json-schema", str(schema)], "pattern": ["--regex", "[a-zA-Z0-9.,]{300,}"]}
        speeds = {kind: [] for kind in kinds}
        for seed in "123":
            for kind, flags in kinds.items():
                done = complete(program, model, "-n", "96", "--seed", seed, "--temp", "0.8", "--ignore-eos", *flags)
                speeds[kind].append(re.search(r"answer \d+ tokens, ([\d.]+) t/s", done.stderr).group(1))
        for kind, numbers in speeds.items():
            print(f"{kind:8}", *numbers, "tokens/s")
        flags = ["-n", "200", "--temp", "0", *kinds["schema"]]
        answers = [complete(program, model, *flags, *drafts).stdout for drafts in ([], ["--speculate", "ngram"])]
        print("drafts   the answer is", "the same" if answers[0] == answers[1] else "ANOTHER ONE",
              hashlib.sha256(answers[0].encode()).hexdigest()[:12])
    server = subprocess.Popen([program, "serve", model, "--port", "0", "-c", "2048", "--chat-template", "chatml",
                               "--quiet", "--parallel", "8"], stdout=subprocess.PIPE, text=True)
    try:
        url = json.loads(server.stdout.readline())["url"]
        served(url, True, 0)
        for _ in range(2):
            for constrained in (False, True):
                for n in (1, 8):
                    begin = time.monotonic()
                    with concurrent.futures.ThreadPoolExecutor(n) as pool:
                        tokens = sum(pool.map(lambda seed: served(url, constrained, seed), range(n)))
                    speed = tokens / (time.monotonic() - begin)
                    print(f"server   {'schema' if constrained else 'free':7} {n} at a time {speed:6.1f} tokens/s")
    finally:
        server.terminate()
        server.wait()
    return answers[0] != answers[1]


if __name__ == "__main__":
    sys.exit(main())
