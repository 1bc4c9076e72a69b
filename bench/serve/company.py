#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several writers at a time on one server, while a long prompt is read.

  bench/serve/company.py URL [URL...] [--writers 1,2,4,8,16] [--tokens 192] [--long 4000] [--json FILE]

Several servers are measured in turns. First it checks that an answer is the same alone and beside seven others
(temperature 0); a server for which it is not is marked. Then, for each number of writers: tokens per second
together while all of them write, time to the first token, and time between tokens (p50, p99), quiet, and while a
prompt of --long tokens is read."""
import argparse
import threading

from load import Server, percentile, write_json

WORDS = ('the river was wide and the bridge was old so the farmer waited until the rain had gone and then he took '
         'his horse and his dog and went over to the market where he sold apples and bought a hat').split()


def text_of(seed, words):
    return ' '.join(WORDS[(seed * 7 + i * (seed % 5 + 1)) % len(WORDS)] for i in range(words))


def body_of(seed, tokens, words=8):
    return {'prompt': f'Story {seed}: ' + text_of(seed, words), 'max_tokens': tokens, 'temperature': 0,
            'seed': 1, 'ignore_eos': True}


def together(server, bodies, long_prompt=None):
    """Results of all bodies at the same time, and of the long prompt, which comes when all have begun."""
    results = [None] * len(bodies)
    begun = threading.Semaphore(0)

    def one(i):
        try:
            results[i] = server.stream('/v1/completions', bodies[i])
        finally:
            begun.release()

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    extra = None
    if long_prompt is not None:
        import time
        time.sleep(1.0)
        extra = server.stream('/v1/completions', long_prompt)
    for thread in threads:
        thread.join()
    return results, extra


def speed_of(results):
    """Tokens per second of all together while all of them write."""
    begin, end = max(r[1][0] for r in results), min(r[1][-1] for r in results)
    if begin >= end:
        return float('nan')
    return sum(1 for r in results for t in r[1] if begin < t <= end) / (end - begin)


def gaps_of(results):
    return [b - a for _, times, _ in results for a, b in zip(times, times[1:])]


def words_for(server, tokens):
    """How many words make a prompt of about `tokens` tokens."""
    words = 100
    reply = server.post('/v1/completions', {'prompt': text_of(3, words), 'max_tokens': 1})
    return round(tokens * words / reply['usage']['prompt_tokens'])


def measure(server, writers, tokens, long_words):
    row = {'writers': writers}
    quiet, _ = together(server, [body_of(100 + i, tokens) for i in range(writers)])
    row['tokens_per_second'] = speed_of(quiet)
    row['first_token_p50_s'] = percentile([r[1][0] for r in quiet], 50)
    row['first_token_p99_s'] = percentile([r[1][0] for r in quiet], 99)
    row['between_p50_ms'] = 1000 * percentile(gaps_of(quiet), 50)
    row['between_p99_ms'] = 1000 * percentile(gaps_of(quiet), 99)
    if long_words:
        prompt = {'prompt': text_of(writers + 31, long_words), 'max_tokens': 1, 'temperature': 0}
        busy, extra = together(server, [body_of(200 + i, tokens) for i in range(writers)], prompt)
        row['long_prompt_tokens'] = extra[2]['usage']['prompt_tokens']
        row['long_prompt_s'] = extra[1][0]
        # Gaps while the prompt was read
        inside = []
        for _, times, _ in busy:
            inside += [b - a for a, b in zip(times, times[1:]) if b > 1.0 and a < 1.0 + extra[1][0]]
        row['between_busy_p50_ms'] = 1000 * percentile(inside, 50)
        row['between_busy_p99_ms'] = 1000 * percentile(inside, 99)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('urls', nargs='+')
    parser.add_argument('--writers', default='1,2,4,8,16')
    parser.add_argument('--tokens', type=int, default=192)
    parser.add_argument('--long', type=int, default=4000, help='tokens of the prompt')
    parser.add_argument('--json')
    options = parser.parse_args()
    servers = {url: Server(url) for url in options.urls}
    results = {}
    for url, server in servers.items():
        alone = server.stream('/v1/completions', body_of(7, 48))[0]
        beside, _ = together(server, [body_of(i, 48) for i in range(8)])
        same = beside[7][0] == alone
        results[url] = {'same_in_company': same, 'rows': []}
        print(f'{url}: an answer beside seven others is {"the same" if same else "NOT the same"} as alone')
    print(f'{"server":28}{"writers":>8}{"t/s":>9}{"first p50":>11}{"p99 s":>8}{"gap p50":>9}{"p99 ms":>8}'
          f'{"busy p50":>10}{"p99 ms":>8}{"prompt s":>10}')
    for writers in map(int, options.writers.split(',')):
        for url, server in servers.items():
            row = measure(server, writers, options.tokens, words_for(server, options.long) if options.long else 0)
            results[url]['rows'].append(row)
            print(f'{url[-27:]:28}{writers:8}{row["tokens_per_second"]:9.1f}{row["first_token_p50_s"]:11.2f}'
                  f'{row["first_token_p99_s"]:8.2f}{row["between_p50_ms"]:9.1f}{row["between_p99_ms"]:8.1f}'
                  f'{row.get("between_busy_p50_ms", 0):10.1f}{row.get("between_busy_p99_ms", 0):8.1f}'
                  f'{row.get("long_prompt_s", 0):10.2f}', flush=True)
    write_json(options.json, results)


if __name__ == '__main__':
    main()
