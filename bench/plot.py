#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws bench/results as SVG, for docs/benchmarks.md. Standard library only.

usage: bench/plot.py [--results bench/results] [--out docs/figures]

Reads what bench/peers.py, bench/neighbour.py and bench/size/measure.py wrote and draws what it finds:
decode.svg and prefill.svg (mica and its peers, the faster peer being 1), roofline.svg (parts of what the
machine can do), depth.svg (decode with a full context), threads.svg (one thread to two), size.svg. A figure
without data is not written. Colours follow the reader's light or dark page.
"""
import argparse
import html
import json
import pathlib
import statistics

STYLE = """
  svg { font: 13px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
  .ink { fill: #1f2328; } .soft { fill: #59636e; } .grid { stroke: #d1d9e0; stroke-width: 1; }
  .one { stroke: #59636e; stroke-width: 1.5; }
  .over { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; stroke-linejoin: round; }
  .title { font-size: 16px; font-weight: 600; } .small { font-size: 11.5px; } .strong { font-weight: 600; }
  .c0 { fill: #0a7d6c; } .c1 { fill: #8c959f; } .c2 { fill: #c0c8d0; } .c3 { fill: #d8a657; }
  @media (prefers-color-scheme: dark) {
    .ink { fill: #f0f6fc; } .soft { fill: #9198a1; } .grid { stroke: #3d444d; } .one { stroke: #9198a1; }
    .over { stroke: #0d1117; }
    .c0 { fill: #2dd4b4; } .c1 { fill: #7d8590; } .c2 { fill: #4d5560; } .c3 { fill: #d8a657; }
  }
"""
WIDTH, LEFT, RIGHT, BAR, GAP = 860, 264, 116, 15, 13


class Canvas:
    """Pieces of one drawing."""

    def __init__(self, title, description):
        self.pieces, self.title, self.description = [], title, description

    def text(self, x, y, words, classes="ink", anchor="start"):
        self.pieces.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" '
                           f'text-anchor="{anchor}">{html.escape(str(words))}</text>')

    def bar(self, x, y, width, height, classes):
        self.pieces.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height}" '
                           f'rx="2.5" class="{classes}"/>')

    def dot(self, x, y, classes):
        self.pieces.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" class="{classes}"/>')

    def line(self, x1, y1, x2, y2, classes="grid"):
        self.pieces.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}"/>')

    def write(self, path, height):
        body = "\n  ".join(self.pieces)
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" '
                        f'viewBox="-12 -6 {WIDTH + 24} {height + 10:.0f}" width="{WIDTH + 24}" '
                        f'height="{height + 10:.0f}" role="img" aria-label="{html.escape(self.title)}">\n  <title>'
                        f'{html.escape(self.title)}</title>\n  <desc>{html.escape(self.description)}</desc>\n  '
                        f'<style>{STYLE}  </style>\n  {body}\n</svg>\n')


def step_of(most):
    """A round distance of grid lines, four to eight of them."""
    for step in (0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000):
        if most / step <= 8:
            return step
    return most / 5


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def grouped_bars(path, title, unit, groups, names, mark=None):
    """Horizontal bars. groups: (label, second label, {name: (value, text)}); names in the order of colours;
    mark: a value that is a limit or a yardstick."""
    groups = [g for g in groups if g[2]]
    if not groups:
        return
    canvas = Canvas(title, "; ".join(f"{a} {b}: " + ", ".join(f"{n} {v[1]}" for n, v in bars.items()) for a,
                                     b, bars in groups))
    canvas.text(0, 18, title, "ink title")
    x = 0
    for i, name in enumerate(names):
        canvas.bar(x, 34, 11, 11, f"c{i}")
        canvas.text(x + 17, 44, name, "ink small")
        x += 36 + 7.2 * len(name)
    canvas.text(WIDTH, 44, unit, "soft small", "end")
    top, most = 64, max(v[0] for g in groups for v in g[2].values())
    most = max(most, mark or 0) * 1.02
    scale = (WIDTH - LEFT - RIGHT) / most
    heights = [len(g[2]) * (BAR + 2) + GAP for g in groups]
    bottom = top + sum(heights)
    step = step_of(most)
    for i in range(int(most / step) + 1):
        canvas.line(LEFT + i * step * scale, top - 4, LEFT + i * step * scale, bottom)
        canvas.text(LEFT + i * step * scale, bottom + 15, f"{i * step:g}", "soft small", "middle")
    if mark is not None:
        canvas.line(LEFT + mark * scale, top - 4, LEFT + mark * scale, bottom, "one")
    y = top
    for (label, second, bars), height in zip(groups, heights):
        middle = y + (height - GAP) / 2
        canvas.text(LEFT - 12, middle - (2 if second else -5), label, "ink", "end")
        if second:
            canvas.text(LEFT - 12, middle + 13, second, "soft small", "end")
        for name, (value, text) in sorted(bars.items(), key=lambda bar: names.index(bar[0])):
            canvas.bar(LEFT, y, value * scale, BAR, f"c{names.index(name)}")
            first = name == names[0]
            canvas.text(LEFT + value * scale + 6, y + BAR - 3.5, text, "ink small strong over" if first
                        else "soft small over")
            y += BAR + 2
        y += GAP
    canvas.write(path, bottom + 26)


def read(folder, pattern):
    return [(path.stem, json.loads(path.read_text())) for path in sorted(folder.glob(pattern))]


def model_name(file):
    name = file.removesuffix(".gguf")
    shape, _, recipe = name.partition(".")
    return f"{shape} {recipe}".strip()


def where(document):
    """The machine of a file, and what was chosen for mica there."""
    machine = document.get("machine", "").replace("(R)", "").removesuffix(" Processor")
    command = document.get("command", "")
    chosen = ["fast8"] * ("fast8" in command) + ["without AMX"] * ("--targets AVX3_SPR" in command)
    return ", ".join([machine, *chosen])


def tests(files):
    """Tests with peers of the given files, each with a label."""
    for _, document in files:
        for r in document.get("results", []):
            if isinstance(r.get("speeds"), dict):
                yield dict(r, where=where(document))


def engines_in(results):
    names = ["mica"]
    for r in results:
        names += [name for name in r["speeds"] if name not in names]
    return names


def draw_peers(files, out):
    for kind in ("decode", "prefill"):
        found = [r for r in tests(files) if r["kind"] == kind and r["depth"] == 0 and len(r["speeds"]) > 1]
        most_threads = max((r["threads"] for r in found), default=0)
        groups = []
        for r in sorted((r for r in found if r["threads"] == most_threads), key=lambda r: r["where"]):
            middle = {name: statistics.median(all_) for name, all_ in r["speeds"].items()}
            faster = max(v for name, v in middle.items() if name != "mica")
            groups.append((model_name(r["model"]), f"{r['tokens']} tokens; {r['where']}",
                           {name: (v / faster, f"{number(v)} t/s" if name != "mica"
                                   else f"{number(v)} t/s, {v / faster:.2f} x")
                            for name, v in middle.items()}))
        title = "Writing (decode)" if kind == "decode" else "Reading a prompt (prefill)"
        grouped_bars(out / f"{kind}.svg", f"{title}: mica beside its peers", "speed, the faster peer being 1",
                     groups,
                     engines_in(found), mark=1)


def dot_rows(path, title, sections, names):
    """A dot for each engine, a line for each row. sections: (heading, [(label, {name: value})]); names in the
    order of colours. Values of the first name stand at the right. 1 is a yardstick: values may pass it."""
    rows = [row for _, section in sections for row in section]
    if not rows:
        return
    canvas = Canvas(title, "; ".join(f"{heading}: {label}: " + ", ".join(f"{n} {v:.0%}" for n,
                                                                         v in values.items())
                                     for heading, section in sections for label, values in section))
    canvas.text(0, 18, title, "ink title")
    x = 0
    for i, name in enumerate(names):
        canvas.dot(x + 5.5, 39.5, f"c{i}")
        canvas.text(x + 17, 44, name, "ink small")
        x += 36 + 7.2 * len(name)
    top, most = 64, max(1, *(v for _, values in rows for v in values.values())) * 1.02
    left, row_height, head_height = 190, 18, 30
    scale = (WIDTH - left - 60) / most
    bottom = top + row_height * len(rows) + head_height * len(sections)
    step = step_of(most)
    for i in range(int(most / step) + 1):
        at = left + i * step * scale
        canvas.line(at, top, at, bottom, "one" if abs(i * step - 1) < 1e-9 else "grid")
        canvas.text(at, bottom + 15, f"{i * step:g}", "soft small", "middle")
    y = top
    for heading, section in sections:
        canvas.text(0, y + head_height - 10, heading, "ink small strong")
        y += head_height
        for label, values in section:
            canvas.text(left - 12, y + 9, label, "ink small", "end")
            for name in reversed([n for n in names if n in values]):
                canvas.dot(left + values[name] * scale, y + 5, f"c{names.index(name)}")
            if names[0] in values:
                canvas.text(WIDTH, y + 9, f"{values[names[0]]:.0%}", "ink small strong", "end")
            y += row_height
    canvas.write(path, bottom + 26)


def draw_roofline(files, out):
    """Yardsticks are plain loops, measured in the same rounds: reads of memory in order, products of vectors
    (of bytes; of floats for F16). The matrix unit of a processor passes the second."""
    found = [r for r in tests(files) if "part" in r and r["depth"] == 0]
    sections = {}
    for r in found:
        kind = ("decode, 1: memory as plain loops read it" if r["kind"] == "decode"
                else "prefill, 1: products of vectors as plain loops do them")
        label = f"{model_name(r['model'])}{', 1 thread' if r['threads'] == 1 else ''}"
        sections.setdefault((r["kind"], r["where"], kind), []).append((label, r["part"]))
    dot_rows(out / "roofline.svg", "Part of what plain loops reach on the same machine",
             [(f"{where}; {kind}", rows) for (_, where, kind), rows in sorted(sections.items())],
             engines_in(found))


def draw_depth(files, out):
    found = [r for r in tests(files) if r["kind"] == "decode"]
    starts = {(r["model"], r["type_k"], r["threads"]): r for r in found if r["depth"] == 0}
    groups = []
    for r in (r for r in found if r["depth"] > 0):
        start = starts.get((r["model"], r["type_k"], r["threads"]))
        kept = {}
        for name, all_ in r["speeds"].items():
            at_start = statistics.median(start["speeds"][name]) if start and name in start["speeds"] else None
            if at_start:
                kept[name] = (statistics.median(all_) / at_start,
                              f"{statistics.median(all_) / at_start:.0%}, {number(statistics.median(all_))} "
                              f"t/s")
        groups.append((model_name(r["model"]), f"{r['depth']} tokens before, {r['type_k']}", kept))
    grouped_bars(out / "depth.svg", "Writing after a long text", "part of the speed at the beginning", groups,
                 engines_in(found), mark=1)


def draw_threads(files, out):
    found = list(tests(files))
    ones = {(r["model"], r["kind"], r["depth"]): r for r in found if r["threads"] == 1}
    groups = []
    for r in (r for r in found if r["threads"] == 2):
        one = ones.get((r["model"], r["kind"], r["depth"]))
        if one is None:
            continue
        gains = {name: statistics.median(all_) / statistics.median(one["speeds"][name])
                 for name, all_ in r["speeds"].items() if name in one["speeds"]}
        groups.append((model_name(r["model"]), r["kind"], {name: (gain, f"{gain:.2f} x") for name,
                                                           gain in gains.items()}))
    grouped_bars(out / "threads.svg", "From one thread to two", "speed with two threads, one thread being 1",
                 groups,
                 engines_in(found), mark=2)


def draw_size(files, out):
    for _, document in files:
        if not document.get("peers"):
            continue
        peer = sum(document["peers"].values())
        bars = [("mica, lesson 5", "Llama, Q4_K_M, one KV policy",
                 {"mica": (document["program_bytes"] / 2**20,
                           f"{document['program_bytes'] / 2**20:.2f} MiB")}),
                ("llama.cpp", "its CPU libraries, one variant",
                 {"llama.cpp": (peer / 2**20, f"{peer / 2**20:.2f} MiB")})]
        grouped_bars(out / "size.svg", "Bytes of program code, stripped", "MiB", bars, ["mica", "llama.cpp"])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    root = pathlib.Path(__file__).resolve().parents[1]
    parser.add_argument("--results", type=pathlib.Path, default=root / "bench/results")
    parser.add_argument("--out", type=pathlib.Path, default=root / "docs/figures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    all_files = read(options.results, "peers-*.json")
    main_files = [f for f in all_files if f[0] not in ("peers-depth", "peers-threads", "peers-avx2")]
    draw_peers(main_files, options.out)
    draw_roofline(main_files, options.out)
    draw_depth([f for f in all_files if f[0] == "peers-depth"], options.out)
    draw_threads([f for f in all_files if f[0] == "peers-threads"], options.out)
    draw_size(read(options.results, "size.json"), options.out)


if __name__ == "__main__":
    main()
