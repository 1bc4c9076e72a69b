#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: apply_renames.py ROOT [--write]     Applies the tables beside it to a checkout.

Without --write: lists collisions (the new name is already in the file), hits per entry, entries without a hit.
Code: whole identifiers. Comments, strings and pages: only names that no prose word equals (an underscore inside,
or CamelCase). A pair (old, file) takes the first entry whose path matches. Locals called most/least become
max_value/min_value where max/min is taken in the file.
"""
import collections, os, re, subprocess, sys
tables = os.path.dirname(os.path.abspath(__file__))
root = sys.argv[1]; write = '--write' in sys.argv
rows = []; regs = []
for l in open(tables + '/names.tsv'):
    if l.startswith('#'): continue
    o, n, m = l.rstrip('\n').split('\t')
    s = re.match(r'path=(.*?); ', m)
    if o.startswith('RE:'): regs.append((re.compile(o[3:]), n, re.compile(s[1]) if s else None)); continue
    if n: rows.append((o, n, re.compile(s[1]) if s else None))
TOK = re.compile(r'(//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')', re.S)
WORD = re.compile(r'(?<![\w])[A-Za-z_]\w*')
files = subprocess.run(['git', '-C', root, 'ls-files', 'include', 'examples', 'tests', 'bench', 'docs', 'README.md', 'CONTRIBUTING.md'],
                       capture_output=True, text=True).stdout.split()
prose_safe = lambda w: '_' in w.strip('_') or re.search(r'[a-z][A-Z]', w)
hits = collections.Counter()
for f in files:
    md = f.endswith('.md')
    if not (f.endswith(('.hpp', '.cpp', '.in')) or md) or f.endswith(('0020-words.md',)): continue
    text = open(os.path.join(root, f)).read()
    parts = ['', text] if md else TOK.split(text)     # code at even places, comments and strings at odd ones
    code = '' if md else ' '.join(parts[0::2])
    ids = set(re.findall(r'(?<!std::)\b[A-Za-z_]\w*', code))
    if not md:
        for x, n, s in regs:
            if not s or s.search(f): parts = [p if i % 2 else x.sub(n, p) for i, p in enumerate(parts)]
    table = {}
    for o, n, s in rows:
        if o in table or (s and not s.search(f)): continue
        if md and not prose_safe(o): continue
        if n in ids and o in ids:
            if o in ('most', 'least'): n += '_value'
            else: print('collision', f, o, n)
        table[o] = n
    def sub(p, i):
        def one(m):
            w = m[0]
            if w in table and (i % 2 == 0 or prose_safe(w)):
                hits[w] += 1; return table[w]
            return w
        return p if i % 2 and not md and p.startswith('"mica') else WORD.sub(one, p)
    new = ''.join(sub(p, i) for i, p in enumerate(parts))
    if write and new != text: open(os.path.join(root, f), 'w').write(new)
strings = [l.rstrip('\n').split('\t')[:2] for l in open(tables + '/messages.tsv') if not l.startswith('#') and '\t' in l]
for o, n in strings:
    count = 0
    for f in files:
        p = os.path.join(root, f)
        if not os.path.isfile(p) or f.endswith('0020-words.md'): continue
        try: t = open(p).read()
        except UnicodeDecodeError: continue
        if o in t:
            count += t.count(o)
            if write: open(p, 'w').write(t.replace(o, n))
    if not count: print('text not found:', o)
moves = [l.split() for l in open(tables + '/files.tsv') if l.strip() and not l.startswith('#')]
for o, n in moves:
    if not os.path.exists(os.path.join(root, o)): print('no file', o); continue
    if not write: continue
    os.makedirs(os.path.dirname(os.path.join(root, n)), exist_ok=True)
    subprocess.run(['git', '-C', root, 'mv', o, n], check=True)
if write:
    for f in files:
        p = os.path.join(root, f)
        if not os.path.exists(p): p = os.path.join(root, dict(moves).get(f, f))
        if not os.path.isfile(p) or f.endswith(('.json', '.svg', '.gguf')): continue
        try: t = open(p).read()
        except UnicodeDecodeError: continue
        u = t
        for o, n in moves:
            so, sn = o.replace('include/', ''), n.replace('include/', '')
            u = u.replace(so, sn)
            if f.startswith(os.path.dirname(o)) or True:
                a, b = '/'.join(so.split('/')[-2:]), '/'.join(sn.split('/')[-2:])
                u = re.sub(r'(?<![\w/-])' + re.escape(a) + r'(?!\w)', b, u)
        if u != t: open(p, 'w').write(u)
print('without a hit:', ' '.join(sorted({o for o, _, _ in rows} - set(hits))))
print(sum(hits.values()), 'replacements; then run clang-format on the changed files and build')
