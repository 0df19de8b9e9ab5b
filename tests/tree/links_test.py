# SPDX-License-Identifier: Apache-2.0
"""Every relative link and every anchor of the documents leads somewhere."""

import pathlib
import re

import pytest
from project import ROOT, files

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ELSEWHERE = ("http://", "https://", "mailto:")


def prose(text):
    """The document without its code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """The anchors that GitHub gives a document's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(
        r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE),
        re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
            for heading in headings}


def broken_links(document):
    text = document.read_text()
    for link in LINK.findall(prose(text)):
        if link.startswith(ELSEWHERE):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists():
            yield f"{document}: {link}: no such file"
        elif anchor and anchor not in anchors(target.read_text()):
            yield f"{document}: {link}: no such heading"


@pytest.mark.parametrize("name", files(".md"), ids=str)
def test_links_resolve(name):
    assert not list(broken_links(ROOT / name))


def test_the_rule_sees_a_broken_link(tmp_path):
    document = pathlib.Path(tmp_path, "a.md")
    document.write_text(
        "# One `two`: three\n[a](#one-two-three) [b](a.md) [c](gone.md)\n"
        "[d](#gone) [e](https://example.org/x)\n```\n[f](code.md)\n```\n")
    assert [text.split(": ")[1] for text in broken_links(document)] == [
        "gone.md", "#gone"]
