# SPDX-License-Identifier: Apache-2.0
"""Texts of a known number of tokens for files that mica synth wrote."""
import random


def of_tokens(tokens, seed=None):
    """A token for each letter, beside BOS and the blank that begins a text; the same for the same seed."""
    letters = random.Random(tokens if seed is None else seed)
    return "".join(letters.choice("abcdefgh") for _ in range(tokens - 2))
