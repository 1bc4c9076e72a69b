#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records sessions of mica in a pseudo-terminal, as text, and writes them as a page. Standard library only.

usage: docs/figures/session.py [--mica build/release/mica] [--out docs/session.md]

The commands are those of PAGE below, with the text around them. They run in an empty folder with the bundled model,
beside a hub on this machine that has two quantisations of it. A command whose exit code is not the expected one ends
the script. Read the page before it is committed: speeds and memory are those of the machine.
"""
import argparse
import fcntl
import hashlib
import http.server
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
import time
import urllib.parse

COLUMNS, HOME = 100, "/home/me"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BUNDLED = pathlib.Path(__file__).resolve().parents[2] / "examples" / "models" / "fairy.gguf"


class Command:
    """A command line behind `mica`, its exit code, and the keys that are pressed when a text has appeared."""

    def __init__(self, line, code=0, keys=(), shows_progress=False):
        self.line, self.code, self.keys, self.shows_progress = line, code, list(keys), shows_progress


ENTER, CTRL_C, CTRL_D, HANG_UP = "\n", "\x03", "\x04", signal.SIGHUP
PROMPT = "> "
PAGE = [
    """# Sessions, recorded

What mica prints, recorded in a terminal of {columns} columns by one command:

    docs/figures/session.py --mica build/release/mica

The model is the bundled one: 5 MiB, trained on fairy tales, with a context of 256 tokens and without a chat template.
Larger models print the same lines with larger numbers. [The page of the program](cli.md) explains the flags.

## A model by its name

`mica pull` chooses a quantisation, plans the memory, and downloads. The progress line is rewritten during the
download and removed at its end; the recording shows one moment of it. The first command was interrupted by Ctrl-C;
when it runs again, the download continues. The hub of this recording is on the same machine; a hub on the web gives
the same lines ([models by name](hub.md)).
""",
    Command("pull hf.co/example/fairy-GGUF", 130, keys=[(" left", CTRL_C)], shows_progress=True),
    Command("list"),
    Command("pull hf.co/example/fairy-GGUF"),
    Command("pull hf.co/example/fairy-GGUF:q4_0"),
    Command("list"),
    Command("rm hf.co/example/fairy-GGUF:Q4_0 hf.co/example/fairy-GGUF:F16", 3),
    Command("rm hf.co/example/fairy-GGUF:Q4_0"),
    """## A plan, before anything is loaded

The plan is a dry run of the same code, with one line for each account of memory. `--solve` adds the longest context
that fits in the budget, for each choice of keys, values and weights.
""",
    Command("plan fairy.gguf -c 256"),
    Command("plan fairy.gguf --memory 14MiB --solve", 4),
    """## One answer

The answer goes to stdout, everything else to stderr. The same seed gives the same answer again.
""",
    Command('run fairy.gguf "Once upon a time" -n 60 -s 7'),
    """## A chat

The lines after `>` were typed. `/help` lists the commands; Ctrl-C stops an answer, Ctrl-D ends the chat. A model that
was trained for conversations answers questions; this one continues the tale.
""",
    Command("chat fairy.gguf -n 40 -s 3 --no-history", keys=[
        (PROMPT, "There was once a king who had a golden bird." + ENTER),
        (PROMPT, "/set temp 0.2" + ENTER),
        (PROMPT, "/regen" + ENTER),
        (PROMPT, "/undo" + ENTER),
        (PROMPT, "/set tmep 1" + ENTER),
        (PROMPT, "/show stats" + ENTER),
        (PROMPT, "/bye" + ENTER)]),
    """## A packed directory, and weights from the disk

`mica pack` writes a copy that loads and streams faster and has checksums ([pack](pack.md)). If the budget is smaller
than the memory that a run needs, the weights that do not fit are streamed, and the answer is the same.
""",
    Command("pack fairy.gguf fairy-packed"),
    Command("pack fairy-packed --verify"),
    Command('run fairy-packed "Once upon a time" -n 60 -s 7 --memory 14MiB'),
    """## Errors

A message on stderr says what was found, what is allowed, and what to do. The exit code tells the kind of the error
([all codes](cli.md#exit-codes)).

### Exit code 0: done
""",
    Command('complete fairy.gguf "The end of the tale is" -n 8 --temp 0'),
    "### Exit code 1: failed while running\n",
    Command("plan http://localhost:9/story.gguf", 1),
    "### Exit code 2: usage\n",
    Command('run fairy.gguf "Once upon a time" --tmep 0.5', 2),
    Command("run fairy.gguf --temp hot", 2),
    Command("hepl", 2),
    "### Exit code 3: a file\n",
    Command('run fary.gguf "Once upon a time"', 3),
    Command("inspect fairy-cut.gguf", 3),
    Command("inspect page.gguf", 3),
    "### Exit code 4: the budget\n",
    Command('run fairy.gguf "Once upon a time" --memory 6MiB', 4),
    "### Exit code 5: not supported\n",
    Command("run mamba.gguf Hello", 5),
    "### Exit code 6: a limit\n",
    Command('complete fairy.gguf "Once upon a time there was a king who had a daughter" -c 4', 6),
    """### Exit code 129: the terminal was closed

The program saves the session when it receives SIGHUP, and the same command continues it.
""",
    Command("chat fairy.gguf -n 20 -s 3 --no-history --session work", 129, keys=[
        (PROMPT, "There was once a king." + ENTER),
        (PROMPT, HANG_UP)]),
    """### Exit code 130: interrupted

Ctrl-C was pressed while a file was written; the unfinished file is removed.
""",
    Command("synth llama-1b F16 big.gguf", 130, keys=[(" left", CTRL_C)], shows_progress=True),
]


class Hub(http.server.BaseHTTPRequestHandler):
    """A site with one repository, by the API of Hugging Face; bytes come slowly enough for a line of progress."""

    files = {}  # name: bytes
    repo = "example/fairy-GGUF"
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = urllib.parse.urlsplit(self.path).path
        resolve = f"/{self.repo}/resolve/{COMMIT}/"
        if path == f"/api/models/{self.repo}/revision/main":
            self.send(200, json.dumps({"id": self.repo, "sha": COMMIT}).encode())
        elif path == f"/api/models/{self.repo}/tree/{COMMIT}":
            self.send(200, json.dumps([self.entry(*each) for each in self.files.items()]).encode())
        elif path.startswith(resolve) and path[len(resolve):] in self.files:
            self.send_range(self.files[path[len(resolve):]])
        else:
            self.send(404, b"")

    @staticmethod
    def entry(name, content):
        size = len(content)
        return {"type": "file", "path": name, "size": size,
                "lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": size}}

    def send(self, status, body, fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for at in range(0, len(body), 1 << 17):
            self.wfile.write(body[at:at + (1 << 17)])
            if len(body) > 1 << 20:
                time.sleep(0.06)

    def send_range(self, content):
        first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups()
        first, last = int(first), min(int(last), len(content) - 1)
        self.send(206, content[first:last + 1], [("Content-Range", f"bytes {first}-{last}/{len(content)}")])


class Screen:
    """The lines of a terminal without an upper end. Colours are left out."""

    def __init__(self):
        self.lines, self.row, self.column, self.rest = [""], 0, 0, ""
        self.progress = {}  # row: the lines of progress that were there

    def feed(self, text):
        text = self.rest + text
        self.rest = ""
        for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[^\[]|\x1b\[?[0-9;?]*$|[\x00-\x1f]|[^\x00-\x1f]+", text):
            if piece.startswith("\x1b["):
                self.control(piece[2:-1], piece[-1]) if piece[-1].isalpha() else self.keep(piece)
            elif piece.startswith("\x1b"):
                self.keep(piece) if len(piece) == 1 else None
            elif piece == "\n":
                self.row, self.column = self.row + 1, 0 if self.column == 0 else self.column
                while len(self.lines) <= self.row:
                    self.lines.append("")
            elif piece == "\r":
                if "[#" in self.lines[self.row]:
                    self.progress.setdefault(self.row, []).append(self.lines[self.row].rstrip())
                self.column = 0
            elif piece == "\b":
                self.column = max(0, self.column - 1)
            elif piece >= " ":
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[:self.column] + piece + line[self.column + len(piece):]
                self.column += len(piece)

    def keep(self, piece):
        self.rest = piece

    def control(self, numbers, letter):
        n = int(numbers) if numbers.isdigit() else 1
        if letter == "K":
            self.lines[self.row] = "" if numbers == "2" else self.lines[self.row][:self.column]
        elif letter == "J":
            self.lines[self.row] = self.lines[self.row][:self.column]
            del self.lines[self.row + 1:]
        elif letter == "C":
            self.column += n
        elif letter == "D":
            self.column = max(0, self.column - n)
        elif letter == "G":
            self.column = n - 1
        elif letter == "A":
            self.row = max(0, self.row - n)

    def text(self, shows_progress):
        lines = []
        for row, line in enumerate(self.lines):
            seen = self.progress.get(row, [])
            if shows_progress and seen:
                lines.append(min(seen, key=lambda each: abs(int(re.search(r"(\d+) %", each).group(1)) - 50)))
            lines.append(line.rstrip())
        return lines


def run(command, mica, folder, environment):
    """The lines that a command leaves on a terminal."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    words = ["/bin/sh", "-c", f'exec "$0" {command.line}', str(mica)]
    process = subprocess.Popen(words, stdin=child, stdout=child, stderr=child, cwd=folder, env=environment,
                               close_fds=True, start_new_session=True,
                               preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(child)
    screen, keys, unread = Screen(), list(command.keys), ""
    while True:
        ready, _, _ = select.select([parent], [], [], 60)
        if not ready:
            process.kill()
            sys.exit(f"mica {command.line}: silent for a minute\n" + "\n".join(screen.text(True)))
        try:
            piece = os.read(parent, 65536).decode("utf-8", "replace")
        except OSError:
            break
        if not piece:
            break
        screen.feed(piece)
        unread += piece
        if keys and keys[0][0] in unread:
            _, press = keys.pop(0)
            unread = ""
            time.sleep(0.3)  # the line editor is ready
            if isinstance(press, str):
                os.write(parent, press.encode())
            else:
                os.kill(process.pid, press)
    os.close(parent)
    code = process.wait()
    if code != command.code or keys:
        sys.exit(f"mica {command.line}: exit code {code}, expected {command.code}; not pressed: {keys}\n"
                 + "\n".join(screen.text(True)))
    return screen.text(command.shows_progress)


def wrapped(line):
    """A line as parts of at most COLUMNS columns, cut before a word."""
    parts = []
    while len(line) > COLUMNS:
        cut = line.rfind(" ", 0, COLUMNS + 1)
        cut = COLUMNS if cut <= 0 else cut
        parts.append(line[:cut].rstrip())
        line = line[cut:].lstrip()
    return parts + [line]


def filled(text):
    """A text of a page, its paragraphs in lines of at most 110 columns."""
    parts = [part if part.startswith(("#", " ")) else textwrap.fill(part, 110, break_on_hyphens=False)
             for part in text.strip().split("\n\n")]
    return "\n\n".join(parts) + "\n"


def prepare(folder, mica, environment):
    """Files of the folder and of the hub."""
    story = BUNDLED.read_bytes()
    (folder / "fairy.gguf").write_bytes(story)
    (folder / "fairy-cut.gguf").write_bytes(story[:1_000_000])
    (folder / "page.gguf").write_text("<!DOCTYPE html><title>Not found</title>\n")
    at = story.index(b"llama", story.index(b"general.architecture"))
    (folder / "mamba.gguf").write_bytes(story[:at] + b"mamba" + story[at + 5:])
    subprocess.run([mica, "quantize", "fairy.gguf", "fairy-Q4_0.gguf", "Q4_0", "--allow-requantize", "-q"], check=True,
                   cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    Hub.files = {"fairy-Q8_0.gguf": story, "fairy-Q4_0.gguf": (folder / "fairy-Q4_0.gguf").read_bytes()}
    (folder / "fairy-Q4_0.gguf").unlink()


def recorded(mica, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MICA_", "HF_", "XDG_"))}
    environment.update(HOME=str(folder), TERM="xterm-256color", LC_ALL="C.UTF-8", NO_COLOR="1")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    environment["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    prepare(folder, mica, environment)
    page, block = [], []

    def end_block():
        if block:
            page.append("```\n" + "\n".join(block) + "\n```\n")
            block.clear()

    for item in PAGE:
        if isinstance(item, str):
            end_block()
            page.append(filled(item.replace("{columns}", str(COLUMNS))))
            continue
        print(f"mica {item.line}", file=sys.stderr)
        if block:
            block.append("")
        block.append(f"$ mica {item.line}")
        lines = [line.replace(str(folder), HOME) for line in run(item, mica, folder, environment)]
        while lines and not lines[-1]:
            lines.pop()
        for line in lines:
            block.extend(wrapped(line))
        block.extend(["$ echo $?", str(item.code)] if item.code or "### Exit code" in page[-1] else [])
    end_block()
    server.shutdown()
    return "\n".join(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mica", type=pathlib.Path, default=pathlib.Path("build/release/mica"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("docs/session.md"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = recorded(options.mica.resolve(), pathlib.Path(folder).resolve())
    options.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
