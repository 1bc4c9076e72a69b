#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs commands in a terminal and draws what it showed as SVG. Standard library only.

usage: docs/figures/record.py [--mica build/release/mica] [--model llama-8b.gguf] [--out docs/figures/terminal.svg]

Draws the commands of SESSION, each with its output: plain text, the colours and weights of SGR sequences, and
carriage returns. Other sequences are left out. The model is made by `mica synth llama-8b Q4_K_M llama-8b.gguf`.
Without --model its commands are left out. Look at the picture before it is committed.
"""
import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import unicodedata

COLUMNS, LINE, CHAR, PAD = 92, 19, 8.2, 22
SESSION = [  # words after `mica`, whether the model is needed, the maximum of lines shown
    (["plan", "llama-8b.gguf", "-c", "4096", "--memory", "6GiB"], True, 12),
    (["plan", "llama-8b.gguf", "-c", "8192", "--memory", "2GiB", "--solve"], True, 17),
    (["run", "-s", "0", "-n", "60"], False, 12),
]
STYLE = """
  .page { fill: #0d1117; } .bar { fill: #161b22; } .dot { fill: #30363d; }
  text { font: 13.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
         fill: #d1d7e0; white-space: pre; }
  .prompt { fill: #2dd4b4; } .command { fill: #ffffff; font-weight: 600; } .b { font-weight: 600; }
  .d { fill: #8b949e; } .c31 { fill: #ff7b72; } .c32 { fill: #7ee787; } .c33 { fill: #e3b341; }
  .c34 { fill: #79c0ff; } .c35 { fill: #d2a8ff; } .c36 { fill: #56d4dd; }
"""


def run(words, folder):
    """What a command writes to a terminal of COLUMNS columns."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=child, stderr=child, cwd=folder,
                               env=environment, close_fds=True)
    os.close(child)
    output = b""
    while True:
        ready, _, _ = select.select([parent], [], [], 60)
        if not ready:
            process.kill()
            sys.exit(f"{' '.join(words)}: silent for a minute")
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(parent)
    if process.wait() not in (0, 4):
        sys.exit(f"{' '.join(words)}: exit code {process.returncode}")
    return output.decode("utf-8", "replace")


def lines_of(text):
    """Lines of (class, text) spans; a carriage return begins a line again."""
    lines, classes = [], ""
    for raw in text.replace("\r\n", "\n").rstrip("\n").split("\n"):
        spans = []
        for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r)", raw):
            if piece == "\r":
                spans = []
            elif piece.startswith("\x1b["):
                if piece.endswith("m"):
                    classes = classes_of(piece[2:-1], classes)
            elif piece:
                spans.append((classes, piece))
        lines += wrapped(spans)
    return lines


def classes_of(numbers, classes):
    for number in (numbers or "0").split(";"):
        if number in ("", "0"):
            classes = ""
        elif number == "1":
            classes += " b"
        elif number == "2":
            classes += " d"
        elif re.fullmatch(r"3[1-6]", number):
            classes += f" c{number}"
    return classes.strip()


def wrapped(spans):
    """Lines that are too long, broken before a word."""
    lines, line, used = [], [], 0
    for classes, text in spans:
        for word in re.findall(r" *[^ ]+| +", text):
            if used + len(word) > COLUMNS:
                lines.append(merged(line))
                line, used, word = [], 0, word.lstrip(" ")
            line.append((classes, word))
            used += len(word)
    return lines + [merged(line)]


def merged(line):
    """Neighbours of one class as one span."""
    spans = []
    for classes, text in line:
        if spans and spans[-1][0] == classes:
            text = spans.pop()[1] + text
        spans.append((classes, text))
    return spans


def drawn(lines):
    """The picture of lines of spans."""
    width, height = int(COLUMNS * CHAR + 2 * PAD), 38 + len(lines) * LINE + PAD
    pieces = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
              f'height="{height}" role="img" aria-label="A terminal in which mica plans and runs models">',
              f"<style>{STYLE}</style>", f'<rect class="page" width="{width}" height="{height}" rx="9"/>',
              f'<path class="bar" d="M0 9a9 9 0 0 1 9-9h{width - 18}a9 9 0 0 1 9 9v21H0z"/>']
    pieces += [f'<circle class="dot" cx="{22 + 20 * i}" cy="15" r="6"/>' for i in range(3)]
    for i, line in enumerate(lines):
        x, y = 0, 38 + PAD / 2 + i * LINE
        for classes, text in line:
            cells = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
            if text.strip():
                name = f' class="{classes}"' if classes else ""
                pieces.append(f'<text x="{PAD + x * CHAR:.1f}" y="{y:.0f}"{name} textLength="{cells * CHAR:.1f}">'
                              f"{html.escape(text).replace(' ', chr(160))}</text>")  # spaces stay
            x += cells
    return "\n".join(pieces) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mica", type=pathlib.Path, default=pathlib.Path("build/release/mica"))
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/figures/terminal.svg"))
    options = parser.parse_args()
    lines = []
    for words, needs_model, most in SESSION:
        if needs_model and options.model is None:
            continue
        folder = options.model.resolve().parent if needs_model else None
        output = lines_of(run([str(options.mica.resolve()), *words], folder))
        shown = [word if " " not in word else f'"{word}"' for word in words]
        lines.append([("prompt", "$ "), ("command", "mica " + " ".join(shown))])
        lines += output[:most] + ([[("d", "...")]] if len(output) > most else []) + [[]]
    options.out.write_text(drawn(lines[:-1]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
