# SPDX-License-Identifier: Apache-2.0
"""Anthropic's library for Python."""

from concurrent.futures import ThreadPoolExecutor

import anthropic
from checks import LONG, MODEL, PARAMETERS, URL, WEATHER, case, is_weather, leaves, raised, run_cases

client = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=0)
TALE = {"model": LONG, "system": "You tell tales.", "max_tokens": 40, "temperature": 0,
        "messages": [{"role": "user", "content": "Tell me about a king."}]}


def message(**others):
    # temperature is sent as the API has it: recent clients have no argument for it
    named = {**TALE, **others}
    extra = {"temperature": named.pop("temperature")}
    return client.messages.create(**named, extra_body=extra)


@case
def a_message():
    answer = message()
    assert answer.type == "message" and answer.role == "assistant" and answer.model == LONG
    assert answer.content[0].type == "text" and answer.content[0].text
    assert answer.stop_reason == "max_tokens" and answer.usage.output_tokens == 40
    counted = client.messages.count_tokens(model=LONG, system=TALE["system"], messages=TALE["messages"])
    assert counted.input_tokens == answer.usage.input_tokens + answer.usage.cache_read_input_tokens
    assert message().usage.cache_read_input_tokens > 0


@case
def a_message_ends_by_itself():
    answer = message(model=MODEL, max_tokens=5000, temperature=0.8)
    assert answer.stop_reason == "end_turn" and answer.stop_sequence is None, answer


@case
def a_message_in_events():
    events = list(message(stream=True))
    kinds = [event.type for event in events if event.type not in ("ping", "content_block_delta")]
    assert kinds == ["message_start", "content_block_start", "content_block_stop", "message_delta",
                     "message_stop"], kinds
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    assert text == message().content[0].text
    assert events[-2].usage.output_tokens == 40 and events[-2].delta.stop_reason == "max_tokens"


@case
def a_message_by_the_helper_for_streams():
    named = {name: value for name, value in TALE.items() if name != "temperature"}
    with client.messages.stream(**named, extra_body={"temperature": 0}) as stream:
        text = "".join(stream.text_stream)
        whole = stream.get_final_message()
    assert text == whole.content[0].text == message().content[0].text
    assert whole.usage.output_tokens == 40


@case
def stop():
    whole = message().content[0].text
    word = " " + whole.split()[6]
    answer = message(stop_sequences=["never written", word])
    assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == word
    assert answer.content[0].text == whole[:whole.index(word)]


@case
def blocks_and_an_answer_that_the_client_begins():
    blocks = [{"type": "text", "text": "Tell me ", "cache_control": {"type": "ephemeral"}},
              {"type": "text", "text": "about a king."}]
    assert message(messages=[{"role": "user", "content": blocks}]).content[0].text == message().content[0].text
    begun = message(messages=[*TALE["messages"], {"role": "assistant", "content": "Once upon a"}])
    assert begun.content[0].text


FORCED = {"tools": [{**WEATHER, "input_schema": PARAMETERS}], "temperature": 1, "max_tokens": 200,
          "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}


@case
def a_loop_of_tools():
    messages = list(TALE["messages"])
    for _ in range(3):
        answer = message(messages=messages, **FORCED)
        call, = answer.content
        assert answer.stop_reason == "tool_use" and is_weather(call.name, call.input), answer
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": "Rain"}]}]
    last = message(messages=messages, **{**FORCED, "tool_choice": {"type": "none"}})
    assert [block.type for block in last.content] == ["text"] and last.stop_reason in ("end_turn", "max_tokens")


@case
def calls_in_events():
    named = {name: value for name, value in {**TALE, **FORCED}.items() if name != "temperature"}
    with client.messages.stream(**named, extra_body={"temperature": 1, "seed": 7}) as stream:
        kinds = [event.type for event in stream]
        call, = stream.get_final_message().content
    assert is_weather(call.name, call.input) and kinds.count("input_json") > 0, kinds


@case
def errors():
    assert "claude" in raised(anthropic.NotFoundError, lambda: message(model="claude-9")).message
    long = raised(anthropic.BadRequestError, lambda: message(messages=[{"role": "user", "content": "word " * 20000}]))
    assert long.body["error"]["type"] == "invalid_request_error" and "16384" in long.message, long.body
    assert "temperature" in raised(anthropic.BadRequestError, lambda: message(temperature="hot")).message
    assert "max_tokens" in raised(anthropic.BadRequestError, lambda: message(max_tokens=0)).message
    raised(anthropic.BadRequestError, lambda: list(message(stream=True, messages=[])))


@case
def a_client_leaves():
    def begin():
        with message(stream=True, max_tokens=16000) as stream:
            for event in stream:
                if event.type == "content_block_delta":
                    break
    leaves(begin)


@case
def several_at_a_time():
    asks = [[{"role": "user", "content": f"Tell me about {what}."}] for what in ("a fox", "the sea", "a witch", "bread")]
    alone = [message(messages=ask).content[0].text for ask in asks]
    with ThreadPoolExecutor(len(asks)) as pool:
        assert [m.content[0].text for m in pool.map(lambda ask: message(messages=ask), asks)] == alone


run_cases(f"anthropic {anthropic.__version__} (Python)")
