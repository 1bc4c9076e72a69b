#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many bad connections at a time to one server, while a good client goes on. Standard library alone.

  bench/serve/connections.py URL [--number 10000] [--wave 500] [--hold 10] [--patience 10] [--pid PID]

Connections of five kinds are opened in waves: idle, half a header, half a body, whole requests, and dead ones
(closed with RST). All that the server lets stay are open until the end. Meanwhile a request each second must
be answered with 200. One that is not is tried again every 0.2 seconds; the check fails if it has no 200 for
longer than --patience seconds, or if the server is gone. With --pid: descriptors and threads of the server,
before, at most, and after."""
import argparse
import collections
import http.client
import os
import resource
import select
import socket
import struct
import sys
import threading
import time

from load import Server, percentile

KINDS = {'idle': b'',
         'half a header': b'GET /health HTTP/1.1\r\nHost: localhost\r\nX-Th',
         'half a body':
             b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"pro',
         'whole': b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n',
         'dead': b'GET /health HTTP/1.1\r\n'}


class GoodClient(threading.Thread):
    def __init__(self, server, patience):
        super().__init__(daemon=True)
        self.server, self.patience = server, patience
        self.times, self.again, self.worst, self.failures, self.ends = [], 0, 0.0, [], False

    def ask(self):
        connection = self.server.connection(timeout=self.patience)
        try:
            connection.request('GET', '/v1/models')
            reply = connection.getresponse()
            reply.read()
            return reply.status
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            connection.close()

    def run(self):
        while not self.ends:
            begin = time.perf_counter()
            status = self.ask()
            while status != 200 and time.perf_counter() - begin < self.patience:
                self.again += 1
                time.sleep(0.2)
                status = self.ask()
            seconds = time.perf_counter() - begin
            self.times.append(seconds)
            self.worst = max(self.worst, seconds)
            if status != 200 or seconds > self.patience:
                self.failures.append(f'{status} after {seconds:.1f} s')
            time.sleep(max(0, 1 - seconds))


class Crowd:
    def __init__(self, address):
        self.address, self.poll, self.open = address, select.poll(), {}
        self.counts, self.failed = collections.Counter(), collections.Counter()

    def add(self, kind):
        try:
            one = socket.socket()
            one.settimeout(5)
            one.connect(self.address)
            one.sendall(KINDS[kind])
        except OSError as error:
            one.close()
            self.failed[type(error).__name__] += 1
            return
        if kind == 'dead':
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            one.close()
            self.counts['dead'] += 1
            return
        one.setblocking(False)
        self.open[one.fileno()] = [one, b'']
        self.poll.register(one, select.POLLIN)

    def read(self, seconds):
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0 and self.open:
            for fd, _ in self.poll.poll(min(left, 0.2) * 1000):
                one, got = self.open[fd]
                try:
                    more = one.recv(4096)
                except BlockingIOError:
                    continue
                except OSError:
                    more = b''
                if more:
                    if not got:
                        self.counts[more[9:12].decode('latin-1')] += 1
                    self.open[fd][1] += more
                    continue
                if not got:
                    self.counts['closed without an answer'] += 1
                self.poll.unregister(fd)
                one.close()
                del self.open[fd]

    def close(self):
        for one, _ in self.open.values():
            one.close()
        self.open = {}


def state_of(pid):
    """Descriptors and threads of a process."""
    return tuple(len(os.listdir(f'/proc/{pid}/{part}')) for part in ('fd', 'task')) if pid else (0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('url')
    parser.add_argument('--number', type=int, default=10000)
    parser.add_argument('--wave', type=int, default=500)
    parser.add_argument('--hold', type=float, default=10)
    parser.add_argument('--patience', type=float, default=10)
    parser.add_argument('--pid', type=int)
    args = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = args.number + 100
    limit = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < wanted:
        print(f'only {limit} descriptors are allowed; of {args.number} connections some will fail')
    server = Server(args.url)
    crowd, good = Crowd((server.at.hostname, server.at.port)), GoodClient(server, args.patience)
    before = most = state_of(args.pid)
    good.start()
    begin = time.perf_counter()
    kinds = list(KINDS)
    gone = False
    try:
        for i in range(args.number):
            crowd.add(kinds[i % len(kinds)])
            if (i + 1) % args.wave == 0:
                crowd.read(0.2)
                most = tuple(map(max, most, state_of(args.pid)))
        opened = time.perf_counter() - begin
        stayed = len(crowd.open)
        crowd.read(args.hold)
        crowd.close()
        time.sleep(2)
        after = state_of(args.pid)
    except FileNotFoundError:
        gone, opened, stayed, after = True, 0, 0, (0, 0)
    good.ends = True
    good.join(2 * args.patience)
    hangs = good.is_alive()
    print(f'{args.number} connections in {opened:.1f} s; {stayed} open at the end; '
          f'not opened: {dict(crowd.failed)}')
    print('answers:', dict(sorted(crowd.counts.items())))
    print(f'good client: {len(good.times)} requests, {good.again} tried again, p50 '
          f'{1000 * percentile(good.times, 50):.1f} ms, p99 {1000 * percentile(good.times, 99):.1f} ms, '
          f'worst {1000 * good.worst:.1f} ms')
    if args.pid:
        print(f'descriptors: {before[0]} before, {most[0]} at most, {after[0]} after; '
              f'threads: {before[1]}, {most[1]}, {after[1]}')
    problems = good.failures + ['the server is gone'] * gone + ['the good client hangs'] * hangs
    if not good.times:
        problems.append('the good client had no answer')
    for problem in problems:
        print('FAILED:', problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
