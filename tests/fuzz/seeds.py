#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the inputs from which searches begin: small valid files and texts for the targets that read those.

  tests/fuzz/seeds.py FOLDER      makes FOLDER/TARGET/NAME

Targets whose inputs are programs of bytes have none: a search finds them from nothing."""

import argparse
import json
import struct
from pathlib import Path


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(value)) + value


def gguf(keys, tensors, data=b""):
    """keys: (name, type, bytes of the value); tensors: (name, dims, type, offset)."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for name, kind, value in keys:
        out += text(name) + struct.pack("<I", kind) + value
    for name, dims, kind, offset in tensors:
        out += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        out += struct.pack("<IQ", kind, offset)
    return out + b"\0" * (-len(out) % 32) + data


def strings(values):
    return struct.pack("<IQ", 8, len(values)) + b"".join(text(v) for v in values)


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(number, value):
    """A field of a protocol buffer: a number, a float or bytes."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(spelled, score, kind=1):
    return field(1, field(1, spelled.encode()) + field(2, score) + field(3, kind))


def sentencepiece(kind):
    pieces = [piece("<unk>", 0.0, 2), piece("<s>", 0.0, 3), piece("</s>", 0.0, 3)]
    pieces += [piece(t, -float(i)) for i, t in enumerate(["\u2581", "a", "b", "ab", "\u2581a"])]
    return b"".join(pieces) + field(2, field(3, kind) + field(41, 1)) + field(3, field(3, 1) + field(4, 1))


def charsmap():
    """'A' is replaced by 'a': a trie of one key. Unit i ^ offset ^ byte is the child."""
    units = [0] * 512
    units[0] = 256 << 10
    child = 256 ^ ord("A")
    units[child] = ord("A") | 1 << 8 | 2 << 10
    units[child ^ 2] = 1 << 31
    trie = struct.pack("<512I", *units)
    return struct.pack("<I", len(trie)) + trie + b"a\0"


def folder(*files):
    return "\n---\n".join(f if isinstance(f, str) else json.dumps(f) for f in files).encode()


def hf_folders():
    config = {
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
        "vocab_size": 12,
        "eos_token_id": [2, 5],
    }
    added = [{"id": 10, "content": "<s>", "special": True}, {"id": 11, "content": "</s>", "special": True}]
    letters = {t: i for i, t in enumerate(["a", "b", "c", "ab", "abc"])}
    settings = {
        "bos_token": "<s>",
        "eos_token": {"content": "</s>"},
        "add_bos_token": True,
        "chat_template": "x",
    }
    around = {
        "type": "TemplateProcessing",
        "special_tokens": {"<s>": {"id": "<s>", "ids": [10], "tokens": ["<s>"]}},
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    }
    bpe = {"type": "BPE", "vocab": letters, "merges": ["a b", ["ab", "c"]]}
    byte_level = {
        "added_tokens": added,
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True},
        "decoder": {"type": "ByteLevel"},
        "model": bpe,
        "post_processor": around,
    }
    spm = {
        "added_tokens": added,
        "normalizer": {"type": "Prepend", "prepend": "\u2581"},
        "model": {**bpe, "byte_fallback": True, "unk_token": "a"},
    }
    wordpiece = {
        "normalizer": {"type": "BertNormalizer", "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4},
        },
    }
    unigram = {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581a", -1.5], ["b", -2.0]]},
    }
    return {
        "byte_level": folder(config, byte_level, settings, {"eos_token_id": [11]}),
        "spm": folder(config, spm, settings, {}, {"chat_template": [{"name": "default", "template": "y"}]}),
        "wordpiece": folder(config, wordpiece, {}),
        "unigram": folder(config, unigram, {}),
    }


def reply(head, body=b""):
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def replies():
    file = gguf([("a", 4, struct.pack("<I", 7))], [("t", [4], 0, 0)], b"\0" * 16)
    n = len(file)
    part = [
        "HTTP/1.1 206 Partial Content",
        f"Content-Range: bytes 0-{n - 1}/{n}",
        f"Content-Length: {n}",
        'ETag: "x"',
    ]
    return {
        "file": b"../c?d\n" + reply(part, file),
        "cut": b"//other.org:81/x\n" + reply(part, file[:40]) + b"\n---\n" + reply(part[:1]),
        "whole": b"http://[::1]/\n" + reply(["HTTP/1.1 200 OK", f"Content-Length: {n}"], file),
        "sent_on": b"\n" + reply(["HTTP/1.1 302 Found", "Location: /b"]),
    }


def seeds():
    numbers = struct.pack("<IQ", 4, 3) + struct.pack("<3I", 1, 2, 3)
    keys = [
        ("general.alignment", 4, struct.pack("<I", 32)),
        ("a", 8, text("b")),
        ("c", 9, numbers),
        ("d", 9, strings(["x", "yz"])),
        ("e", 6, struct.pack("<f", 1.5)),
    ]
    floats = struct.pack("<4f", 1, 2, 3, 4)
    matrix = gguf(
        [("general.type", 8, text("imatrix")), ("imatrix.datasets", 9, strings(["d"]))],
        [("t.in_sum2", [4, 1], 0, 0), ("t.counts", [1, 1], 0, 32)],
        floats + b"\0" * 16 + floats[:4],
    )
    legacy = struct.pack("<ii1sii4f", 1, 1, b"t", 2, 4, 1, 2, 3, 4) + struct.pack("<ii1s", 5, 1, b"d")
    rows = (struct.pack("<2f4H", 0.001, -9.0, 1, 2, 3, 0)) * 3
    logits = b"_logits_" + struct.pack("<3i", 8, 3, 1) + struct.pack("<8i", *([0, 1, 2, 1] * 2)) + rows
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
            "b": {"dtype": "BF16", "shape": [], "data_offsets": [8, 10]},
        }
    ).encode()
    grammar = (
        b'root ::= (item "," ws)* item\nitem ::= [a-c]{1,3} | "\\"" [^"\\\\]+ "\\"" | !"ab"\n'
        b'ws ::= [ \\t]? # c\n'
    )
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"$ref": "#/$defs/s"}},
        "required": ["a"],
        "$defs": {"s": {"type": "string", "pattern": "^a+$", "maxLength": 4}},
    }
    lists = {
        "type": "array",
        "items": {"anyOf": [{"enum": [1, "a"]}, {"multipleOf": 0.5}]},
        "uniqueItems": True,
        "contains": {"const": 1},
        "maxItems": 3,
    }
    chat = {
        "model": "tiny",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        "temperature": 0.5,
        "stream": True,
        "n": 2,
        "stop": ["x"],
        "logprobs": True,
        "top_logprobs": 2,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    }
    plain = {
        "model": "tiny",
        "prompt": "a",
        "input": ["a", [5, 6]],
        "query": "q",
        "documents": ["d", "e"],
        "content": "c",
        "tokens": [70, 71],
        "n_predict": 4,
        "max_tokens": 3,
        "options": {"top_k": 3},
    }
    config = b'# c\ntop-k = 20\n[run]\nsystem-prompt = "a \\"b\\" \\u00e9"\nstop = [\'x\', "y", # z\n 1]\n'
    return {
        "gguf": {"small": gguf(keys, [("t", [4], 0, 0), ("u", [32, 2], 8, 32)], b"\0" * 100)},
        "json": {"values": b'{"a": [1, -2.5e3, "x\\u00e9\\n\\ud83d\\ude00", null, true, {}], "b": 1e308}'},
        "grammar": {
            "gbnf": bytes(9) + grammar,
            "regex": b"\1" + bytes(8) + b"(?=a)(ab|c+?)*[^x-z\\d]{2,}\\p{L}?$",
        },
        "schema": {
            "object": bytes(9) + json.dumps(schema).encode(),
            "list": b"\2" * 9 + json.dumps(lists).encode(),
        },
        "charsmap": {"letter": struct.pack("<H", len(charsmap())) + charsmap() + b"AbA \xc3\xa9 \xff"},
        "safetensors": {
            "header": b"\1" + header + b"\n" + b"\0" * 9,
            "any": struct.pack("<BQ", 0, 2) + b"{}",
        },
        "sentencepiece": {"bpe": b"\7\0" + sentencepiece(2), "unigram": b"\7\1" + sentencepiece(1)},
        "hf_folder": hf_folders(),
        "imatrix": {"gguf": matrix, "legacy": legacy},
        "base_logits": {"window": logits},
        "range_reply": replies(),
        "configuration": {"all": config},
        "api": {
            f"{i:02}": bytes([i, 0]) + json.dumps(chat if i in (0, 2, 12) else plain).encode()
            for i in range(24)
        },
    }


def main():
    parser = argparse.ArgumentParser(description="Makes small valid files, in FOLDER/TARGET for some targets.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for target, files in seeds().items():
        place = folder / target
        place.mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (place / name).write_bytes(data)


if __name__ == "__main__":
    main()
