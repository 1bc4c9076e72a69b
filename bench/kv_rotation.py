#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether KV elements of four to six bits lose less with heads rotated or plain, on a model and a text.

usage: bench/kv_rotation.py MODEL.gguf -f TEXT [--mica build/release/mica] [-c 512] [--windows 16]
                            [--formats Q5_1,Q4_0] [--parts both,keys,values] [-t 1] [--folder DIR]
                            [--json bench/results/NAME.json]

The text is cut into as many equal parts as there are windows, and each part gives its first window; the
second half of a window counts. For each format the same windows are read with F_ROTATED and F_PLAIN, and KL
is to keys and values in F32. A part is what has the element: both, or keys or values alone beside F16.

The ratio is the mean KL of rotated by that of plain; its interval holds 95 % of the ratios of resampled
windows. A ratio whose interval lies below 1 speaks for the rotation, one above 1 for plain, else it is open.
Medians are means of the windows' medians. With --json, a file that is there already keeps its other models.
"""
import argparse
import json
import pathlib
import random
import shlex
import tempfile

from kv_elements import run

FORMATS = "Q6_0,Q5_1,Q5_0,Q4_1,Q4_0,Q4_S,IQ4_NL"
RESAMPLES = 2000
FORMS = ("ROTATED", "PLAIN")


def types_of(part, element):
    """The flags that give an element to a part of the cache."""
    return ["-ctk", "F16" if part == "values" else element, "-ctv", "F16" if part == "keys" else element]


def pieces(path, count):
    """The beginnings of equal parts of a text, at lines."""
    text = path.read_text()
    length = len(text) // count
    for i in range(count):
        first = text.find("\n", i * length) + 1
        yield text[first:first + length]


class Rows:
    """The KL of one element, window by window."""

    def __init__(self):
        self.means, self.medians, self.same_top = [], [], []

    def add(self, seen):
        self.means.append(seen["kl"])
        self.medians.append(seen["kl_percentiles"]["50"])
        self.same_top.append(seen["same_top"])

    def figures(self):
        return {"kl": mean(self.means), "kl_median": mean(self.medians), "same_top": mean(self.same_top)}


def mean(numbers):
    return sum(numbers) / len(numbers)


def ratio(above, below, rng):
    """A ratio of means, and the ends of the interval that holds 95 % of those of resampled windows."""
    drawn = []
    for _ in range(RESAMPLES):
        windows = rng.choices(range(len(above)), k=len(above))
        drawn.append(sum(above[i] for i in windows) / sum(below[i] for i in windows))
    drawn.sort()
    return [mean(above) / mean(below), drawn[RESAMPLES // 40], drawn[-1 - RESAMPLES // 40]]


def measure(options):
    """Rows of each (part, format, form)."""
    mica = shlex.split(options.mica)
    common = ["-c", str(options.context), "--chunks", "1", "-t", str(options.threads), "--json", "-q"]
    seen = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        base, text = f"{folder}/base", pathlib.Path(folder) / "text"
        for piece in pieces(options.text, options.windows):
            text.write_text(piece)
            run([*mica, "perplexity", options.model, "-f", str(text), "-ctk", "F32", "-ctv", "F32",
                 "--kl-divergence-base", base, *common])
            for part in options.parts.split(","):
                for name in options.formats.split(","):
                    for form in FORMS:
                        rows = seen.setdefault((part, name, form), Rows())
                        rows.add(run([*mica, "perplexity", options.model, "--kl-divergence",
                                      "--kl-divergence-base", base, *types_of(part, f"{name}_{form}"),
                                      *common]))
    return seen


def verdict(interval):
    _, low, high = interval
    return "rotated" if high < 1 else "plain" if low > 1 else "open"


def results_of(options, seen):
    """What the table says, row by row."""
    out, rng = [], random.Random(1)
    for part in options.parts.split(","):
        for name in options.formats.split(","):
            rotated, plain = (seen[part, name, form] for form in FORMS)
            row = {"model": pathlib.Path(options.model).name, "text": options.text.name,
                   "context": options.context, "windows": options.windows, "format": name, "part": part,
                   "rotated": rotated.figures(), "plain": plain.figures(),
                   "kl_ratio": ratio(rotated.means, plain.means, rng),
                   "kl_median_ratio": ratio(rotated.medians, plain.medians, rng)}
            out.append(row | {"less": verdict(row["kl_ratio"])})
    return out


def cell(row, key):
    """Rotated, plain, and their ratio with its interval."""
    return "{:.3g} | {:.3g} | {:.2f} ({:.2f} to {:.2f})".format(row["rotated"][key], row["plain"][key],
                                                                *row[key + "_ratio"])


def write(options, results):
    """The figures beside the command that repeats them; those of other models and texts stay."""
    def name(row):
        return row["model"], row["text"], row["part"], row["format"]

    old = json.loads(options.json.read_text())["results"] if options.json.exists() else []
    mine = {name(row) for row in results}
    rows = [row for row in old if name(row) not in mine] + results
    head = {"command": "bench/kv_rotation.py MODEL -f TEXT -c CONTEXT --windows WINDOWS --parts PART",
            "ratio": "of the KL of rotated to that of plain, and the interval of 95 %"}
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    options.json.write_text(json.dumps(head)[:-1] + f', "results": [\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-f", "--text", required=True, type=pathlib.Path)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("-c", "--context", type=int, default=512)
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--formats", default=FORMATS)
    parser.add_argument("--parts", default="both")
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--folder", help="for base logits: half a context by two bytes a token of the "
                                         "vocabulary")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    results = results_of(options, measure(options))
    print("| element | part | mean KL, rotated | plain | ratio | median KL, rotated | plain | ratio | less "
          "|\n"
          + "|---" * 9 + "|")
    for row in results:
        print(f"| {row['format']} | {row['part']} | {cell(row, 'kl')} | {cell(row, 'kl_median')} | "
              f"{row['less']} |")
    if options.json:
        write(options, results)


if __name__ == "__main__":
    main()
