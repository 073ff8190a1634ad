"""A function, method or type of the same name that is another one: its uses are doubtful."""

import pytest
from support.refactor_case import doubts

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.file_edit import FileEdit
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.places.doubts import SURE

DEFINED = {
    "python": ("def load(a): ...\nload(1)\n", "def load(b): ...\nload(2)\n"),
    "javascript": ("function load(a) {}\nload(1);\n", "const load = (b) => {};\nload(2);\n"),
    "typescript": ("class load {}\nload(1);\n", "class load {}\nload(2);\n"),
    "php": ("<?php\nfunction load($a) {}\nload(1);\n", "<?php\nfunction load($b) {}\nload(2);\n"),
    "rust": ("fn load() {}\nfn f() { load(1); }\n", "fn load() {}\nfn g() { load(2); }\n"),
    "go": (
        "package p\n\nfunc load() {}\nfunc f() { load(1) }\n",
        "package p\n\nfunc load() {}\nfunc g() { load(2) }\n",
    ),
}
METHODS = {
    "python": "class {}:\n    def load(self): ...\n    def b(self): self.load(1)\n",
    "javascript": "class {} {{ load() {{}} b() {{ this.load(1); }} }}\n",
    "java": "class {} {{ void load() {{}} void b() {{ load(1); }} }}\n",
    "csharp": "class {} {{ void load() {{}} void b() {{ this.load(1); }} }}\n",
    "php": "<?php\nclass {} {{ function load() {{}} function b() {{ $this->load(1); }} }}\n",
}


def repeated_in(path: str, language_id: str, before: str, after: str, text: str) -> FileEdit:
    """Return the sure edit of the text of a file, by the example of the file `src/a`."""
    language = language_for(language_id, "")
    return rewrite(learn([Example(before, after, "src/a")], language), path, text, language, beside=SURE)


@pytest.mark.parametrize("language", DEFINED)
def test_a_function_that_each_of_two_files_defines_is_another_one(language: str) -> None:
    before, text = DEFINED[language]
    after = before.replace("load(1)", "load(1, 0)")
    edit = repeated_in("src/b", language, before, after, text)
    assert edit.applied(text) == text
    assert doubts(edit) == ["this file defines `load` too, as that of the example does"]


def test_a_function_that_the_example_s_file_defines_is_the_same_one_there_and_where_it_is_imported() -> None:
    before = "def load(a): ...\nload(1)\nload(2)\n"
    after, text = before.replace("load(1)", "load(1, 0)"), "from src.a import load\nload(3)\n"
    assert repeated_in("src/a", "python", before, after, after).applied(after) == after.replace("(2)", "(2, 0)")
    assert repeated_in("src/b", "python", before, after, text).applied(text) == text.replace("(3)", "(3, 0)")


@pytest.mark.parametrize(
    ("language", "before", "text"),
    [
        ("python", "def load(a): ...\nload(1)\n", "from {} import load\nload(2)\n"),
        ("javascript", "function load(a) {{}}\nload(1);\n", "import {{ load }} from '../{}.js';\nload(2);\n"),
        ("typescript", "const load = (a) => {{}};\nload(1);\n", "import load from '../{}';\nload(2);\n"),
    ],
)
def test_a_function_that_is_imported_from_another_module_is_another_one(language: str, before: str, text: str) -> None:
    before = before.format()
    after = before.replace("load(1)", "load(1, 0)")
    for module, expected in (("a", []), ("b", ["`load` is imported from another module than the example's"])):
        assert doubts(repeated_in("src/c", language, before, after, text.format(module))) == expected


def test_a_variable_that_each_of_two_files_sets_is_the_same_one() -> None:
    text = "log = logger(2)\nlog.warn(b)\n"
    edit = repeated_in("src/b", "python", "log = logger(1)\nlog.warn(a)\n", "log = logger(1)\nlog.warning(a)\n", text)
    assert edit.applied(text) == text.replace("warn", "warning")


@pytest.mark.parametrize("language", METHODS)
def test_a_method_that_each_of_two_classes_has_is_another_one(language: str) -> None:
    before, text = (METHODS[language].format(name) for name in ("A", "B"))
    edit = repeated_in("src/b", language, before, before.replace("load(1)", "load(1, 0)"), text)
    assert edit.applied(text) == text
    assert doubts(edit) == ["`load` is a method of its own class"]
    other = text.replace("load()", "read()").replace("load(self)", "read(self)")
    assert repeated_in("src/b", language, before, before.replace("load(1)", "load(1, 0)"), other).edits


def test_a_name_of_go_is_another_one_in_another_folder() -> None:
    before, text = "package p\n\nfunc f() *Group { return nil }\n", "package q\n\nfunc g() *Group { return nil }\n"
    after = before.replace("*Group", "*q.Group")
    assert doubts(repeated_in("lib/b", "go", before, after, text)) == ["another package has another `Group`"]
    assert repeated_in("src/b", "go", before, after, text).applied(text) == text.replace("*Group", "*q.Group")


@pytest.mark.parametrize(
    "text", ["package q\n\nfunc g() { panic(x.Load(2)) }\n", 'package q\n\nimport . "p"\n\nfunc g() { load(2) }\n']
)
def test_what_go_brings_or_an_import_of_all_names_is_the_same_in_another_folder(text: str) -> None:
    before = "package p\n\nfunc f() { panic(x.Load(1)); load(1) }\n"
    after = before.replace("panic(", "log.Panic(").replace("load(1)", "read(1)")
    assert repeated_in("lib/b", "go", before, after, text).edits


@pytest.mark.parametrize("start", ["", "use crate::errors::Result;\n"])
def test_an_alias_of_result_is_meant_where_a_file_has_one(start: str) -> None:
    before, text = "fn a() -> Result<A, Error> { b() }\n", f"{start}fn c() -> Result<D, Error> {{ e() }}\n"
    edit = repeated_in("src/b", "rust", before, before.replace(", Error", ""), text)
    assert edit.applied(text) == (text.replace(", Error", "") if start else text)
    assert doubts(edit) == ([] if start else ["`Result` is the one of all files here, and another in the example's"])
