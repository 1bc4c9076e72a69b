# SPDX-License-Identifier: Apache-2.0
"""Makes include/mica/text/detail/unicode_tables.hpp: what BERT's normaliser does to each character.

    python3 unicode_tables.py > unicode_tables.hpp      needs tokenizers 0.23

The tables are read off Hugging Face's BertNormalizer and BertPreTokenizer, character by character, because
models were trained with them: their categories are those of Unicode 8, their letter cases are newer.
"""

from tokenizers import normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic
WIDTH = 108

HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Properties of characters as BERT's normaliser knows them, made by tests/text/unicode_tables.py: which are
// dropped, are marks or punctuation, what is below their accents, and their lower case. Categories are those
// of Unicode 8, as in Hugging Face's tokenizers. Data only; characters.hpp looks things up.
#pragma once

#include <cstdint>

namespace mica::text::detail::unicode {

/// Characters from `first` to `last`.
struct Range {
  std::uint32_t first, last;
};

/// Characters from `first` on whose bases are `count` entries of `bases`, from `index` on.
struct BaseRun {
  std::uint32_t first;
  std::uint16_t count, index;
};

/// A character that decomposes into several; 0 stands for none.
struct Several {
  std::uint32_t from, to[3];
};

/// Each `step`-th character from `first` to `last` has its lower case `delta` characters further.
struct CaseRun {
  std::uint32_t first, last;
  std::int32_t step, delta;
};

// clang-format off
"""

TAIL = """// clang-format on

}  // namespace mica::text::detail::unicode
"""


def bert(**on):
    options = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**options, **on}).normalize_str


def runs(points, same=lambda a, b: True):
    """Neighbours for which same(previous, next) holds, as [first, last]."""
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1 and same(c - 1, c):
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def case_runs(lower):
    """[first, last, step, delta], greedily the longer of the steps 1 and 2."""
    out, left = [], sorted(lower)
    while left:
        first, best = left[0], []
        for step in (1, 2):
            run = [first]
            while (lower.get(run[-1] + step, -1) - run[-1] - step == lower[first] - first
                   and (step == 1 or run[-1] + 1 not in lower)):
                run.append(run[-1] + step)
            if len(run) > len(best):
                best, best_step = run, step
        out.append((first, best[-1], best_step, lower[first] - first))
        taken = set(best)
        left = [c for c in left if c not in taken]
    assert all(a[1] < b[0] for a, b in zip(out, out[1:]))  # one look-up finds the run
    return out


def table(comment, declaration, entries):
    lines, line = [], " "
    for entry in entries:
        if len(line) + len(entry) + 2 > WIDTH:
            lines.append(line)
            line = " "
        line += " " + entry + ","
    return f"\n/// {comment}\ninline constexpr {declaration}[] = {{\n" + "\n".join(lines + [line]) + "\n};\n"


def ranges(found):
    return [f"{{0x{first:X}, 0x{last:X}}}" for first, last in found]


def main():
    clean, strip, low = bert(clean_text=True), bert(strip_accents=True), bert(lowercase=True)
    split = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    dropped = [c for c in POINTS if clean(chr(c)) == ""] + list(range(0xD800, 0xE000))
    stripped = {c: strip(chr(c)) for c in POINTS if c not in HANGUL and strip(chr(c)) != chr(c)}
    one = {c: ord(s) for c, s in stripped.items() if len(s) == 1}
    lower = {c: ord(low(chr(c))) for c in POINTS if len(low(chr(c))) == 1 and low(chr(c)) != chr(c)}
    assert [c for c in POINTS if len(low(chr(c))) > 1] == [0x130]
    out = HEAD
    out += table("Control, format and private characters, U+FFFD and surrogates: no text has them.",
                 "Range dropped", ranges(runs(dropped)))
    out += table("Characters by themselves between two words, ASCII's symbols among them.",
                 "Range punctuation", ranges(runs([c for c in POINTS if len(split(f"a{chr(c)}a")) == 3])))
    out += table("Combining marks that are removed with accents (Mn).",
                 "Range marks", ranges(runs([c for c, s in stripped.items() if s == ""])))
    index, entries, bases = 0, [], []
    for first, last in runs(one):
        entries.append(f"{{0x{first:X}, {last - first + 1}, {index}}}")
        bases += [f"0x{one[c]:X}" for c in range(first, last + 1)]
        index = len(bases)
    out += table("Characters that decompose into one and marks, without the marks.",
                 "BaseRun base_runs", entries)
    out += table("What base_runs refers to.", "std::uint32_t bases", bases)
    out += table("Characters that decompose into several, without marks. Hangul follows by arithmetic.",
                 "Several several",
                 ["{0x%X, {%s}}" % (c, ", ".join(f"0x{ord(x):X}" for x in s))
                  for c, s in stripped.items() if len(s) > 1])
    out += table("Lower case; U+0130 alone becomes two characters and is not here.", "CaseRun case_runs",
                 ["{0x%X, 0x%X, %d, %d}" % run for run in case_runs(lower)])
    print(out + "\n" + TAIL, end="")


main()
