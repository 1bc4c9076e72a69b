# SPDX-License-Identifier: Apache-2.0
"""Requests to a server of the OpenAI API, with the time of each token. Standard library alone."""
import http.client
import json
import os
import time
import urllib.parse


class Server:
    def __init__(self, url):
        self.url = url
        self.at = urllib.parse.urlsplit(url)

    def connection(self, timeout=600):
        return http.client.HTTPConnection(self.at.hostname, self.at.port, timeout=timeout)

    def get(self, path):
        connection = self.connection()
        connection.request('GET', path)
        return json.loads(connection.getresponse().read())

    def post(self, path, body):
        connection = self.connection()
        connection.request('POST', path, json.dumps(body), {'Content-Type': 'application/json'})
        reply = connection.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise RuntimeError(f'{path}: {reply.status} {text[:300]!r}')
        return json.loads(text)

    def stream(self, path, body):
        """The text, its times in seconds since the request, and the last usage and timings."""
        body = dict(body, stream=True, stream_options={'include_usage': True})
        begin = time.perf_counter()
        connection = self.connection()
        connection.request('POST', path, json.dumps(body), {'Content-Type': 'application/json'})
        reply = connection.getresponse()
        if reply.status != 200:
            raise RuntimeError(f'{path}: {reply.status} {reply.read()[:300]!r}')
        text, times, last = '', [], {}
        for line in reply:
            if not line.startswith(b'data: ') or line.startswith(b'data: [DONE]'):
                continue
            event = json.loads(line[6:])
            if 'error' in event:
                raise RuntimeError(str(event))
            for key in ('usage', 'timings'):
                if event.get(key):
                    last[key] = event[key]
            for choice in event.get('choices', []):
                piece = choice.get('text') or choice.get('delta', {}).get('content')
                if piece:
                    text += piece
                    times.append(time.perf_counter() - begin)
        return text, times, last


def write_json(path, results):
    """Does nothing without a path."""
    if path:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, 'w') as file:
            json.dump(results, file, indent=1)


def percentile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * p / 100))] if values else float('nan')
