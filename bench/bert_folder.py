#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder of a BERT model that is at hand as ONNX only, for `mica convert`.

usage: bench/bert_folder.py MODEL.onnx TOKENIZER.json DIR [--heads 12] [--pooling cls]

MODEL.onnx: floats, exported from transformers. Matrices of linear layers lose their names in such a file, so
they are named after their nodes and turned back to (outputs, inputs). The number of heads stands nowhere in
it. Writes model.safetensors, config.json, tokenizer.json, modules.json and 1_Pooling/config.json. Needs onnx
and safetensors.
"""
import argparse
import json
import pathlib
import shutil

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file


def named_weights(graph):
    """name in transformers: array"""
    found = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    named = {name: array for name, array in found.items() if name.startswith(("embeddings.", "encoder."))}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in found:
            path = node.name.strip("/").split("/")[:-1]  # encoder/layer.0/attention/self/query/MatMul
            named[".".join(path) + ".weight"] = found[node.input[1]].T
    return {name: np.ascontiguousarray(array, np.float32) for name, array in named.items()}


def config(weights, heads):
    words, hidden = weights["embeddings.word_embeddings.weight"].shape
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))
    return {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": hidden,
            "intermediate_size": len(weights["encoder.layer.0.intermediate.dense.weight"]),
            "layer_norm_eps": 1e-12, "max_position_embeddings":
                len(weights["embeddings.position_embeddings.weight"]),
            "num_attention_heads": heads, "num_hidden_layers": layers, "pad_token_id": 0,
            "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": words}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "tokenizer", "folder"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--pooling", choices=("cls", "mean"), default="cls")
    options = parser.parse_args()
    weights = named_weights(onnx.load(options.model).graph)
    pooling = options.folder / "1_Pooling"
    pooling.mkdir(parents=True, exist_ok=True)
    save_file(weights, options.folder / "model.safetensors")
    shutil.copyfile(options.tokenizer, options.folder / "tokenizer.json")
    written = {options.folder / "config.json": config(weights, options.heads),
               options.folder / "modules.json": [
                   {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                   {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}],
               pooling / "config.json": {
                   "word_embedding_dimension": weights["embeddings.word_embeddings.weight"].shape[1],
                   "pooling_mode_cls_token": options.pooling == "cls",
                   "pooling_mode_mean_tokens": options.pooling == "mean"}}
    for path, content in written.items():
        path.write_text(json.dumps(content, indent=1) + "\n")


main()
