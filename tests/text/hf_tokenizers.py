# SPDX-License-Identifier: Apache-2.0
"""Compares the tokens of WordPiece and Unigram with those of Hugging Face's tokenizers and of SentencePiece.

    g++ -std=c++20 -O2 -Iinclude -DMICA_HAS_TEXT=1 tests/text/encode_lines.cpp -lpcre2-8 -o encode_lines
    python3 hf_tokenizers.py ./encode_lines [--corpus FILE]... [--lines N] [FOLDER]...

Needs tokenizers and sentencepiece. Each FOLDER has a tokenizer.json; small vocabularies are trained besides,
on the corpus and on made-up lines of many scripts: WordPiece with and without letter case and accents, and
Unigram with the charsmaps nmt_nfkc, nmt_nfkc_cf and none, in the form of XLM-RoBERTa (tokenizer.json, or
sentencepiece.bpe.model) and of T5 (spiece.model). Prints the lines whose ids differ, and the counts.
"""

import argparse
import math
import pathlib
import random
import subprocess
import tempfile
import unicodedata

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

SCRIPTS = {
    "latin": (0x41, 0x7A), "accents": (0xC0, 0x24F), "vietnamese": (0x1E00, 0x1EFF), "greek": (0x370, 0x3FF),
    "greek accents": (0x1F00, 0x1FFF), "cyrillic": (0x400, 0x52F), "hebrew": (0x590, 0x5FF),
    "arabic": (0x600, 0x6FF), "arabic forms": (0xFE70, 0xFEFF), "devanagari": (0x900, 0x97F),
    "bengali": (0x980, 0x9FF), "tamil": (0xB80, 0xBFF), "thai": (0xE00, 0xE7F), "tibetan": (0xF00, 0xFFF),
    "georgian": (0x10A0, 0x10FF), "jamo": (0x1100, 0x11FF), "kana": (0x3040, 0x30FF),
    "ideographs": (0x4E00, 0x9FFF), "more ideographs": (0x20000, 0x2A6FF), "compatibility": (0xF900, 0xFAFF),
    "hangul": (0xAC00, 0xD7A3), "wide": (0xFF00, 0xFFEF), "emoji": (0x1F300, 0x1FAFF),
    "marks": (0x300, 0x36F), "more marks": (0x1AB0, 0x1AFF), "punctuation": (0x2000, 0x206F),
    "more punctuation": (0x3000, 0x303F), "ascii symbols": (0x21, 0x40), "control": (0x01, 0x1F),
    "more control": (0x7F, 0xA0), "symbols": (0x2100, 0x27FF), "letters of mathematics": (0x1D400, 0x1D7FF),
    "private": (0xE000, 0xE0FF), "tags": (0xE0000, 0xE007F), "anything": (0x20, 0x1FFFF),
}
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "   "]


def made_up_line(rng):
    """Words of a few scripts, some with marks on them, some very long."""
    names, out = rng.sample(sorted(SCRIPTS), rng.randint(1, 4)) + ["latin"], []
    for _ in range(rng.randint(1, 12)):
        first, last = SCRIPTS[rng.choice(names)]
        length = rng.choice([1, 2, 3, 4, 6, 9]) if rng.random() < 0.99 else rng.randint(90, 140)
        word = [chr(rng.randint(first, last)) for _ in range(length)]
        if rng.random() < 0.15:
            word.insert(rng.randint(0, length), chr(rng.randint(0x300, 0x36F)))
        if rng.random() < 0.1:
            word = list(unicodedata.normalize(rng.choice(["NFC", "NFD", "NFKC"]), "".join(word)))
        out += ["".join(word), rng.choice(SPACES) if rng.random() < 0.9 else ""]
    return "".join(c for c in "".join(out) if not 0xD800 <= ord(c) < 0xE000)


def make_lines(corpus, count, rng):
    """Half of the corpus, in pieces, half made up."""
    texts = [line.strip() for path in corpus for line in path.read_text("utf-8").splitlines() if line.strip()]
    lines = []
    while texts and len(lines) < count // 2:
        text = rng.choice(texts)
        begin = rng.randint(0, max(0, len(text) - 200))
        lines.append(text[begin:begin + rng.randint(1, 300)])
    return lines + [made_up_line(rng) for _ in range(count - len(lines))]


def train_wordpiece(folder, lines, **options):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(lines, trainers.WordPieceTrainer(
        vocab_size=8000, limit_alphabet=3000, special_tokens=names, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    tokenizer.save(str(folder / "tokenizer.json"))


def train_unigram(folder, lines, rule):
    """Returns the path of the SentencePiece model."""
    prefix = str(folder / "spm")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([x.replace("\n", " ") for x in lines]), model_prefix=prefix,
        model_type="unigram", vocab_size=16000, character_coverage=0.98, normalization_rule_name=rule,
        num_threads=1, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, minloglevel=2, hard_vocab_limit=False)
    return pathlib.Path(prefix + ".model")


def charsmap_of(model):
    """The field precompiled_charsmap of a SentencePiece model."""
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.read_bytes())
    return proto.normalizer_spec.precompiled_charsmap


def write_xlm_roberta(folder, model):
    """tokenizer.json as Hugging Face makes it of XLM-RoBERTa's SentencePiece model."""
    spm = sentencepiece.SentencePieceProcessor(model_file=str(model))
    vocab = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    vocab += [(spm.id_to_piece(i), spm.get_score(i)) for i in range(3, spm.get_piece_size())]
    vocab.append(("<mask>", 0.0))
    tokenizer = tokenizers.Tokenizer(models.Unigram(vocab, unk_id=3))
    charsmap = charsmap_of(model)
    if charsmap:
        tokenizer.normalizer = normalizers.Precompiled(charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(),
        pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.save(str(folder / "tokenizer.json"))


class HuggingFace:
    """A tokenizer.json. Its Precompiled replaces a character and the marks on it by what the first character
    alone is replaced by, so that marks are lost, and its Metaspace puts no space before a U+2581 of the text;
    there, SentencePiece's model is right."""

    special = True  # special tokens in texts are found
    reason = "as SentencePiece has them"

    def __init__(self, folder, truth=None, spaces_only=False):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.size = self.tokenizer.get_vocab_size()
        self.truth, self.spaces_only = truth, spaces_only

    def text(self, text):
        """Without a charsmap SentencePiece knows no white space but spaces, WhitespaceSplit does."""
        return " ".join(text.split()) if self.spaces_only else text

    def ids(self, texts):
        return self.tokenizer.encode(*texts).ids

    def explains(self, texts, wanted, found):
        truth = self.truth and self.truth.ids(texts)
        return truth is not None and (truth == found or self.truth.explains(texts, truth, found))


class SentencePiece:
    """T5: a text ends with </s>. XLM-RoBERTa: ids move by one, and special tokens are around. Sums of scores
    are floats, so that of two nearly equal spellings the worse may win."""

    special = False
    reason = "better by their sum of scores in doubles"

    def __init__(self, model, fairseq):
        self.spm = sentencepiece.SentencePieceProcessor(model_file=str(model))
        self.fairseq = fairseq
        self.size = self.spm.get_piece_size() + (2 if fairseq else 0)

    def text(self, text):
        return text

    def ids(self, texts):
        eos = self.spm.eos_id()
        parts = [self.spm.encode(text) for text in texts]
        if not self.fairseq:
            return [i for part in parts for i in part + [eos]]
        out = [[3 if i == 0 else i + 1 for i in part] + [2] for part in parts]
        return [0] + out[0] + ([2] + out[1] if len(out) > 1 else [])

    def explains(self, texts, wanted, found):
        def total(ids):
            return math.fsum(self.spm.get_score(i - self.fairseq) for i in ids if i > 3)

        def spelled(ids):
            return "".join(self.spm.id_to_piece(i - self.fairseq) for i in ids if i > 3)
        return spelled(wanted) == spelled(found) and 0 <= total(found) - total(wanted) < 1e-3


def escaped(text):
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def compare(program, name, folder, reference, lines):
    """Counts the texts whose ids differ and whose difference the reference does not explain."""
    lines = [reference.text(line) for line in lines]
    pairs = [line.replace("<", "(") for line in lines[::50]]  # special tokens in pairs stay text
    texts = [[line] for line in lines] + [[a, b] for a, b in zip(pairs, pairs[1:])]
    given = "\n".join("\\p".join(escaped(t) for t in each) for each in texts) + "\n"
    command = [program, str(folder), str(reference.size)] + ([] if reference.special else ["plain"])
    run = subprocess.run(command, input=given.encode(), capture_output=True, check=False)
    assert run.returncode == 0, run.stderr.decode()
    ours = [[int(i) for i in line.split()] for line in run.stdout.decode().splitlines()]
    assert len(ours) == len(texts)
    different = explained = 0
    for each, found in zip(texts, ours):
        wanted = reference.ids(each)
        if wanted == found:
            continue
        different += 1
        if reference.explains(each, wanted, found):
            explained += 1
        elif different - explained <= 3:
            print(f"    {each!r}\n      wanted {wanted}\n      found  {found}")
    shown = f", {explained} of these are {reference.reason}" if explained else ""
    print(f"{name}: {different} of {len(texts)} differ{shown}, {sum(map(len, ours))} tokens", flush=True)
    return different - explained


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--corpus", action="append", default=[], type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=100000)
    parser.add_argument("--work", type=pathlib.Path, help="keeps what is trained")
    args = parser.parse_args()
    rng = random.Random(7)
    lines = make_lines(args.corpus, args.lines, rng)
    training = rng.sample(lines, min(len(lines), 20000))
    cases = [(str(folder), folder, HuggingFace(folder)) for folder in args.folders]
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or pathlib.Path(temporary)

        def folder_of(name):
            (work / name).mkdir(parents=True, exist_ok=True)
            return work / name

        for name, options in {"cased": dict(lowercase=False), "uncased": dict(lowercase=True),
                              "lower case with accents": dict(lowercase=True, strip_accents=False)}.items():
            folder = folder_of("wordpiece " + name)
            if not (folder / "tokenizer.json").exists():
                train_wordpiece(folder, training, **options)
            cases.append((folder.name, folder, HuggingFace(folder)))
        for rule in ["nmt_nfkc", "nmt_nfkc_cf", "identity"]:
            trained = folder_of("spm " + rule)
            model = trained / "spm.model"
            if not model.exists():
                train_unigram(trained, training, rule)
            json_folder = folder_of(f"unigram {rule} tokenizer.json")
            write_xlm_roberta(json_folder, model)
            cases.append((json_folder.name, json_folder,
                          HuggingFace(json_folder, SentencePiece(model, True), rule == "identity")))
            for file in ["sentencepiece.bpe.model", "spiece.model"]:
                folder = folder_of(f"unigram {rule} {file}")
                (folder / file).write_bytes(model.read_bytes())
                cases.append((folder.name, folder, SentencePiece(model, file != "spiece.model")))
        total = sum(compare(args.program, *case, lines) for case in cases)
    print(f"{total} differences are not explained")


main()
