# SPDX-License-Identifier: Apache-2.0
"""The numbers of tensors of made-up models, which follow from their names (model_values.hpp)."""

import math
import re

import numpy as np


def values(name, shape):
    """Uniform around 0, or around 1 in norms; the width is a power of two that fits the rows. Exact in
    F32."""
    seed = 2166136261
    for c in name.encode():
        seed = (seed ^ c) * 16777619 % 2**32
    h = (np.arange(math.prod(shape), dtype=np.uint64) * 2654435761 + seed) % 2**32
    h = (h ^ h >> 15) * 2246822519 % 2**32
    h = (h ^ h >> 13) * 3266489917 % 2**32
    u = (h >> 8).astype(np.float32) * np.float32(2**-24) - np.float32(0.5)
    if len(shape) == 1:
        norm = re.search("norm|emb_ln", name.lower()) and not re.search("bias|beta", name)
        return u * np.float32(0.25) + np.float32(1 if norm else 0)
    embeds = re.search("embed_tokens|word_embeddings|tok_embeddings", name)
    return (u * np.float32(2.0 if embeds else 2.0 ** (2 - int(math.log2(shape[-1])) // 2))).reshape(shape)
