# SPDX-License-Identifier: Apache-2.0
"""OpenAI's library for Python: chats, texts and responses."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import openai
from checks import (EMBEDDER, LONG, MODEL, PARAMETERS, SENTENCES, URL, WEATHER, case, check_similarities, embedding_case,
                    is_weather, leaves, raised, run_cases, similarity)
from pydantic import BaseModel, Field

client = openai.OpenAI(base_url=URL + "/v1", api_key="none", max_retries=0)
ASK = [{"role": "system", "content": "You tell tales."}, {"role": "user", "content": "Tell me about a king."}]
TALE = {"model": LONG, "messages": ASK, "temperature": 0, "max_tokens": 40}


def chat(**others):
    return client.chat.completions.create(**{**TALE, **others})


def text_of(stream):
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


@case
def models():
    names = [model.id for model in client.models.list()]
    assert names[:2] == [MODEL, LONG], names
    assert client.models.retrieve(LONG).id == LONG


@case
def a_chat():
    answer = chat()
    choice, usage = answer.choices[0], answer.usage
    assert answer.model == LONG and answer.id.startswith("chatcmpl-") and answer.object == "chat.completion"
    assert choice.message.role == "assistant" and choice.message.content and choice.finish_reason == "length"
    assert usage.completion_tokens == 40 and usage.prompt_tokens > 20
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    again = chat()
    assert again.choices[0].message.content == choice.message.content
    assert again.usage.prompt_tokens_details.cached_tokens > 0


@case
def a_chat_ends_by_itself():
    answer = client.chat.completions.create(model=MODEL, messages=ASK, seed=1)
    assert answer.choices[0].finish_reason == "stop", answer
    assert "." not in answer.choices[0].message.content


@case
def a_chat_in_chunks():
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    assert len(chunks) > 3 and len({chunk.id for chunk in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert text_of(chunks) == chat().choices[0].message.content
    assert [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason] == ["length"]
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 40


@case
def a_chat_by_the_helper_for_streams():
    ask = {"model": MODEL, "messages": ASK, "temperature": 0}  # this helper raises where an answer has no end
    with client.chat.completions.stream(**ask) as stream:
        kinds = [event.type for event in stream]
        whole = stream.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds, kinds
    assert whole.choices[0].message.content == client.chat.completions.create(**ask).choices[0].message.content


@case
def stop():
    whole = chat().choices[0].message.content
    word = whole.split()[6]
    for streams in (False, True):
        answer = chat(stop=["never written", " " + word], stream=streams)
        text = text_of(answer) if streams else answer.choices[0].message.content
        assert text == whole[:whole.index(" " + word)], (text, whole)
    assert chat(stop=" " + word).choices[0].finish_reason == "stop"


@case
def logprobs():
    for streams in (False, True):
        answer = chat(logprobs=True, top_logprobs=3, stream=streams)
        choices = [c.choices[0] for c in answer if c.choices] if streams else answer.choices
        tokens = [token for choice in choices if choice.logprobs for token in choice.logprobs.content]
        assert len(tokens) == 40
        assert bytes(b for token in tokens for b in token.bytes).decode() == chat().choices[0].message.content
        for token in tokens:
            assert len(token.top_logprobs) == 3 and token.logprob <= 0
            assert token.top_logprobs[0].token == token.token  # at temperature 0
            assert [t.logprob for t in token.top_logprobs] == sorted((t.logprob for t in token.top_logprobs),
                                                                     reverse=True)


@case
def several_choices():
    answer = chat(n=3, temperature=1, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) == 3
    assert answer.usage.completion_tokens == 120
    assert chat(temperature=1, seed=6).choices[0].message.content == answer.choices[1].message.content


@case
def a_text():
    text = {"model": LONG, "prompt": "Once upon a time", "temperature": 0, "max_tokens": 20}
    whole = client.completions.create(**text, logprobs=2)
    choice = whole.choices[0]
    assert choice.text and choice.finish_reason == "length" and whole.usage.completion_tokens == 20
    assert len(choice.logprobs.tokens) == 20 and "".join(choice.logprobs.tokens) == choice.text
    assert choice.logprobs.text_offset[0] == 0 and len(choice.logprobs.top_logprobs[0]) == 2
    assert "".join(chunk.choices[0].text for chunk in client.completions.create(**text, stream=True)) == choice.text
    both = client.completions.create(**{**text, "prompt": ["Once upon a time", "The king"]}, echo=True)
    assert both.choices[0].text == "Once upon a time" + choice.text and both.choices[1].text.startswith("The king")


@case
def a_response():
    ask = {"model": LONG, "instructions": "You tell tales.", "input": "Tell me about a king.", "temperature": 0,
           "max_output_tokens": 30}
    answer = client.responses.create(**ask)
    assert answer.status == "incomplete" and answer.incomplete_details.reason == "max_output_tokens"
    assert answer.output_text and answer.usage.output_tokens == 30
    assert answer.usage.total_tokens == answer.usage.input_tokens + 30
    kinds = [event.type for event in client.responses.create(**ask, stream=True)]
    assert kinds[0] == "response.created" and kinds[-1] == "response.incomplete", (kinds[0], kinds[-1])
    ask = {"model": MODEL, "input": ASK, "temperature": 0}
    ended = client.responses.create(**ask)
    assert ended.status == "completed" and ended.output[0].role == "assistant"
    with client.responses.stream(**ask) as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_response().output_text == ended.output_text
    assert kinds[-1] == "response.completed" and kinds.count("response.output_text.delta") > 0


TOOLS = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]
FORCED = {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 1, "max_tokens": 200}


@case
def a_loop_of_tools():
    messages = list(ASK)
    for seed in range(3):
        answer = chat(messages=messages, seed=seed, **FORCED).choices[0]
        assert answer.finish_reason == "tool_calls" and answer.message.content is None
        call, = answer.message.tool_calls
        assert is_weather(call.function.name, json.loads(call.function.arguments)), call
        messages += [answer.message, {"role": "tool", "tool_call_id": call.id, "content": "Rain"}]
    last = chat(messages=messages, **{**FORCED, "tool_choice": "none"}).choices[0]
    assert last.message.content and last.message.tool_calls is None and last.finish_reason in ("stop", "length")


@case
def calls_in_chunks():
    whole = chat(**FORCED, seed=3).choices[0].message.tool_calls[0]
    with client.chat.completions.stream(**{**TALE, **FORCED, "seed": 3}) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0]
    assert kinds.count("tool_calls.function.arguments.delta") > 0 and "tool_calls.function.arguments.done" in kinds
    assert streamed.function.name == whole.function.name
    assert streamed.function.arguments == whole.function.arguments
    named = chat(**{**FORCED, "tool_choice": {"type": "function", "function": {"name": "get_weather"}}})
    assert named.choices[0].message.tool_calls[0].function.name == "get_weather"


class Pet(BaseModel):
    kind: Literal["cat", "dog"]
    age: int = Field(ge=0, le=20)


@case
def an_answer_that_is_parsed():
    pet = client.chat.completions.parse(**{**TALE, "max_tokens": 100}, response_format=Pet).choices[0]
    assert isinstance(pet.message.parsed, Pet) and pet.finish_reason == "stop"
    format = {"type": "json_schema", "name": "w", "schema": PARAMETERS}
    text = client.responses.create(model=LONG, input=ASK, text={"format": format}).output_text
    assert is_weather("get_weather", json.loads(text))


@case
def calls_of_a_response():
    tools = [{"type": "function", **WEATHER, "parameters": PARAMETERS, "strict": True}]
    ask = {"model": LONG, "tools": tools, "tool_choice": "required", "parallel_tool_calls": False}
    items = list(ASK)
    call, = client.responses.create(input=items, **ask).output
    assert call.type == "function_call" and is_weather(call.name, json.loads(call.arguments))
    items += [call, {"type": "function_call_output", "call_id": call.call_id, "output": "Rain"}]
    with client.responses.stream(input=items, **ask) as stream:
        kinds = [event.type for event in stream]
        again, = stream.get_final_response().output
    assert is_weather(again.name, json.loads(again.arguments))
    assert kinds.count("response.function_call_arguments.delta") > 0, kinds
    assert client.responses.create(input=items, **{**ask, "tool_choice": "none"}, max_output_tokens=20).output_text


@case
def errors():
    bad = [{"type": "function", "function": {"name": "f", "parameters": {"pattern": "(?<=a)b", "type": "string"}}}]
    assert "f" in raised(openai.BadRequestError, lambda: chat(tools=bad)).message
    missing = raised(openai.NotFoundError, lambda: chat(model="gpt-4"))
    assert "gpt-4" in missing.message and LONG in missing.message
    long = raised(openai.BadRequestError, lambda: chat(messages=[{"role": "user", "content": "word " * 20000}]))
    assert long.type == "exceed_context_size_error" and "16384" in long.message, long
    wrong = raised(openai.BadRequestError, lambda: chat(temperature="hot"))
    assert wrong.param == "temperature" and "temperature" in wrong.message
    assert raised(openai.BadRequestError, lambda: chat(messages=[])).param == "messages"
    raised(openai.BadRequestError, lambda: chat(extra_body={"top_q": 1}))
    pools = raised(openai.BadRequestError, lambda: client.embeddings.create(model=LONG, input="x"))
    assert pools.param == "model" and "pooling" in pools.message
    raised(openai.BadRequestError, lambda: client.responses.create(model=LONG, input=5))
    assert raised(openai.BadRequestError, lambda: list(chat(stream=True, max_tokens="all"))).param == "max_tokens"


@embedding_case
def embeddings():
    reply = client.embeddings.create(model=EMBEDDER, input=SENTENCES)  # the library asks for Base64
    assert reply.model == EMBEDDER and [row.index for row in reply.data] == [0, 1, 2]
    rows = [row.embedding for row in reply.data]
    check_similarities(rows)
    assert all(abs(sum(x * x for x in row) - 1) < 1e-5 for row in rows)
    assert reply.usage.prompt_tokens == reply.usage.total_tokens > 20
    plain = client.embeddings.create(model=EMBEDDER, input=SENTENCES[0], encoding_format="float")
    assert max(abs(x - y) for x, y in zip(plain.data[0].embedding, rows[0])) < 1e-6
    short = client.embeddings.create(model=EMBEDDER, input=SENTENCES[0], dimensions=32).data[0].embedding
    assert len(short) == 32 and similarity(short, rows[0][:32]) > 0.9999


@embedding_case
def tokens_become_embeddings():
    tokens = [101, 7592, 2088, 102]
    one = client.embeddings.create(model=EMBEDDER, input=tokens)
    two = client.embeddings.create(model=EMBEDDER, input=[tokens, tokens])
    assert one.usage.total_tokens == 4 and len(two.data) == 2
    assert two.data[0].embedding == two.data[1].embedding == one.data[0].embedding


@embedding_case
def embeddings_at_a_time_with_an_answer():
    alone = [client.embeddings.create(model=EMBEDDER, input=text).data[0].embedding for text in SENTENCES]
    tale = chat(max_tokens=200).choices[0].message.content
    with ThreadPoolExecutor(8) as pool:
        answer = pool.submit(lambda: text_of(chat(stream=True, max_tokens=200)))
        rows = list(pool.map(lambda i: client.embeddings.create(model=EMBEDDER, input=SENTENCES[i % 3]), range(30)))
        assert answer.result() == tale
    assert [row.data[0].embedding for row in rows] == [alone[i % 3] for i in range(30)]


@embedding_case
def embeddings_that_are_refused():
    def embed(**others):
        return client.embeddings.create(**{"model": EMBEDDER, "input": "x", **others})
    raised(openai.NotFoundError, lambda: embed(model="text-embedding-3-small"))
    assert "too large" in raised(openai.BadRequestError, lambda: embed(input="word " * 3000)).message
    assert raised(openai.BadRequestError, lambda: embed(dimensions=100000)).param == "dimensions"
    assert raised(openai.BadRequestError, lambda: embed(input=[])).param == "input"
    raised(openai.BadRequestError, lambda: embed(input=[[10000000]]))
    assert "text encoder" in raised(openai.BadRequestError, lambda: chat(model=EMBEDDER)).message


@case
def a_client_leaves():
    def begin():
        with chat(stream=True, max_tokens=None, extra_body={"ignore_eos": True}) as stream:
            for _ in range(5):
                next(iter(stream))
    leaves(begin)


@case
def a_client_leaves_before_a_whole_answer():
    def begin():
        raised(openai.APITimeoutError, lambda: client.with_options(timeout=0.4).chat.completions.create(
            **{**TALE, "max_tokens": None}, extra_body={"ignore_eos": True}))
    leaves(begin)


@case
def several_at_a_time():
    asks = [[{"role": "user", "content": f"Tell me about {what}."}] for what in
            ("a king", "a fox", "the sea", "a witch", "two brothers", "a ring", "the moon", "bread")]
    alone = [chat(messages=ask).choices[0].message.content for ask in asks]
    with ThreadPoolExecutor(len(asks)) as pool:
        assert list(pool.map(lambda ask: text_of(chat(messages=ask, stream=True)), asks)) == alone

    async def gather():
        async with openai.AsyncOpenAI(base_url=URL + "/v1", api_key="none", max_retries=0) as a:
            done = await asyncio.gather(*(a.chat.completions.create(**{**TALE, "messages": ask}) for ask in asks))
            return [answer.choices[0].message.content for answer in done]
    assert asyncio.run(gather()) == alone


run_cases(f"openai {openai.__version__} (Python)")
