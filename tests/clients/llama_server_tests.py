# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest for the tests of llama-server, which suites.py loads before them. It starts no server that only
fetches models. With LOOSE=1 it takes any text where a test expects words of a story, since the same seed draws other
words from mica's sampler, and asks for the served model where a test asks for one of OpenAI's, which llama-server
ignores."""

import os
import sys

sys.path.insert(0, os.getcwd())
import openai._base_client  # noqa: E402
import utils  # of the tests, which import all names from it  # noqa: E402


def renamed(data):
    if isinstance(data, dict) and str(data.get("model", "")).startswith(("gpt-", "davinci-", "test", "claude-")):
        return {**data, "model": ""}
    return data


utils.ServerPreset.load_all = staticmethod(lambda: None)
if os.environ.get("LOOSE") == "1":
    utils.match_regex = lambda regex, text: text.strip() != ""

    build = openai._base_client.SyncAPIClient._build_request

    def build_renamed(self, options, **others):
        options.json_data = renamed(options.json_data)
        return build(self, options, **others)

    openai._base_client.SyncAPIClient._build_request = build_renamed

    for name in ("make_request", "make_stream_request"):
        def with_model(self, method, path, data=None, *others, send=getattr(utils.ServerProcess, name), **named):
            return send(self, method, path, renamed(data), *others, **named)
        setattr(utils.ServerProcess, name, with_model)

start = utils.ServerProcess.start


def start_and_load(self, *others, **named):
    """Ends when the model is loaded: /health of mica says that requests may come, and they wait for the model."""
    start(self, *others, **named)
    if not self.external_server and not self.models_dir:
        self.make_request("POST", "/tokenize", data={"content": ""},
                          headers={"Authorization": f"Bearer {self.api_key}"} if self.api_key else None)


utils.ServerProcess.start = start_and_load
