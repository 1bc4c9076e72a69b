#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random requests to a server that this script starts: lengths, answers that are broken off, several answers at a
time, models in turns: a big one more seldom, by the fourth root of its file's size. Nothing may be killed, refused
without a reason, or left behind.

  bench/serve/endurance.py MODEL [MODEL...] [--memory 1GiB] [--requests 10000] [--seconds 0] [--clients 8] [--seed 1]
                           [-- OPTIONS]

It goes on until it has made that many requests and that many seconds have gone by; SIGINT or SIGTERM ends it
earlier, with its results. Prints a line each minute, and at the end counts by outcome, the peak of resident memory
beside the budget, and descriptors and threads at the beginning and at the end. Ends with 1 where a reply has a
status of 500 or more, the server is gone, the peak is above the budget, or descriptors or threads have grown."""
import argparse
import collections
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORDS = 'once upon a time there was a king who had three sons and a daughter in the old wood near the sea'.split()


def bytes_of(size):
    number, unit = re.fullmatch(r'([\d.]+)\s*([KMG]?)i?B?', size).groups()
    return int(float(number) * {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[unit])


def status_of(pid, key):
    with open(f'/proc/{pid}/status') as file:
        return int(re.search(rf'^{key}:\s+(\d+)', file.read(), re.M).group(1))


def descriptors(pid):
    return len(os.listdir(f'/proc/{pid}/fd'))


def one(port, rng, models, counts, refused):
    words = rng.choice([3, 10, 40, 100, 300, 1000])
    body = {'model': rng.choices(list(models), models.values())[0], 'max_tokens': rng.choice([1, 2, 8, 32, 100]),
            'n': rng.choice([1, 1, 1, 2, 3]), 'stream': rng.random() < 0.5, 'temperature': rng.choice([0, 0.8]),
            'prompt': ' '.join(rng.choice(WORDS) for _ in range(words))}
    leaves = rng.random() < 0.2
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=300)
    try:
        connection.request('POST', '/v1/completions', json.dumps(body), {'Content-Type': 'application/json'})
        if leaves and rng.random() < 0.5:
            time.sleep(rng.random() * 0.1)
            counts['left before the reply'] += 1
            return
        reply = connection.getresponse()
        if leaves:
            reply.read(rng.choice([1, 100]))
            counts['left in the reply'] += 1
            return
        text = reply.read().decode()
        if reply.status == 200 and '"error"' in text:
            counts['error after the header'] += 1
            refused.append(text[-300:])
        else:
            counts[reply.status] += 1
        if reply.status >= 400 and len(refused) < 50:
            refused.append(f'{reply.status} {text[:200]}')
        if reply.status == 429:
            time.sleep(min(1.0, float(reply.headers.get('Retry-After', 1))))
    except (OSError, http.client.HTTPException) as error:
        counts[type(error).__name__] += 1
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+')
    parser.add_argument('--memory', default='1GiB')
    parser.add_argument('--requests', type=int, default=10000)
    parser.add_argument('--seconds', type=float, default=0)
    parser.add_argument('--clients', type=int, default=8)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--mica', default=os.path.join(ROOT, 'build/release/mica'))
    own, options = sys.argv[1:], []
    if '--' in own:
        own, options = own[:own.index('--')], own[own.index('--') + 1:]
    asked = parser.parse_args(own)
    server = subprocess.Popen([asked.mica, 'serve', *asked.models, '--port', '0', '--memory', asked.memory, '-q',
                               *options], stdout=subprocess.PIPE, text=True)
    port = json.loads(server.stdout.readline())['port']
    connection = http.client.HTTPConnection('127.0.0.1', port)
    connection.request('GET', '/v1/models')
    ids = [model['id'] for model in json.loads(connection.getresponse().read())['data']]
    connection.close()
    sizes = {os.path.splitext(os.path.basename(path))[0]: os.path.getsize(path) for path in asked.models}
    models = {name: sizes[name] ** -0.25 for name in ids}  # id -> weight of the draw
    counts, refused = collections.Counter(), []
    made, begin, ended = 0, time.time(), threading.Event()
    lock = threading.Lock()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())

    def client(seed):
        nonlocal made
        rng = random.Random(seed)
        while server.poll() is None and not ended.is_set():
            with lock:
                if made >= asked.requests and time.time() - begin >= asked.seconds:
                    return
                made += 1
            one(port, rng, models, counts, refused)

    def all_clients(seed):
        threads = [threading.Thread(target=client, args=(seed + i,)) for i in range(asked.clients)]
        for thread in threads:
            thread.start()
        return threads

    threads, samples = all_clients(asked.seed * 1000), []
    while any(thread.is_alive() for thread in threads):
        time.sleep(0.5)
        if server.poll() is None:
            samples.append((descriptors(server.pid), status_of(server.pid, 'Threads')))
            if len(samples) % 120 == 0:
                print(f'{time.time() - begin:.0f} s: {made} requests, peak '
                      f"{status_of(server.pid, 'VmHWM') / 1024:.1f} MiB, descriptors {samples[-1][0]}, threads "
                      f'{samples[-1][1]}', flush=True)
    gone = server.poll() is not None
    print(f'{made} requests in {time.time() - begin:.0f} s:', dict(counts))
    for text in sorted(set(refused))[:8]:
        print('  ', text)
    failed = gone
    if gone:
        print('the server is gone:', server.returncode)
    else:
        time.sleep(1)
        peak, budget = status_of(server.pid, 'VmHWM') * 1024, bytes_of(asked.memory)
        tenth = max(1, len(samples) // 10)
        early, late = samples[tenth:2 * tenth] or samples, samples[-tenth:]
        print(f'peak {peak / 2**20:.1f} MiB of {budget / 2**20:.0f} MiB; descriptors at most '
              f'{max(s[0] for s in early)} early, {max(s[0] for s in late)} late; threads '
              f'{max(s[1] for s in early)}, {max(s[1] for s in late)}; at rest {descriptors(server.pid)} descriptors')
        failed = failed or peak > budget or any(max(s[i] for s in late) > max(s[i] for s in early) + asked.clients
                                                for i in range(2))
    failed = failed or any(isinstance(key, int) and key >= 500 for key in counts) or \
        counts['error after the header'] > 0
    server.terminate()
    code = server.wait(60)
    print('ended with', code)
    sys.exit(1 if failed or code != 0 else 0)


if __name__ == '__main__':
    main()
