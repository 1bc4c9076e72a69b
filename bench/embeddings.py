#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeddings of mica beside those of ONNX Runtime and llama-server: how near, and how fast.

usage: bench/embeddings.py MODEL.gguf --folder DIR [--onnx FILE] [--faster FILE] [--server URL]
                           [--pooling mean] [--texts FILE] [--count 200]
                           [--queries FILE --documents FILE] [--rounds 3] [--seconds 1] [--threads 2]
                           [--mica build/release/mica] [--bench build/release/bench/embed_bench] [--json FILE]

DIR is the Hugging Face folder of the same model, for its tokenizer.json. --onnx: the model in floats as ONNX,
with the inputs input_ids, attention_mask and token_type_ids and the states as its first output; `count`
texts, made of the words of --texts, are embedded by all, and the cosines with it are printed. --pooling: how
ONNX Runtime's states of a text become one row, mean or cls; mica does what its file says. --queries,
--documents: a text on each line; the order in which documents follow each query is compared. --faster: the
model that ONNX Runtime is timed with, such as one of int8. --server: a llama-server with the same GGUF file
and --embeddings. --rounds 0 times nothing.

Texts of 16, 128 and 512 random tokens are timed, one and 64 in a call; programs take turns for each size in
each round, and medians of the rounds are printed. mica runs with both of its kernels, exact and fast8. Needs
numpy, onnxruntime and tokenizers for what is asked of them.
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


def embed_by_onnx(session, ids, pooling):
    """Rows of length 1 of texts of one length, (texts, tokens)."""
    import numpy as np
    states = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids),
                                "token_type_ids": np.zeros_like(ids)})[0]
    rows = states[:, 0] if pooling == "cls" else states.mean(1)
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


def embed_by_mica(options, texts, kernels, *flags):
    import numpy as np
    with tempfile.TemporaryDirectory() as folder:
        lines, rows = pathlib.Path(folder, "texts"), pathlib.Path(folder, "rows.npy")
        lines.write_text("\n".join(texts))
        words = [options.mica, "embed", options.model, "--lines", lines, "--npy", rows, "-q",
                 "--kernels", kernels, *flags]
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
        return np.concatenate([embed_by_onnx(model, each, options.pooling) for each in ids])

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


def compare_orders(options):
    """How many queries have the documents in the order that the model in floats gives them."""
    import numpy as np
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    queries, documents = ([line for line in path.read_text().split("\n") if line.strip()]
                          for path in (options.queries, options.documents))
    model = session(options.onnx, options.threads)
    texts = queries + documents
    reference = np.concatenate([embed_by_onnx(model, np.array([tokenizer.encode(text).ids]), options.pooling)
                                for text in texts])

    def orders(rows):
        return np.argsort(-(rows[:len(queries)] @ rows[len(queries):].T), kind="stable")

    right, result = orders(reference), {}
    for name, kernels in (("mica", "exact"), ("mica, fast8", "fast8")):
        found = orders(embed_by_mica(options, texts, kernels, "--truncate"))
        result[name] = {"queries": len(queries), "documents": len(documents),
                        "first_same": int((found[:, 0] == right[:, 0]).sum()),
                        "ten_same": int((found[:, :10] == right[:, :10]).all(1).sum()),
                        "all_same": int((found == right).all(1).sum())}
        print(f"{name}: of {len(queries)} queries {result[name]['first_same']} have the same first document, "
              f"{result[name]['ten_same']} the same first ten in order, {result[name]['all_same']} all "
              f"{len(documents)} in order")
    return result


def median_rate(call, texts, seconds):
    call()
    times, start = [], time.monotonic()
    while time.monotonic() - start < seconds or len(times) < 2:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return texts / statistics.median(times)


def time_mica(options, tokens, texts, *flags):
    done = subprocess.run([options.bench, options.model, "--tokens", str(tokens), "--texts", str(texts),
                           "--seconds", str(options.seconds), "--threads", str(options.threads), *flags],
                          capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1].split("|")[3])


def time_onnx(options, model, tokens, texts):
    import numpy as np
    ids = np.random.default_rng(1).integers(FIRST, LAST, (texts, tokens))
    return median_rate(lambda: embed_by_onnx(model, ids, options.pooling), texts, options.seconds)


def time_server(options, tokens, texts):
    draw = random.Random(1)
    ids = [[CLS, *(draw.randrange(FIRST, LAST) for _ in range(tokens - 2)), SEP] for _ in range(texts)]
    body, header = json.dumps({"content": ids}).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(options.server + "/embedding", body, header)
    return median_rate(lambda: urllib.request.urlopen(request).read(), texts, options.seconds)


def compare_speeds(options):
    programs = {"mica": lambda *size: time_mica(options, *size),
                "mica, fast8": lambda *size: time_mica(options, *size, "--fast8")}
    if options.faster:
        model = session(options.faster, options.threads)
        programs["ONNX Runtime"] = lambda *size: time_onnx(options, model, *size)
    if options.server:
        programs["llama-server"] = lambda *size: time_server(options, *size)
    print("| tokens of a text | texts in a call |", " | ".join(programs), "|")
    print("|---|---|" + "---|" * len(programs))
    rows = []
    for size in SIZES:
        rounds = [{name: run(*size) for name, run in programs.items()} for _ in range(options.rounds)]
        rates = {name: [round(each[name], 1) for each in rounds] for name in programs}
        rows.append({"tokens": size[0], "texts": size[1], "texts_per_second": rates})
        medians = " | ".join(f"{statistics.median(rate):.1f}" for rate in rates.values())
        print(f"| {size[0]} | {size[1]} | {medians} |", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--folder", type=pathlib.Path)
    for name in ("onnx", "faster", "server"):
        parser.add_argument(f"--{name}")
    for name in ("texts", "queries", "documents"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    parser.add_argument("--pooling", choices=("mean", "cls"), default="mean")
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
        if options.count > 0:
            result["cosine"] = compare_rows(options)
        if options.queries:
            result["orders"] = compare_orders(options)
    if options.rounds > 0:
        result["rows"] = compare_speeds(options)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


main()
