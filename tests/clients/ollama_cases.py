# SPDX-License-Identifier: Apache-2.0
"""Ollama's library for Python."""

import json
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import ollama
from checks import (CITIES, EMBEDDER, LONG, MODEL, PARAMETERS, SENTENCES, URL, WEATHER, case, check_similarities,
                    embedding_case, is_weather, leaves, raised, run_cases, similarity)

client = ollama.Client(host=URL)
ASK = [{"role": "user", "content": "Tell me about a king."}]


def chat(messages=ASK, model=LONG, stream=False, logprobs=None, **options):
    return client.chat(model=model, messages=messages, stream=stream, logprobs=logprobs,
                       top_logprobs=2 if logprobs else None,
                       options={"temperature": 0, "num_predict": 40, **options})


@case
def models():
    names = [model.model for model in client.list().models]
    assert len(names) == 2 + (EMBEDDER is not None) and LONG in names[1], names
    shown = client.show(LONG)
    assert shown.details.family == "llama" and shown.modelinfo["llama.context_length"] == 256
    chat()
    assert LONG in [model.model.removesuffix(":latest") for model in client.ps().models]


@case
def a_chat():
    answer = chat()
    assert answer.message.role == "assistant" and answer.message.content and answer.done
    assert answer.done_reason == "length" and answer.eval_count == 40 and answer.prompt_eval_count > 10
    assert answer.total_duration >= answer.eval_duration > 0
    parts = list(chat(stream=True))
    assert "".join(part.message.content for part in parts) == answer.message.content
    assert [part.done for part in parts[-2:]] == [False, True] and parts[-1].eval_count == 40
    assert chat(model=MODEL, num_predict=2000, temperature=0.8).done_reason == "stop"


@case
def a_text():
    options = {"temperature": 0, "num_predict": 20}
    whole = client.generate(model=LONG, prompt="Once upon a time", raw=True, options=options)
    assert whole.response and whole.done_reason == "length"
    parts = client.generate(model=LONG, prompt="Once upon a time", raw=True, options=options, stream=True)
    assert "".join(part.response for part in parts) == whole.response


@case
def stop():
    whole = chat().message.content
    word = " " + whole.split()[6]
    answer = chat(stop=["never written", word])
    assert answer.message.content == whole[:whole.index(word)] and answer.done_reason == "stop"


@case
def logprobs():
    answer = chat(logprobs=True)
    assert len(answer.logprobs) == 40 and all(len(token.top_logprobs) == 2 for token in answer.logprobs)
    assert "".join(token.token for token in answer.logprobs) == answer.message.content


# The library sends types, enums and required members of a tool, and leaves out all else.
TOOLS = [{"type": "function", "function": {**WEATHER, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "enum": CITIES}}, "required": ["city"]}}}]
# The API cannot require a call. Here the text can only be "", and where a token is sampled, those of " and of a comma
# (between members, and between calls) are forbidden, as texts and as bytes of the bundled vocabulary.
FORBIDDEN = [1983, 3 + ord('"'), 1974, 3 + ord(",")]
FORCED = {"model": LONG, "tools": TOOLS, "format": {"const": ""},
          "options": {"num_predict": 200, "logit_bias": [[token, False] for token in FORBIDDEN]}}


@case
def a_loop_of_tools():
    messages = list(ASK)
    for stream in (False, True):
        parts = client.chat(messages=messages, stream=stream, **FORCED)
        calls = [call for part in (parts if stream else [parts]) for call in part.message.tool_calls or []]
        assert calls and all(call.function.arguments["city"] in CITIES for call in calls), calls
        messages += [{"role": "assistant", "content": "", "tool_calls": calls}]
        messages += [{"role": "tool", "tool_name": call.function.name, "content": "Rain"} for call in calls]
    assert chat(messages).message.content


@case
def an_answer_of_a_schema():
    answer = client.chat(model=LONG, messages=ASK, format=PARAMETERS)
    assert is_weather("get_weather", json.loads(answer.message.content))


@case
def errors():
    missing = raised(ollama.ResponseError, lambda: chat(model="llama3"))
    assert missing.status_code == 404 and "llama3" in missing.error
    long = raised(ollama.ResponseError, lambda: chat([{"role": "user", "content": "word " * 20000}]))
    assert long.status_code == 400 and "16384" in long.error
    assert raised(ollama.ResponseError, lambda: chat(num_predict="all")).status_code == 400
    assert raised(ollama.ResponseError, lambda: client.embed(model=LONG, input="x")).status_code == 400


@embedding_case
def embeddings():
    reply = client.embed(model=EMBEDDER, input=SENTENCES)
    check_similarities(reply.embeddings)
    assert reply.prompt_eval_count > 20 and reply.total_duration >= reply.load_duration >= 0
    one = client.embed(model=EMBEDDER, input=SENTENCES[0], keep_alive="1h").embeddings
    assert list(one[0]) == list(reply.embeddings[0])
    assert len(client.embed(model=EMBEDDER, input=SENTENCES[0], dimensions=16).embeddings[0]) == 16
    older = client.embeddings(model=EMBEDDER, prompt=SENTENCES[0]).embedding
    assert similarity(older, one[0]) > 0.9999
    assert client.show(EMBEDDER).capabilities == ["embedding"]


@embedding_case
def long_texts_are_cut():
    long = "word " * 3000
    assert client.embed(model=EMBEDDER, input=long).prompt_eval_count < 3000
    assert raised(ollama.ResponseError, lambda: client.embed(model=EMBEDDER, input=long, truncate=False)).status_code == 400
    assert raised(ollama.ResponseError, lambda: chat(model=EMBEDDER)).status_code == 400


@case
def a_client_leaves():
    def begin():
        parts = chat(stream=True, num_predict=16000)
        for _ in range(5):
            next(parts)
        parts.close()
    leaves(begin)


@case
def several_at_a_time():
    asks = [[{"role": "user", "content": f"Tell me about {what}."}] for what in ("a fox", "the sea", "a witch", "bread")]
    alone = [chat(ask).message.content for ask in asks]
    with ThreadPoolExecutor(len(asks)) as pool:
        assert [answer.message.content for answer in pool.map(chat, asks)] == alone


run_cases(f"ollama {version('ollama')} (Python)")
