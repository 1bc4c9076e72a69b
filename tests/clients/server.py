# SPDX-License-Identifier: Apache-2.0
"""Starts `mica serve` for clients, and makes a model whose answers end, and one whose answers do not.

  tests/clients/server.py PROGRAM TALE ENDLESS     writes them to these two files"""

import json
import pathlib
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
FAIRY = HERE.parent.parent / "examples/models/fairy.gguf"
CONTEXT = 16384  # tokens, so that an answer is long enough to be left


class Missing(Exception):
    """What a client needs is not here."""


def with_eos(path, token):
    """The bundled model with another EOS."""
    model = bytearray(FAIRY.read_bytes())
    key = b"tokenizer.ggml.eos_token_id"
    at = model.index(key) + len(key)  # then the type, u32, and the value
    assert struct.unpack_from("<I", model, at) == (4,)
    struct.pack_into("<I", model, at + 4, token)
    path.write_bytes(model)
    return str(path)


def tale_that_ends_at_a_full_stop(program, path):
    """By itself the bundled model seldom ends a tale."""
    shown = subprocess.run([program, "tokenize", str(FAIRY), ".", "--json"], check=True, capture_output=True, text=True)
    ids = json.loads(shown.stdout)["ids"]
    assert len(ids) == 1, ids
    return with_eos(path, ids[0])


def serve(program, models, flags=(), **others):
    """The server and its address."""
    server = subprocess.Popen([program, "serve", *models, "--port", "0", "-c", str(CONTEXT), "--chat-template",
                               "chatml", "--parallel", "8", *flags], stdout=subprocess.PIPE, text=True, **others)
    line = server.stdout.readline()
    if not line:
        code = server.wait()
        if code == 5:  # a program without cpp-httplib
            raise Missing("this build of mica has no server")
        sys.exit(f"clients: mica serve ended with {code}")
    return server, json.loads(line)["url"]


if __name__ == "__main__":
    tale_that_ends_at_a_full_stop(sys.argv[1], pathlib.Path(sys.argv[2]))
    with_eos(pathlib.Path(sys.argv[3]), 0)  # the unknown token, which is never sampled
