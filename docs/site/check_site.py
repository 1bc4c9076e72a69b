#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# check_site.py FOLDER: what Doxygen warned of, and dead links of a built site. Every warning is an error, so every
# public name has a comment: its own, that of its class, of the lines above up to an empty line, or of a concept
# (prepare.py). Every link leads to a file of the site, and to an anchor of that file where it names one; links to
# other sites are counted and not followed. Exit code 1 after an error.
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links, self.anchors = [], set()

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if (tag, name) in (("a", "href"), ("link", "href"), ("img", "src"), ("script", "src")) and value:
                self.links.append(value)


def read(file):
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def check_warnings(root):
    """The number of warnings of Doxygen."""
    lines = (root / "warnings.txt").read_text(encoding="utf-8").split("\n")
    errors = sorted({line for line in lines if "warning:" in line})
    for each in errors:
        print(each)
    print("%d warnings" % len(errors))
    return len(errors)


def main():
    root = pathlib.Path(sys.argv[1])
    errors = check_warnings(root)
    pages = {file.resolve(): read(file) for file in root.rglob("*.html")}
    links = outside = 0
    dead = set()
    for file, page in pages.items():
        for link in page.links:
            to = urllib.parse.urlsplit(link)
            if to.scheme or to.netloc:
                outside += 1
                continue
            if to.fragment == "nested-classes" and not to.path:
                continue  # Doxygen writes it at the head of a class also where all nested classes are private
            links += 1
            there = (file.parent / urllib.parse.unquote(to.path)).resolve() if to.path else file
            anchor = urllib.parse.unquote(to.fragment)
            if not there.exists() or (anchor and there in pages and anchor not in pages[there].anchors):
                dead.add("%s: %s" % (file.name, link))
    for each in sorted(dead):
        print(each)
    print("%d pages, %d links, %d of them dead; %d to other sites" % (len(pages), links, len(dead), outside))
    return 1 if errors or dead or not links else 0


if __name__ == "__main__":
    sys.exit(main())
