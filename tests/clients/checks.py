# SPDX-License-Identifier: Apache-2.0
"""What the files of Python clients share: cases, and the server's own numbers."""

import json
import math
import os
import sys
import time
import traceback
import urllib.request

URL = os.environ["MICA_URL"]
MODEL = "sentences"  # an answer ends at a full stop
LONG = "fairy"  # an answer ends at the end of a tale, or not at all
EMBEDDER = os.environ.get("MICA_EMBEDDER")  # a sentence encoder of English; None: there is none
# The first two are about one thing, the third is not.
SENTENCES = ["A cat sleeps on the warm sofa.", "The kitten naps on a couch.", "Interest rates rose again in May."]
QUESTION = "Where does the pet sleep?"
# A tool for all APIs, whose arguments a model can only get right: its schema is a constraint.
CITIES = ["Bonn", "Ulm"]
PARAMETERS = {"type": "object", "properties": {"city": {"enum": CITIES}, "days": {"type": "integer", "minimum": 1,
              "maximum": 7}}, "required": ["city", "days"], "additionalProperties": False}
WEATHER = {"name": "get_weather", "description": "The weather of a city"}
cases, skipped = [], []


def case(function):
    """A check of one client; its name is printed."""
    cases.append(function)
    return function


def embedding_case(function):
    """The same, for a server with a sentence encoder."""
    (cases if EMBEDDER else skipped).append(function)
    return function


def similarity(a, b):
    """The cosine of two embeddings."""
    product = sum(x * y for x, y in zip(a, b))
    return product / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


def check_similarities(rows):
    """Rows of SENTENCES."""
    near, far = similarity(rows[0], rows[1]), max(similarity(rows[0], rows[2]), similarity(rows[1], rows[2]))
    assert near > 0.4 > far, (near, far)


def is_weather(name, arguments):
    """Whether a call is one of the tool above."""
    return (name == WEATHER["name"] and set(arguments) == {"city", "days"} and arguments["city"] in CITIES
            and 1 <= arguments["days"] <= 7)


def run_cases(kind):
    """Runs all cases, prints a line for each, and ends with 1 when one fails."""
    failed = 0
    for function in cases:
        name = f"{kind}: {function.__name__.replace('_', ' ')}"
        try:
            function()
            print(f"ok      {name}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {name}", flush=True)
            traceback.print_exc()
    for function in skipped:
        print(f"skipped {kind}: {function.__name__.replace('_', ' ')}: needs --embedder", flush=True)
    sys.exit(1 if failed else 0)


def get(path):
    with urllib.request.urlopen(URL + path, timeout=30) as reply:
        return reply.read().decode()


def running():
    """Answers that run or wait."""
    return [slot for slot in json.loads(get("/slots")) if slot["state"] != "idle"]


def cancelled():
    """Answers that ended because their client left, so far."""
    for line in get("/metrics").splitlines():
        if line.startswith("mica_answers_total") and 'cancelled"' in line:
            return int(float(line.split()[-1]))
    raise AssertionError("/metrics does not count cancelled answers")


def leaves(begin):
    """begin() opens a long stream and leaves it. The answer must end by that, long before its last token."""
    before = cancelled()
    begin()
    end = time.monotonic() + 10
    while running() or cancelled() != before + 1:
        assert time.monotonic() < end, f"{cancelled() - before} answers were cancelled; running: {running()}"
        time.sleep(0.01)


def raised(kind, function):
    """The exception that function() must raise."""
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
