#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeddings of mica beside those of ONNX Runtime and llama-server: how near, and how fast.

usage: bench/embeddings.py MODEL.gguf --folder DIR [--onnx FILE] [--faster FILE] [--server URL]
                           [--texts FILE] [--count 200] [--rounds 3] [--seconds 1] [--threads 2]
                           [--mica build/release/mica] [--bench build/release/bench/embed_bench] [--json FILE]

DIR is the Hugging Face folder of the same model, for its tokenizer.json. --onnx: the model in floats as ONNX,
with the inputs input_ids, attention_mask and token_type_ids and the states as its first output; `count`
texts, made of the words of --texts, are embedded by all, and the cosines with it are printed (mean pooling).
--faster: the model that ONNX Runtime is timed with, such as one of int8. --server: a llama-server with the
same GGUF file and --embeddings. --rounds 0 times nothing.

Texts of 16, 128 and 512 random tokens are timed, one and 64 in a call; programs take turns in each round, and
medians of the rounds are printed. mica runs with both of its kernels, exact and fast8. Needs numpy,
onnxruntime and tokenizers for what is asked of them.
"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile
import time
import urllib.request

SIZES = [(tokens, texts) for tokens in (16, 128, 512) for texts in (1, 64)]
CLS, SEP, FIRST, LAST = 101, 102, 1000, 30000  # of BERT's vocabulary: random tokens are words


def session(path, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def embed_by_onnx(session, ids):
    """Rows of length 1 of texts of one length, (texts, tokens)."""
    import numpy as np
    states = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids),
                                "token_type_ids": np.zeros_like(ids)})[0]
    rows = states.mean(1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def draw_texts(path, count, tokenizer):
    words, draw, texts = path.read_text(errors="ignore").split(), random.Random(1), []
    while len(texts) < count:
        n = draw.choice([3, 8, 15, 30, 60, 120])
        first = draw.randrange(len(words) - n)
        text = " ".join(words[first:first + n])
        if len(tokenizer.encode(text).ids) <= 500:
            texts.append(text)
    return texts


def embed_by_mica(options, texts, kernels):
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        lines, rows = pathlib.Path(folder, "texts"), pathlib.Path(folder, "rows.npy")
        lines.write_text("\n".join(texts))
        words = [options.mica, "embed", options.model, "--lines", lines, "--npy", rows, "-q",
                 "--kernels", kernels]
        subprocess.run(words, check=True)
        return np.load(rows)


def compare_rows(options):
    """The cosines of each program's rows with those of the model in floats."""
    import numpy as np
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    texts = draw_texts(options.texts, options.count, tokenizer)
    ids = [np.array([tokenizer.encode(text).ids]) for text in texts]

    def embed_by(model):
        return np.concatenate([embed_by_onnx(model, each) for each in ids])

    reference = embed_by(session(options.onnx, options.threads)).astype(np.float64)
    programs = {"mica": embed_by_mica(options, texts, "exact"),
                "mica, fast8": embed_by_mica(options, texts, "fast8")}
    if options.faster:
        programs["ONNX Runtime"] = embed_by(session(options.faster, options.threads))
    result = {}
    for name, rows in programs.items():
        found = (reference * rows).sum(1)
        result[name] = {"texts": len(found), "min": float(found.min()), "mean": float(found.mean())}
        print(f"{name}, {len(found)} texts: cosine {found.min():.9f} at least, "
              f"{found.mean():.9f} in the mean")
    return result


def median_rate(call, texts, seconds):
    call()
    times, start = [], time.monotonic()
    while time.monotonic() - start < seconds or len(times) < 2:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return texts / statistics.median(times)


def time_mica(options, *flags):
    done = subprocess.run([options.bench, options.model, "--seconds", str(options.seconds), "--threads",
                           str(options.threads), *flags], capture_output=True, text=True, check=True)
    rows = [line.split("|") for line in done.stdout.splitlines() if line[:3].strip("| ").isdigit()]
    return {(int(row[1]), int(row[2])): float(row[3]) for row in rows}


def time_onnx(options):
    import numpy as np
    model, draw = session(options.faster, options.threads), np.random.default_rng(1)
    rates = {}
    for tokens, texts in SIZES:
        ids = draw.integers(FIRST, LAST, (texts, tokens))
        call = lambda ids=ids: embed_by_onnx(model, ids)  # noqa: E731
        rates[tokens, texts] = median_rate(call, texts, options.seconds)
    return rates


def time_server(options):
    draw, rates = random.Random(1), {}
    for tokens, texts in SIZES:
        ids = [[CLS, *(draw.randrange(FIRST, LAST) for _ in range(tokens - 2)), SEP] for _ in range(texts)]
        body, header = json.dumps({"content": ids}).encode(), {"Content-Type": "application/json"}
        request = urllib.request.Request(options.server + "/embedding", body, header)
        call = lambda request=request: urllib.request.urlopen(request).read()  # noqa: E731
        rates[tokens, texts] = median_rate(call, texts, options.seconds)
    return rates


def compare_speeds(options):
    programs = {"mica": time_mica, "mica, fast8": lambda options: time_mica(options, "--fast8")}
    if options.faster:
        programs["ONNX Runtime"] = time_onnx
    if options.server:
        programs["llama-server"] = time_server
    rounds = [{name: run(options) for name, run in programs.items()} for _ in range(options.rounds)]
    print("| tokens of a text | texts in a call |", " | ".join(programs), "|")
    print("|---|---|" + "---|" * len(programs))
    rows = []
    for tokens, texts in SIZES:
        rates = {name: [each[name][tokens, texts] for each in rounds] for name in programs}
        rows.append({"tokens": tokens, "texts": texts, "texts_per_second": rates})
        medians = " | ".join(f"{statistics.median(rate):.1f}" for rate in rates.values())
        print(f"| {tokens} | {texts} | {medians} |")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--folder", type=pathlib.Path)
    for name in ("onnx", "faster", "server"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--texts", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mica", default="build/release/mica")
    parser.add_argument("--bench", default="build/release/bench/embed_bench")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    result = {"model": pathlib.Path(options.model).name, "threads": options.threads}
    if options.onnx:
        result["cosine"] = compare_rows(options)
    if options.rounds > 0:
        result["rows"] = compare_speeds(options)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


main()
