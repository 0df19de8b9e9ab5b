# SPDX-License-Identifier: Apache-2.0
"""Rules that every file of the project keeps: licence line, size, no junk."""

import ast
import re

import pytest
from project import CXX, ROOT, files

MOST_LINES = 400
MOST_FUNCTION_LINES = 60
# Longer than MOST_LINES, with the reason.
LONG_FILES = {
    "include/axon/axon.h": "the whole C API and its documentation",
}
SCRIPTS = (".py", ".cmake", ".in", ".yml", ".toml", ".ini", ".sh")
SPDX = re.compile(r"^(//|#|/\*) SPDX-License-Identifier: Apache-2\.0( \*/)?$")


def needs_licence(path, text):
    return (path.suffix in CXX + SCRIPTS or path.name in (
        "CMakeLists.txt", "requirements.txt") or text.startswith("#!"))


def has_licence(text):
    lines = text.split("\n", 2)
    return bool(SPDX.match(lines[1] if text.startswith("#!") else lines[0]))


def is_text(path):
    return b"\0" not in (ROOT / path).read_bytes()[:4096]


def texts():
    for path in files():
        if is_text(path):
            yield path, (ROOT / path).read_text()


def strip_cxx(text):
    """C++ with the contents of comments, strings and macros blanked out."""
    blank = lambda match: "\n" * match.group().count("\n") + " "
    text = re.sub(r'R"(\w*)\(.*?\)\1"', blank, text, flags=re.DOTALL)
    text = re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
        blank, text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text,
                  flags=re.MULTILINE)


def cxx_functions(text):
    """(first line, lines) of each function, by counting braces."""
    text = strip_cxx(text)
    scope = re.compile(
        r'^\s*(template\s*<.*>\s*)?(inline\s+)?(namespace|class|struct|union|'
        r'enum|extern)\b[^()]*(\(\w+\)[^()]*)?$', re.DOTALL)
    open_scopes, depth, start, head, line = 0, 0, 0, "", 1
    for letter in text:
        if letter == "\n":
            line += 1
        if letter == "{":
            if depth == 0 and scope.match(head):
                open_scopes += 1
            else:
                if depth == 0:
                    start = line - head.strip().count("\n")
                depth += 1
            head = ""
        elif letter == "}":
            if depth == 0:
                open_scopes -= 1
            else:
                depth -= 1
                if depth == 0:
                    yield start, line - start + 1
            head = ""
        elif letter == ";":
            head = ""
        else:
            head = re.sub(r"^\s*(public|private|protected)\s*:$", "",
                          head + letter)
    assert depth == 0 and open_scopes == 0, "braces do not balance"


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def test_every_file_names_its_licence_first():
    assert not [str(path) for path, text in texts()
                if needs_licence(path, text) and not has_licence(text)]


def test_no_file_is_too_long():
    assert not [f"{path}: {text.count(chr(10))} lines" for path, text in texts()
                if needs_licence(path, text)
                and text.count("\n") > MOST_LINES
                and path.as_posix() not in LONG_FILES]


def test_no_function_is_too_long():
    wrong = []
    for path, text in texts():
        functions = (cxx_functions if path.suffix in CXX else
                     python_functions if path.suffix == ".py" else None)
        for start, lines in functions(text) if functions else ():
            if lines > MOST_FUNCTION_LINES:
                wrong.append(f"{path}:{start}: {lines} lines")
    assert not wrong


def test_no_trailing_junk():
    wrong = []
    for path, text in texts():
        if re.search(r"[ \t]+$", text, re.MULTILINE):
            wrong.append(f"{path}: spaces at the end of a line")
        if "\r" in text or ("\t" in text and path.suffix in CXX):
            wrong.append(f"{path}: tabs or carriage returns")
        if text and not text.endswith("\n") or text.endswith("\n\n"):
            wrong.append(f"{path}: does not end with one newline")
    assert not wrong


def test_no_conflict_marker_or_forgotten_note():
    marker = re.compile(r"^(<{7}|>{7}) |\bFIX" r"ME\b|\bX" r"XX\b", re.MULTILINE)
    assert not [str(path) for path, text in texts() if marker.search(text)]


def test_exceptions_are_still_needed():
    for name in LONG_FILES:
        assert (ROOT / name).read_text().count("\n") > MOST_LINES, name


@pytest.mark.parametrize("text, lengths", [
    ("int f() { return 1; }\n", [1]),
    ("namespace a {\nint f(int x)\n    const {\n  if (x) {\n  }\n}\n}\n", [5]),
    ("class A : B {\n public:\n  A() : x_(1) {\n  }\n  int x_;\n};\n", [2]),
    ('extern "C" {\nvoid f(void) {\n  g("}");\n  // }\n}\n}\n', [4]),
    ("#define X(a) \\\n  { a\nstruct alignas(64) S { int a; };\n", []),
    ("template <typename T>\nT f() {\n  auto g = [] {\n  };\n}\n", [5]),
    ("enum class E : int {\n kA,\n kB,\n};\n", []),
    ("constexpr char kC = '{';\nint f() {\n}\n", [2]),
    ("constexpr int k = 1'000'000;\nint f() {\n  int x = 1'000;\n}\n", [3]),
])
def test_the_brace_counter_finds_functions(text, lengths):
    found = [lines for _, lines in cxx_functions(text)]
    assert found == lengths


def test_the_licence_rule_sees_a_missing_line():
    assert has_licence("// SPDX-License-Identifier: Apache-2.0\n")
    assert has_licence("#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n")
    assert not has_licence("#!/bin/bash\n")
    assert not has_licence("// SPDX-License-Identifier: MIT\n")
    assert not has_licence("\n// SPDX-License-Identifier: Apache-2.0\n")
