#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hostile and unusual requests to a running server of mica. Standard library alone.

  tests/clients/hostile.py URL [MODEL]

Each case names the statuses that are right; 'closed' is a connection that ends without an answer. After each
one the server must still answer /health. A connection that says nothing for 20 seconds is a hang."""
import socket
import sys
import time
import urllib.parse

CLOSED, HANG = 'closed', 'hang'
PATIENCE = 20
ENDS = ('half closed', 'bytes', 'a chunk of size')  # cases whose client says that no more bytes come


def statuses_of(address, pieces, pause=0.0, half_close=False):
    """The statuses of all answers until the server closes the connection."""
    with socket.create_connection(address, PATIENCE) as one:
        try:
            for piece in pieces:
                one.sendall(piece)
                time.sleep(pause)
            if half_close:
                one.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the server may have answered before all was sent
        got = b''
        try:
            while more := one.recv(65536):
                got += more
        except TimeoutError:
            return [HANG]
        except OSError:
            pass
    found, at = [], got.find(b'HTTP/1.1 ')
    while at >= 0:
        found.append(int(got[at + 9:at + 12]))
        at = got.find(b'HTTP/1.1 ', at + 9)
    return found or [CLOSED]


def request(method, path, body=None, *headers):
    lines = [f'{method} {path} HTTP/1.1', 'Host: localhost', 'Connection: close', *headers]
    if body is not None:
        lines.append(f'Content-Length: {len(body)}')
    return '\r\n'.join(lines).encode() + b'\r\n\r\n' + (body or b'')


def cases(model):
    chat, text = '/v1/chat/completions', '/v1/completions'
    start = b'{"model":"' + model.encode() + b'",'
    hello = start + b'"prompt":"a","max_tokens":2'
    chunked = (b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
               b'Transfer-Encoding: chunked\r\n\r\n')

    def chunk(bytes_):
        return b'%x\r\n%s\r\n' % (len(bytes_), bytes_)

    whole = request('GET', '/health')
    for name, body in {
            'no JSON': b'{"a":', 'an empty body': b'', 'an array': b'[]', 'deep arrays': b'[' * 100000,
            'deep objects': b'{"a":' * 100000, 'bad UTF-8': start + b'"prompt":"\xff\xfe"}',
            'half a surrogate': start + b'"prompt":"\\ud800"}', 'NUL': b'\0' * 100,
            'a huge number': start + b'"prompt":"a","max_tokens":1e999}',
            'a long number': start + b'"prompt":"a","max_tokens":' + b'9' * 1000 + b'}',
            'a token below 0': start + b'"prompt":[-1]}', 'a huge token': start + b'"prompt":[4294967295]}',
            'a huge seed': start + b'"prompt":"a","n":1e300}', 'many members':
                b'{' + b','.join(b'"%d":1' % i for i in range(5000)) + b'}'}.items():
        for path in (chat, text, '/v1/messages', '/v1/responses', '/api/generate'):
            yield f'{name}, {path}', [request('POST', path, body)], {400, 404}
    yield 'a good one', [request('POST', text, hello + b'}')], {200}
    yield '10 MB of headers', [request('GET', '/health', None, 'A: ' + 'a' * 10_000_000)], {400, 431, CLOSED}
    yield 'many headers', [request('GET', '/health', None, *(f'A{i}: b' for i in range(100000)))], {
        400, 431, CLOSED}
    yield '10 MB of body', [request('POST', text, b'a' * 10_000_000)], {413}
    for path, right in (('/%2e%2e/%2e%2e/etc/passwd', {404}), ('//etc/passwd', {404}),
                        ('/../../etc/passwd', {404}),
                        ('/%00', {400, 404}), ('/health%00.html', {400, 404}), ('/%zz', {400, 404}),
                        ('/v1/models/%2e%2e%2f%2e%2e', {404}), ('http://localhost/health', {200, 400, 404}),
                        ('http://evil.example/health', {200, 400, 403, 404}), ('/' + 'a' * 5000, {400, 414}),
                        ('*', {400, 404}), ('health', {400, 404})):
        yield f'path {path[:40]}', [request('GET', path)], right
    yield 'pipelined', [b'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n' + whole], {200}
    yield 'half closed', [whole], {200}
    yield 'half closed, tokens', [request('POST', '/tokenize', b'{"content":"a"}')], {200}
    head, _, rest = request('POST', text, hello + b'}', 'Expect: 100-continue').partition(b'\r\n\r\n')
    yield 'Expect', [head + b'\r\n\r\n', rest], {100, 200}
    yield 'an unknown Expect', [request('POST', text, hello + b'}', 'Expect: a-miracle')], {200, 417}
    good = hello + b'}'
    yield 'chunks', [chunked + chunk(good[:9]) + chunk(good[9:]) + b'0\r\n\r\n'], {200}
    for size in (b'zz', b'-1', b'ffffffffffffffffff', b'', b'7fffffffffffffff', b'0x5'):
        yield f'a chunk of size {size.decode()!r}', [chunked + size + b'\r\nhello\r\n0\r\n\r\n'], {
            400, 413, CLOSED}
    yield 'a chunk without an end', [chunked + b'5\r\nhelloworld\r\n0\r\n\r\n'], {400, CLOSED}
    yield 'two lengths', [request('POST', text, good, 'Content-Length: 1')], {400}
    yield 'HEAD', [request('HEAD', '/health')], {200}
    yield 'OPTIONS', [request('OPTIONS', chat)], {200}
    own = ('Origin: http://localhost', 'Access-Control-Request-Method: POST')
    yield 'preflight', [request('OPTIONS', chat, None, *own)], {200}
    yield 'preflight of others', [request('OPTIONS', chat, None, 'Origin: http://evil.example')], {403}
    yield 'a foreign host', [
        b'GET /health HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n'], {403}
    for method in ('DELETE', 'PUT', 'PATCH'):
        yield method, [request(method, '/health', b'')], {404, 405}
    for method in ('TRACE', 'CONNECT', 'BREW', 'get', 'A' * 1000):
        yield f'method {method[:9]}', [request(method, '/health')], {400, 404, 405, 501}
    for line in (b'\r\n\r\n', b'\0\0\0\0', b'GET /health\r\n\r\n', b'GET /health HTTP/9.9\r\n\r\n',
                 b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + b'\0' * 500):
        yield f'bytes {line[:16]!r}', [line], {400, 505, CLOSED}


def slow_cases():
    whole = request('GET', '/health')
    yield 'a header byte by byte', [whole[i:i + 1] for i in range(len(whole))], 0.02, {200}
    body = request('POST', '/tokenize', b'{"content":"a"}')
    yield 'a body byte by byte', [body[i:i + 1] for i in range(len(body))], 0.02, {200}
    yield 'a header that takes too long', [b'GET /health HTTP/1.1\r\n'] + [b'A: b\r\n'] * 26, 0.5, {
        400, 408, CLOSED}


def main():
    at = urllib.parse.urlsplit(sys.argv[1])
    address = (at.hostname, at.port)
    failures = count = 0
    model = sys.argv[2] if len(sys.argv) > 2 else ''
    tries = [(name, pieces, 0.0, right) for name, pieces, right in cases(model)]
    for name, pieces, pause, right in tries + list(slow_cases()):
        try:
            found = statuses_of(address, pieces, pause, half_close=name.startswith(ENDS))
            alive = statuses_of(address, [request('GET', '/health')])
        except OSError as error:
            print(f'FAILED: {name}: the server is gone ({error})')
            return 1
        count += 1
        if not set(found) <= right or alive != [200]:
            failures += 1
            print(f'FAILED: {name}: {found}, right is {right}; then /health: {alive}')
    print(f'{count} cases, {failures} failed')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
