#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What keys and values of few bits lose on exact weights, by mica and by another engine, over thousands of
rows.

usage: bench/kv_error.py MODEL.gguf... -f TEXT --peer llama-perplexity [--mica build/release/mica]
                         [--elements Q8_0,Q4_0,Q4_S/Q4_0]
                         [-c 512] [--chunks 100] [--folder DIR] [--peer-folder DIR] [--json bench/results/NAME.json]

Each model becomes a file of F32, in --folder, which both programs read. The peer with keys and values in F32,
without flash attention, is the witness; against its logits stand both programs with each element, the peer
with flash attention, and mica in F32 to show how near the two are otherwise. An element is one name, or
mica's and the peer's. --peer may be several words, such as "chroot DIR llama-perplexity"; --peer-folder is
--folder as the peer sees it.

Rows are the second halves of windows. A row's KL is computed here from the logits that both programs write,
so that medians are of rows and intervals of ratios are of resampled windows (95 %), the same for both. A
router's near tie, decided otherwise, moves single rows by units: rows of more than 30 times the median KL,
far rows, are counted apart, and so is the part of all KL that they make.
"""
import argparse
import array
import bisect
import json
import math
import operator
import pathlib
import random
import shlex
import shutil
import struct
import subprocess
import sys

RESAMPLES = 400
FAR = 30  # medians beyond which a row counts as one where a router chose otherwise


def run(words):
    """What a command prints on stdout."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\nended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def dot(a, b):
    return sum(map(operator.mul, a, b))


class Logits:
    """A file that --kl-divergence-base wrote: logarithms of probabilities, 16 bits each, rows in order."""

    def __init__(self, path):
        self.file = open(path, "rb")
        magic, self.n_ctx, self.n_vocab, self.windows = struct.unpack("<8siii", self.file.read(20))
        if magic != b"_logits_":
            sys.exit(f"{path}: these are no base logits")
        self.tokens = self.file.read(4 * self.n_ctx * self.windows)
        self.rows_in_window = self.n_ctx - 1 - self.n_ctx // 2

    def row(self):
        """The next row as codes and their values; what is 16 and more below the top is at 16."""
        data = self.file.read(2 * ((self.n_vocab + 1) // 2 * 2 + 4))
        scale, least = struct.unpack_from("<ff", data)
        codes = array.array("H", data[8:8 + 2 * self.n_vocab])
        return codes, [least + scale * code for code in codes]


def compare(base, weights, whole, other):
    """KL, squared error of logits, and whether the top is the same, of one row. Logarithms are normalised
    again, since 16 bits are not: what rounding does to them is of second order then. A shift of all logits is
    no error."""
    (codes, values), (other_codes, other_values) = base, other
    moved = list(map(operator.sub, other_values, values))
    kl = math.log(sum(map(math.exp, other_values)) / whole) - dot(weights, moved) / whole
    square = dot(moved, moved) / len(moved) - (sum(moved) / len(moved)) ** 2
    return kl, square, codes.index(max(codes)) == other_codes.index(max(other_codes))


def rows_of(base_path, paths):
    """For each path a list of windows, each a list of rows (KL, squared error, same top) against the base."""
    base, others = Logits(base_path), {name: Logits(path) for name, path in paths.items()}
    for name, other in others.items():
        if other.tokens != base.tokens:
            sys.exit(f"{name} read other tokens than the witness")
    out = {name: [] for name in others}
    for _ in range(base.windows):
        for windows in out.values():
            windows.append([])
        for _ in range(base.rows_in_window):
            row = base.row()
            weights = list(map(math.exp, row[1]))
            whole = sum(weights)
            for name, other in others.items():
                out[name][-1].append(compare(row, weights, whole, other.row()))
    return out


def median(ordered):
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def figures(windows):
    rows = [row for window in windows for row in window]
    kl = sorted(row[0] for row in rows)
    far = kl[bisect.bisect(kl, FAR * median(kl)):]
    return {"rows": len(rows), "kl": sum(kl) / len(kl), "kl_median": median(kl),
            "rms": math.sqrt(sum(row[1] for row in rows) / len(rows)),
            "same_top": sum(row[2] for row in rows) / len(rows), "far_rows": len(far),
            "far_part_of_kl": sum(far) / sum(kl)}


class Resampled:
    """The figures of which ratios are taken, of windows drawn again."""

    def __init__(self, windows):
        self.kl = [sum(row[0] for row in window) for window in windows]
        self.square = [sum(row[1] for row in window) for window in windows]
        self.ordered = sorted((row[0], at) for at, window in enumerate(windows) for row in window)

    def draw(self, times):
        """Of windows that are taken so many times each."""
        half, seen = sum(times) * len(self.ordered) / len(times) / 2, 0
        for kl, at in self.ordered:
            seen += times[at]
            if seen >= half:
                break
        return {"kl": dot(times, self.kl), "kl_median": kl, "rms": math.sqrt(dot(times, self.square))}


def ratios(ours, theirs):
    """Of each figure: ours by theirs, and the ends of the interval that holds 95 % of the resampled
    ratios."""
    mine, other, rng = Resampled(ours), Resampled(theirs), random.Random(1)
    drawn = []
    for _ in range(RESAMPLES):
        times = [0] * len(ours)
        for at in rng.choices(range(len(ours)), k=len(ours)):
            times[at] += 1
        drawn.append((mine.draw(times), other.draw(times)))
    ours, theirs, out = figures(ours), figures(theirs), {}
    for key in ("kl", "kl_median", "rms"):
        ordered = sorted(a[key] / b[key] for a, b in drawn)
        out[key] = [ours[key] / theirs[key], ordered[RESAMPLES // 40], ordered[-1 - RESAMPLES // 40]]
    return out


class Programs:
    """mica and the peer, on one model in F32 that both see."""

    def __init__(self, options, model):
        self.options, self.name = options, pathlib.Path(model).name.split(".")[0]
        self.seen = options.peer_folder or options.folder
        self.mica, self.peer = shlex.split(options.mica), shlex.split(options.peer)
        self.common = ["-c", str(options.context), "--chunks", str(options.chunks), "-t",
                       str(options.threads)]
        self.file = options.folder / f"{self.name}.gguf"
        run([*self.mica, "quantize", model, str(self.file), "F32", "--allow-requantize", "-q"])

    @staticmethod
    def types(element):
        return ["-ctk", element.lower(), "-ctv", element.lower()]

    def ours(self, element):
        """The file of mica's logits."""
        out = self.options.folder / f"{self.name}.mica.{element}"
        run([*self.mica, "perplexity", str(self.file), "-f", str(self.options.text), "-q",
             *self.types(element),
             "--kl-divergence-base", str(out), *self.common])
        return out

    def theirs(self, element, flash):
        """The file of the peer's logits; a window a batch, and so a sequence by itself."""
        out = f"{self.name}.peer.{element}"
        run([*self.peer, "-m", str(self.seen / self.file.name), "-f", str(self.seen / "text.txt"), "-b",
             str(self.options.context),
             "-fa", flash, *self.types(element), "--kl-divergence-base", str(self.seen / out), *self.common])
        return self.options.folder / out

    def bytes_per_token(self, element):
        """What mica's keys and values take."""
        plan = run([*self.mica, "plan", str(self.file), "-c", str(self.options.context), "--json",
                    *self.types(element)])
        return json.loads(plan)["kv_bytes_per_token"]


def measure(options, model):
    """Both programs on one model: the logits of each element, and the rows of all against the witness."""
    both = Programs(options, model)
    witness = both.theirs("F32", "off")
    paths = {f"mica {one}": both.ours(one) for one in ["F32", *(mine for mine, _ in options.elements)]}
    paths |= {f"peer {one}": both.theirs(one, "on") for one in dict.fromkeys(other for _,
                                                                             other in options.elements)}
    rows = rows_of(witness, paths)
    results = [{"model": both.name, "element": "F32", "mica": figures(rows["mica F32"])}]
    for mine, other in options.elements:
        ours, theirs = rows[f"mica {mine}"], rows[f"peer {other}"]
        results.append({"model": both.name, "element": mine, "peer_element": other,
                        "bytes_beside_f16": both.bytes_per_token(mine) / both.bytes_per_token("F16"),
                        "mica": figures(ours), "peer": figures(theirs), "ratios": ratios(ours, theirs)})
    for path in [both.file, witness, *paths.values()]:
        path.unlink()
    return results


def cells(result, key, form):
    """mica's figure, the peer's, and their ratio with its interval."""
    both = " / ".join(format(result[who][key], form) for who in ("mica", "peer") if who in result)
    spread = "{:.2f} ({:.2f} to {:.2f})".format(*result["ratios"][key]) if "ratios" in result else ""
    return f"{both} | {spread}"


def line(result):
    """A row of the table."""
    figures_of = [result[who] for who in ("mica", "peer") if who in result]
    top = " / ".join(f"{100 * one['same_top']:.1f}" for one in figures_of)
    far = " / ".join(f"{one['far_rows']} ({100 * one['far_part_of_kl']:.0f} %)" for one in figures_of)
    return (f"| {result['model']} | {result['element']} | {cells(result, 'kl_median', '.2e')} | "
            f"{cells(result, 'kl', '.2e')} "
            f"| {cells(result, 'rms', '.3g')} | {top} | {far} |")


def elements(text):
    """Pairs of mica's element and the peer's."""
    return [(one.split("/")[0], one.split("/")[-1]) for one in text.split(",")]


def write(options, results):
    """The figures so far, with the command that repeats them."""
    pairs = ",".join(f"{mine}/{other}" for mine, other in options.elements)
    rows = ",\n".join("  " + json.dumps(result) for result in results)
    head = {"command": f"bench/kv_error.py MODEL... -f TEXT -c {options.context} --chunks {options.chunks} "
                       f"--elements {pairs}",
            "text": options.text.name, "note": options.note}
    options.json.write_text(json.dumps(head)[:-1] + f', "results": [\n{rows}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("-f", "--text", required=True, type=pathlib.Path)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("--peer", default="llama-perplexity")
    parser.add_argument("--elements", type=elements, default="Q8_0,Q4_0,Q4_S/Q4_0")
    parser.add_argument("-c", "--context", type=int, default=512)
    parser.add_argument("--chunks", type=int, default=100)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/kv-error"))
    parser.add_argument("--peer-folder", type=pathlib.Path)
    parser.add_argument("--note", default="", help="what a reader of the JSON should know, such as the "
                                                   "peer's version")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(options.text, options.folder / "text.txt")
    results = []
    print("| model | element | median KL, mica / peer | ratio | mean KL | ratio | rms | ratio | same top, % "
          "| far rows (part of KL) |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    for model in options.models:
        for result in measure(options, model):
            results.append(result)
            print(line(result), flush=True)
        if options.json:
            write(options, results)


if __name__ == "__main__":
    main()
