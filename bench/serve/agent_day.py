#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent's day: many turns of one conversation with a long system prompt and growing results of tools.

  bench/serve/agent_day.py URL [URL...] [--turns 30] [--system 6000] [--json FILE]

Counts, for each turn, the tokens of the prompt that were computed, and those that are new in it: the prompt's
tokens less those of the last prompt and of its answer. A server that reads nothing twice computes no more than
these, and a piece of 16 tokens. Every tenth turn another conversation with the same system prompt comes between."""
import argparse

from load import Server, write_json

WORDS = 'file line function value returns error test build path module import class number list text byte'.split()


def filler(seed, words):
    return ' '.join(WORDS[(seed * 5 + i * i + i) % len(WORDS)] for i in range(words))


def usage_of(reply):
    usage, timings = reply['usage'], reply.get('timings', {})
    cached = usage.get('prompt_tokens_details', {}).get('cached_tokens', timings.get('cache_n', 0))
    return usage['prompt_tokens'], cached, usage['completion_tokens']


def day(server, turns, system_words):
    messages = [{'role': 'system', 'content': 'You help with code. ' + filler(1, system_words)}]
    rows, known = [], 0
    for turn in range(turns):
        messages.append({'role': 'user', 'content': f'Result {turn}: ' + filler(turn + 2, 20 + 10 * turn)})
        body = {'messages': messages, 'max_tokens': 24, 'temperature': 0}
        reply = server.post('/v1/chat/completions', body)
        prompt, cached, answer = usage_of(reply)
        new = prompt - known
        rows.append({'turn': turn, 'prompt': prompt, 'new': new, 'computed': prompt - cached})
        known = prompt + answer
        messages.append({'role': 'assistant', 'content': reply['choices'][0]['message']['content'] or ''})
        if turn % 10 == 9:
            server.post('/v1/chat/completions', {'messages': [messages[0], {'role': 'user', 'content': 'And you?'}],
                                                 'max_tokens': 8, 'temperature': 0})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('urls', nargs='+')
    parser.add_argument('--turns', type=int, default=30)
    parser.add_argument('--system', type=int, default=6000, help='words of the system prompt')
    parser.add_argument('--json')
    options = parser.parse_args()
    results = {}
    for url in options.urls:
        rows = day(Server(url), options.turns, options.system)
        results[url] = rows
        beyond = sum(max(0, row['computed'] - row['new']) for row in rows[1:])
        print(f'{url}: first turn {rows[0]["prompt"]} tokens; {len(rows) - 1} later turns: '
              f'{sum(r["new"] for r in rows[1:])} new tokens, {sum(r["computed"] for r in rows[1:])} computed, '
              f'{beyond} computed again; the worst turn {max(r["computed"] - r["new"] for r in rows[1:])} beyond new')
    write_json(options.json, results)


if __name__ == '__main__':
    main()
