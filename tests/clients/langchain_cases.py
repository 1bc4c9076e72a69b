# SPDX-License-Identifier: Apache-2.0
"""LangChain's package for OpenAI."""

from importlib.metadata import version

import openai
from checks import (EMBEDDER, LONG, MODEL, PARAMETERS, QUESTION, SENTENCES, URL, WEATHER, case, check_similarities,
                    embedding_case, is_weather, leaves, raised, run_cases, similarity)
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

ASK = [SystemMessage("You tell tales."), HumanMessage("Tell me about a king.")]


def chat(**others):
    return ChatOpenAI(**{"base_url": URL + "/v1", "api_key": "none", "model": LONG, "temperature": 0,
                         "max_tokens": 40, "max_retries": 0, **others})


@case
def a_chat():
    answer = chat().invoke(ASK)
    assert answer.content and answer.response_metadata["finish_reason"] == "length"
    assert answer.usage_metadata["output_tokens"] == 40
    assert chat(model=MODEL, max_tokens=None).invoke(ASK).response_metadata["finish_reason"] == "stop"


@case
def a_chat_in_chunks():
    chunks = list(chat(stream_usage=True).stream(ASK))
    assert len(chunks) > 3
    whole = sum(chunks[1:], chunks[0])
    assert whole.content == chat().invoke(ASK).content and whole.usage_metadata["output_tokens"] == 40


@case
def stop_and_logprobs():
    whole = chat().invoke(ASK).content
    word = " " + whole.split()[6]
    assert chat().bind(stop=[word]).invoke(ASK).content == whole[:whole.index(word)]
    tokens = chat(logprobs=True, top_logprobs=2).invoke(ASK).response_metadata["logprobs"]["content"]
    assert len(tokens) == 40 and "".join(token["token"] for token in tokens) == whole


@case
def a_response():
    answer = chat(use_responses_api=True).invoke(ASK)
    assert answer.text and answer.usage_metadata["output_tokens"] == 40
    streamed = "".join(chunk.text for chunk in chat(use_responses_api=True).stream(ASK))
    assert streamed == answer.text


@case
def a_text():
    model = OpenAI(base_url=URL + "/v1", api_key="none", model=LONG, temperature=0, max_tokens=20, max_retries=0)
    whole = model.invoke("Once upon a time")
    assert whole and "".join(model.stream("Once upon a time")) == whole


@case
def a_loop_of_tools():
    tools = [{"type": "function", "function": {**WEATHER, "parameters": PARAMETERS}}]
    model = chat(max_tokens=200, temperature=1).bind_tools(tools, tool_choice="any", parallel_tool_calls=False)
    messages = list(ASK)
    for streams in (False, True):
        answer = model.invoke(messages)
        if streams:
            chunks = list(model.stream(messages))
            answer = sum(chunks[1:], chunks[0])
        call, = answer.tool_calls
        assert is_weather(call["name"], call["args"]), answer
        messages += [answer, ToolMessage("Rain", tool_call_id=call["id"])]
    assert chat().bind_tools(tools, tool_choice="none").invoke(messages).content
    of_schema = chat(max_tokens=200).with_structured_output({"title": "weather", **PARAMETERS}, method="json_schema")
    assert is_weather("get_weather", of_schema.invoke(ASK))


def embedder():
    # By default the library sends tokens of a vocabulary of OpenAI.
    return OpenAIEmbeddings(base_url=URL + "/v1", api_key="none", model=EMBEDDER, check_embedding_ctx_length=False,
                            max_retries=0)


@embedding_case
def embeddings():
    rows = embedder().embed_documents(SENTENCES)
    check_similarities(rows)
    assert similarity(embedder().embed_query(SENTENCES[0]), rows[0]) > 0.9999


@embedding_case
def a_retriever():
    store = InMemoryVectorStore.from_texts(SENTENCES, embedding=embedder())
    found = store.as_retriever(search_kwargs={"k": 2}).invoke(QUESTION)
    assert {document.page_content for document in found} == set(SENTENCES[:2])


@case
def errors():
    raised(openai.NotFoundError, lambda: chat(model="gpt-4").invoke(ASK))
    raised(openai.BadRequestError, lambda: chat().invoke("word " * 20000))
    raised(openai.BadRequestError, lambda: chat().bind(top_logprobs=-1).invoke(ASK))


@case
def a_client_leaves():
    def begin():
        stream = chat(max_tokens=16000, extra_body={"ignore_eos": True}).stream(ASK)
        for _ in range(5):
            next(stream)
        stream.close()
    leaves(begin)


@case
def several_at_a_time():
    asks = [f"Tell me about {what}." for what in ("a fox", "the sea", "a witch", "bread")]
    assert [a.content for a in chat().batch(asks)] == [chat().invoke(ask).content for ask in asks]


run_cases(f"langchain-openai {version('langchain-openai')} (Python)")
