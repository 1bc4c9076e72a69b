#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# A server with the routes that the page uses and no model: the page with its policy, /v1/models,
# /v1/chat/completions as a stream, /props and /slots. The first word of the last paragraph chooses the
# answer:
#
#   busy    429 with Retry-After          fail   500           break   an error within the stream
#   cut     a connection that ends early  think  thoughts before the answer
#   inject  HTML, scripts and addresses that must stay text        long    1000 words
#
# Anything else is answered with some Markdown.
#
#   tests/clients/page_stub.py [--port N] [--key KEY] [--policy]
#
# --policy prints the Content-Security-Policy of the page, computed apart from CMake's, and ends.

import argparse
import base64
import hashlib
import json
import pathlib
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = pathlib.Path(__file__).parents[2] / "examples/run/serve/page.html"
MIB = 1 << 20

MARKDOWN = """# Layers of mica

Mica is a mineral of **thin, even sheets**. They split *perfectly*, and each one is strong. Its name has the \
same root as `micare`, to shine: see [the encyclopedia](https://en.wikipedia.org/wiki/Mica).

## Where it is used

1. In windows of stoves, since it does not melt.
   - clear sheets
   - few bubbles
2. In capacitors.

| Kind | Colour | Hardness |
|---|---|---|
| Muscovite | silver | 2.5 |
| Biotite | black, brown | 2.5 to 3 |

```python
def sheets(thickness_um, sheet_um=25):
    # whole sheets alone; a line that is long enough to be scrolled at the width of a telephone, and then some
    return thickness_um // sheet_um
```

> It peels like the pages of a book.

Each sheet bends and springs back. That is all.
"""

INJECT = """<img src=x onerror="window.injected = 1"> <script>window.injected = 2</script>

[a link](javascript:window.injected=3) and [data](data:text/html,<script>window.injected=4</script>)

![picture](x" onerror="window.injected=5) <a href="javascript:window.injected=6">here</a> <style>*{display:none}</style>

```<img src=x onerror=window.injected=7>
</code></pre><script>window.injected = 8</script>
```

| <b>a</b> | <svg onload=window.injected=9> |
|---|---|
| `</td><script>window.injected=10</script>` | [x](https://example.org/"onmouseover="window.injected=11) |

# <iframe srcdoc="<script>window.injected=12</script>">
"""


def policy(page: bytes) -> str:
    """The Content-Security-Policy of a page with one style and one script."""

    def digest(tag: bytes) -> str:
        (body,) = re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), page, re.S)
        return "'sha256-" + base64.b64encode(hashlib.sha256(body).digest()).decode() + "'"

    return (
        f"default-src 'none'; style-src {digest(b'style')}; script-src {digest(b'script')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class State:
    """What the fake ledger and slots show; one for all connections."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running = {}  # id -> slot
        self.next = 1
        self.kept = 0

    def props(self):
        with self.lock:
            kv = (
                sum(s["n_prompt_tokens"] + s["n_decoded"] for s in self.running.values()) * MIB // 4
                + self.kept
            )
            reserved = sum(s["max_tokens"] - s["n_decoded"] for s in self.running.values()) * MIB // 4
            busy = bool(self.running)
        accounts = {
            "weights": 1890 * MIB,
            "kv": kv,
            "state": 0,
            "checkpoints": 24 * MIB,
            "activations": 118 * MIB,
            "logits": 3 * MIB,
            "tokenizer": 21 * MIB,
            "io_buffers": 64 * MIB if busy else 0,
            "process": 26 * MIB,
        }
        used = sum(accounts.values())
        return {
            "default_generation_settings": {"n_ctx": 8192},
            "total_slots": 4,
            "ledger": {
                "budget_bytes": 3072 * MIB,
                "used_bytes": used,
                "peak_bytes": max(used, 2460 * MIB),
                "accounts": accounts,
                "reserved_bytes": reserved,
                "prefix_bytes": self.kept,
                "disk_read_bytes": 410 * MIB,
            },
        }


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port, key, pause):
        super().__init__(("127.0.0.1", port), Handler)
        self.state, self.key, self.pause = State(), key, pause

    def handle_error(self, request, client_address):  # a browser closes connections when it likes
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, value, status=200, headers=()):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (
            ("Content-Length", str(len(body))),
            ("X-Content-Type-Options", "nosniff"),
            *headers,
        ):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, message, kind, headers=()):
        self.reply({"error": {"code": status, "message": message, "type": kind}}, status, headers)

    def allowed(self):
        key = self.server.key
        if not key or self.headers.get("Authorization") == f"Bearer {key}":
            return True
        self.refuse(401, "This server needs an API key: Authorization: Bearer KEY.", "authentication_error")
        return False

    def do_GET(self):
        if self.path == "/":
            page = PAGE.read_bytes()
            headers = (
                ("Content-Type", "text/html; charset=utf-8"),
                ("Content-Security-Policy", policy(page)),
                ("Referrer-Policy", "no-referrer"),
            )
            self.reply(page, 200, headers)
        elif not self.allowed():
            return
        elif self.path == "/v1/models":
            names = ("granite-3b-Q4_K_M", "fairy")
            self.reply(
                {"object": "list", "data": [{"id": n, "object": "model", "created": 0} for n in names]}
            )
        elif self.path == "/props":
            self.reply(self.server.state.props())
        elif self.path == "/slots":
            with self.server.state.lock:
                self.reply(list(self.server.state.running.values()))
        else:
            self.refuse(404, f"No route {self.path}.", "not_found_error")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.allowed():
            return
        words = body["messages"][-1]["content"].split("\n\n")[-1].split()
        kind = words[0].strip(",.:") if words else ""
        if kind == "busy":
            text = "The queue is full: 8 answers wait, 8 is the maximum."
            self.refuse(429, text, "rate_limit_error", (("Retry-After", "12"),))
        elif kind == "fail":
            self.refuse(500, "disk read failed: <b>layer 7</b>", "server_error")
        else:
            self.stream(body, kind)

    def stream(self, body, kind):
        state = self.server.state
        answer = {"inject": INJECT, "long": "A word follows a word. " * 200}.get(kind, MARKDOWN)
        pieces = re.findall(r"\S+\s*|\s+", answer)
        prompt = sum(len(m["content"].split()) for m in body["messages"]) + 20
        limit = body.get("max_tokens", 512)
        slot = {
            "id": state.next,
            "is_processing": True,
            "state": "running",
            "n_prompt_tokens": prompt,
            "n_prompt_tokens_processed": prompt,
            "n_prompt_tokens_cache": 12,
            "n_decoded": 0,
            "max_tokens": limit,
        }
        with state.lock:
            state.next += 1
            state.running[slot["id"]] = slot
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self.event({"role": "assistant", "content": None})
            time.sleep(0.15)
            thoughts = "The user asks about sheets. Sheets are thin." if kind == "think" else ""
            for piece in re.findall(r"\S+\s*", thoughts):
                self.event({"reasoning_content": piece})
                time.sleep(self.server.pause)
            begin = time.time()
            for i, piece in enumerate(pieces[:limit]):
                if kind == "break" and i == 5:
                    self.data(
                        {"error": {"message": "The answer ended: no memory left.", "type": "server_error"}}
                    )
                    return
                if kind == "cut" and i == 5:
                    return
                slot["n_decoded"] = i + 1
                self.event({"content": piece})
                time.sleep(self.server.pause)
            self.event({}, "length" if len(pieces) > limit else "stop")
            count = min(limit, len(pieces))
            usage = {
                "prompt_tokens": prompt,
                "completion_tokens": count,
                "total_tokens": prompt + count,
                "prompt_tokens_details": {"cached_tokens": 12},
            }
            timings = {"predicted_per_second": count / (time.time() - begin)}
            self.data({"choices": [], "usage": usage, "timings": timings})
            self.wfile.write(b"data: [DONE]\n\n")
        except ConnectionError:  # the client has left
            pass
        finally:
            self.close_connection = True
            with state.lock:
                del state.running[slot["id"]]
                state.kept += slot["n_decoded"] * MIB // 8

    def event(self, delta, reason=None):
        self.data(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            }
        )

    def data(self, value):
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="")
    parser.add_argument("--pause", type=float, default=0.03, help="seconds between two words")
    parser.add_argument("--policy", action="store_true")
    options = parser.parse_args()
    if options.policy:
        print(policy(PAGE.read_bytes()))
        return
    server = Server(options.port, options.key, options.pause)
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
