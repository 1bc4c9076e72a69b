#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# prepare.py FOLDER [URL]: writes what Doxygen reads, all public headers and pages, with the marks that it wants.
#
# Headers of mica have plain comments where Doxygen needs marks: at the head of a file, at the end of the line
# of a member, above the members that a concept requires. Links of pages to pages become links of the site, and
# those to other files and folders lead to URL, or are text without one.
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TYPE = re.compile(r"^\s*(inline |export |friend )*(namespace|struct|class|union|enum|extern \"C\")\b")


def escaped(text):
    """The text of a comment, of which Doxygen takes nothing for a command or a tag, but for code in backticks."""
    out, code = [], False
    paired = text.count("`") % 2 == 0
    for char in text:
        if char == "`" and paired:
            code = not code
            out.append("<code>" if code else "</code>")
        elif char in "<>&":
            out.append({"<": "&lt;", ">": "&gt;", "&": "&amp;"}[char])
        else:
            out.append("\\" + char if char in "@\\#%" or (code and char in "*_") else char)
    return "".join(out).replace("&gt;::", "&gt;\\::")


def lines_of_comment(lines):
    """Comment lines without their slashes as Markdown: what is indented is a block of code."""
    out, block = [], False
    for line in lines:
        text = line.rstrip()
        indented = text.startswith("   ")
        if indented != block:
            out.append("")
        block = indented
        out.append("    " + text if indented else escaped(text.strip()))
    return out


def head(lines):
    """The comment at the head of a file as its documentation; answers the number of its lines too."""
    end = 0
    while end < len(lines) and lines[end].startswith("//") and not lines[end].startswith("///"):
        end += 1
    text = [line[2:] for line in lines[:end] if "SPDX" not in line]
    while text and not text[0].strip():
        text.pop(0)
    text = [line[1:] if line.startswith(" ") else line for line in text]
    return ["/// @file"] + ["/// " + line for line in lines_of_comment(text)], end


def without_templates(text):
    """A declaration without its template heads."""
    text = text.lstrip()
    while text.startswith("template"):
        depth, at = 0, text.find("<")
        if at < 0:
            break
        for at in range(at, len(text)):
            depth += {"<": 1, ">": -1}.get(text[at], 0)
            if depth == 0:
                break
        text = text[at + 1 :].lstrip()
        if text.startswith("requires"):
            found = re.search(r"\b(struct|class|union)\s+\w+[^()]*$", text)
            text = text[found.start() :] if found else text
    return text


def code_and_comment(line):
    """A line divided at its comment, which is not one inside a text."""
    quote = None
    for at, char in enumerate(line):
        if quote:
            if char == quote and line[at - 1] != "\\":
                quote = None
        elif char == '"' or (char == "'" and not (at and line[at - 1].isalnum())):
            quote = char
        elif line.startswith("//", at):
            return line[:at], line[at:]
    return line, ""


# Members that many classes have because a concept or a habit of the tree asks for them, documented once.
COMMON = {
    "Allocator": "Its allocator.",
    "Block": "The bytes of a block, as files have them.",
    "Rebind": "The same over another allocator or type.",
    "arithmetic": "How products with it compute.",
    "begin": "The first element.",
    "block_size": "Values of a block.",
    "bytes": "Its size in bytes.",
    "data": "The address of the first element.",
    "empty": "Whether there are no elements.",
    "end": "Behind the last element.",
    "file_type": "The number of general.file_type.",
    "first": "The first row, token or element of the slice [first, last).",
    "id": "The number in files.",
    "last": "The end of the slice [first, last).",
    "ledger": "The ledger in which its bytes are booked; null: in none.",
    "name": "The name, as files and command lines spell it.",
    "path": "The path, as it was given.",
    "size": "The number of elements.",
    "span": "All elements.",
}
SKIPPED = re.compile(
    r"^(namespace|extern|static_assert|friend|using namespace|public:|private:|protected:|[A-Z_]{5,}\b|[}#/)]|requires\b)"
)


def declared(bare):
    """The name that a line declares, or nothing."""
    found = re.search(r"\b(?:using|struct|class|enum class|union) (\w+)|\b(\w+)(?: = |\(|\{|;|\[)", bare)
    return (found.group(1) or found.group(2)) if found else ""


def declarations(code):
    """A line that declares several members of one type, as a line for each: a comment is for all of them."""
    value = r"\w+(?: = [^,;(){}]+)?"
    found = re.match(r"^(\s*(?:\w+ )*[\w:]+(?:<.*>)?\*? )(%s(?:, %s)+);\s*$" % (value, value), code)
    return [found.group(1) + each + ";" for each in found.group(2).split(", ")] if found else [code]


def header(text, stem=""):
    lines = text.split("\n")
    out, at = head(lines)
    about = out[1:]  # of the file, and of the type with the name of the file
    blocks, statement, trailing = [], "", None
    doc, section, section_depth = [], None, 0
    for number, line in enumerate(lines[at:], at):
        code, comment = code_and_comment(line)
        bare = code.strip()
        if not bare and comment.startswith("// clang-format"):
            continue
        whole = bare  # with the lines below, up to a body or an end
        for more in lines[number + 1 : number + 6]:
            if "{" in whole or ";" in whole:
                break
            whole += " " + code_and_comment(more)[0].strip()
        whole = without_templates(whole) if bare else bare
        in_type = all(blocks)
        indent = len(line) - len(line.lstrip())
        pad = " " * indent
        if section and (bare in ("private:", "protected:", "public:") or len(blocks) < section_depth):
            section = None
        if not bare and not comment:
            doc = []
        if not bare and comment.startswith("// ") and in_type:
            title = re.match(r"// ((Required by|Specific to) .*?)\.?$", comment)
            if title:
                section = title.group(1) if title.group(2) == "Required by" else None
                section_depth, doc, trailing = len(blocks), [], None
                out.append(line)
                continue
            if trailing is not None and abs(indent - trailing) < 2:
                out.append(code + "///< " + escaped(comment[3:]))  # more of the comment above
                continue
        trailing = None
        if re.search(r"= (delete|default);$", bare):
            continue
        own = bool(bare) and comment.startswith("// ") and in_type and bool(blocks)
        ends = bare.endswith((";", ",", "}")) or bool(re.match(r"^\w+( = [^;{}]+)?$", bare))
        own = own and ends and bare != "}"
        macro = bare.startswith("#define")
        starts = bool(bare) and in_type and (macro or (not statement.strip() and not SKIPPED.match(bare)))
        above = [each for each in out[-20:] if not each.startswith(("#if", "#undef"))]
        after_doc = bool(above) and above[-1].lstrip().startswith("///") and not above[-1].lstrip().startswith("///<")
        if starts and after_doc:
            doc = []
            for before in reversed(above):
                if not before.lstrip().startswith("///") or before.lstrip().startswith("///<"):
                    break
                doc.insert(0, before.strip())
        elif starts and not own and not comment.startswith("///<") and (blocks or macro or TYPE.match(whole)):
            common = COMMON.get(declared(whole))
            if TYPE.match(whole) and declared(whole).replace("_", "").lower() == stem:
                out += about
            elif section:
                out.append(pad + "/// " + escaped(section) + ": the concept says what this must do.")
            elif doc and not TYPE.match(whole) and not re.match(r"(virtual )?~", bare):
                out += [pad + each for each in doc]  # a comment is for all declarations up to an empty line
            elif common:
                out.append(pad + "/// " + common)
        if comment.startswith("///") and not bare:
            out.append(code + "///" + escaped(comment[3:]))
        elif own:
            out += [each + "  ///< " + escaped(comment[3:]) for each in declarations(code.rstrip())]
            trailing = len(code)
        else:
            each, *more = declarations(line) if in_type else [line]
            out.append(each)
            for each in more:
                out += [pad + text for text in doc] + [each]
        for char in code:
            if char == "{":
                blocks.append(all(blocks) and bool(TYPE.match(without_templates(statement))))
                fields = declared(statement.strip()) == "Block"
                statement = ""
                if fields:
                    doc = ["/// A field of the block; the comment above draws it."]
                elif blocks[-1]:
                    doc = []  # a type begins
            elif char == "}":
                if blocks and blocks.pop():
                    doc = []  # a type has ended
                statement = ""
            elif char == ";":
                statement = ""
            else:
                statement += char
        statement = "" if bare.startswith("#") or bare in ("public:", "private:", "protected:") else statement + " "
    return "\n".join(out)


def page(path, text):
    """A Markdown page whose links lead to pages, and to files of the public repository."""
    here = path.parent

    def link(found):
        label, to = found.group(1).replace("\n", " "), found.group(2)
        if ":" in to:
            return found.group(0)
        if to.startswith("#"):
            return "[%s](@ref %s)" % (label, page_id(path, to[1:]))
        name, _, anchor = to.partition("#")
        there = (here / name).resolve()
        if there.is_dir() and (there / "README.md").exists():
            there = there / "README.md"
        if there.suffix == ".md" and there.exists():
            return "[%s](@ref %s)" % (label, page_id(there, anchor))
        if not REPOSITORY:
            return label
        return "[%s](%s/%s)" % (label, REPOSITORY, there.relative_to(ROOT).as_posix())

    out, code, anchors, prose = [], False, set(), []

    def end_of_prose():
        """Links may be divided at the end of a line, so they are replaced in all lines between blocks of code."""
        out.extend(re.sub(r"\[([^\]`]*(?:`[^`]*`[^\]`]*)*)\]\(([^)\s]*)\)", link, "\n".join(prose)).split("\n"))
        prose.clear()

    for line in text.split("\n"):
        if line.startswith("```"):
            end_of_prose()
            code = not code
            language = line[3:].strip()
            out.append("~~~~" + ("{.%s}" % language if language else ""))
            continue
        if code:
            out.append(line)
            continue
        heading = re.match(r"^(#+) (.*)$", line)
        if heading:
            name = anchor_of(heading.group(2))
            mark = page_id(path, name) if anchors else page_id(path)
            line = "%s %s {#%s}" % (heading.group(1), heading.group(2).replace("`", ""), mark)
            anchors.add(name)
        prose.append(line)
        if heading and heading.group(1) == "#":
            prose.extend(["", "[TOC]", ""])
    end_of_prose()
    return "\n".join(out)


def anchor_of(heading):
    kept = "".join(c for c in heading.lower() if c.isalnum() or c in "_- ")
    return kept.replace(" ", "-")


def page_id(path, anchor=""):
    name = path.relative_to(ROOT).with_suffix("").as_posix() if path.is_absolute() else path.as_posix()
    name = re.sub(r"[^A-Za-z0-9]", "_", name).lower()
    return "page_" + name + ("_" + re.sub(r"[^A-Za-z0-9]", "_", anchor) if anchor else "")


REPOSITORY = sys.argv[2].rstrip("/") if len(sys.argv) > 2 else ""


def is_public(path):
    inside = path.relative_to(ROOT).parts
    return "detail" not in inside and not path.name.endswith("-inl.hpp") and inside[:2] != ("docs", "site")


def main():
    out = pathlib.Path(sys.argv[1])
    files = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    for folder, ending in (("docs", "*.md"), ("examples", "*.md"), ("include", "*.hpp")):
        files += sorted((ROOT / folder).rglob(ending))
    for file in filter(is_public, files):
        text = file.read_text(encoding="utf-8")
        to = out / file.relative_to(ROOT)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(page(file, text) if file.suffix == ".md" else header(text, file.stem.replace("_", "")), encoding="utf-8")


if __name__ == "__main__":
    main()
