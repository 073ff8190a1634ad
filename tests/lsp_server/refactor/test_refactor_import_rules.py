"""Bulk edits from an example that changed nothing but imports."""

# ruff: noqa: E501  a file a line

import re

import pytest
from support.refactor_case import doubts, edit_of, reasons, repeated, rules_of, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.alike import alike
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example, NoRule
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.places.doubts import SURE


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "wanted"),
    [
        (
            "python",
            "from .state import _now\n",
            "from .state import _current\n",
            "from app.state import _now, other\n\nclock._now(other)\nf(_now, _now=1)\n",
            "from app.state import _current, other\n\nclock._now(other)\nf(_current, _now=1)\n",
        ),
        (
            "typescript",
            "import { wait } from 'clock';\n",
            "import { pause } from 'clock';\n",
            "import { a, wait } from 'clock';\n\nwait(a.wait);\n",
            "import { a, pause } from 'clock';\n\npause(a.wait);\n",
        ),
        (
            "rust",
            "use clock::SlowTimer;\n",
            "use clock::Timer;\n",
            "use clock::SlowTimer;\n\nfn f() -> Box<SlowTimer> { Box::new(SlowTimer::new()) }\n",
            "use clock::Timer;\n\nfn f() -> Box<Timer> { Box::new(Timer::new()) }\n",
        ),
        (
            "java",
            "import org.clock.SlowRunner;\n",
            "import org.clock.Runner;\n",
            "import org.clock.SlowRunner;\n\n@With(SlowRunner.class)\nclass A {}\n",
            "import org.clock.Runner;\n\n@With(Runner.class)\nclass A {}\n",
        ),
    ],
)
def test_a_renamed_import_is_renamed_with_its_uses(
    language: str, before: str, after: str, text: str, wanted: str
) -> None:
    edit = sure_edit(language, text, (before, after))
    assert edit.applied(text) == wanted


def test_the_uses_in_the_file_of_the_example_are_renamed_too() -> None:
    before, after = "from m import old\n\nf(old)\n", "from m import new\n\nf(old)\n"
    assert repeated("python", before, after, after) == "from m import new\n\nf(new)\n"


@pytest.mark.parametrize(
    ("language", "before", "path", "text"),
    [
        ("python", "from .clock import old\n", "app/clock.py", "old = 1\n\n\ndef f(a):\n    return a.old + old\n"),
        ("python", "from app.clock import old\n", "src/app/clock/__init__.py", "def old():\n    old()\n"),
        (
            "typescript",
            "import { old } from '../app/clock';\n",
            "app/clock.ts",
            "export function old() { return a.old(old); }\n",
        ),
        ("javascript", "import { old } from './clock.js';\n", "app/clock.js", "export class old {}\nnew old();\n"),
    ],
)
def test_a_renamed_import_renames_what_it_imports(language: str, before: str, path: str, text: str) -> None:
    known = language_for(language, "")
    rules = learn([Example(before, before.replace("old", "late"), f"app/use.{language}")], known)
    edits = [rewrite(rules, one, text, known, beside=SURE) for one in (path, path.replace("clock", "watch"))]
    assert edits[0].applied(text) == re.sub(r"(?<!\.)\bold\b", "late", text)
    assert edits[1].applied(text) == text
    taken = text + "f(late)\n"
    edit = rewrite(rules, path, taken, known, beside=SURE)
    assert edit.applied(taken) == taken
    assert {*doubts(edit)} == {"`late` is something else there"}


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("from n import old\n\nf(old)\n", []),
        ("def old():\n    pass\n\n\nf(old)\n", ["another module may have it"] * 2),
        ("from m import old\n\nnew = 1\nf(old, new)\n", ["`new` is something else there"] * 2),
    ],
)
def test_what_is_called_alike_and_is_another_thing_stays(text: str, reasons: list[str]) -> None:
    edit = sure_edit("python", text, ("from m import old\n", "from m import new\n"))
    assert edit.applied(text) == text
    assert doubts(edit) == reasons


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "import numpy as OLD\n\n\ndef f(x):\n    return OLD.sum(x)\n\n\ndef g(np):\n    return np.np\n", "num"),
        ("typescript", "import OLD from 'b';\n\nexport const x = OLD.np(y.np);\nfunction f(np: number) { return np; }\n", "bee"),
        ("typescript", "import * as OLD from 'b';\n\nexport const x: OLD.T = { OLDKEY };\n", "bee"),
        ("go", 'package p\n\nimport OLD "b"\n\nfunc f() { OLD.G() }\n\nfunc g(np int) int { return np }\n', "bee"),
    ],
)  # fmt: skip
def test_an_import_that_is_called_otherwise_takes_its_uses_along(language: str, before: str, after: str) -> None:
    named = before.replace("OLDKEY", "np")
    old, begun = named.replace("OLD", "np"), named.replace("OLD", after, 1).replace("OLD", "np")
    done = before.replace("OLDKEY", f"np: {after}").replace("OLD", after)
    assert sure_edit(language, begun, (old, begun)).applied(begun) == done


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "wanted"),
    [
        (
            "java",
            "import old.store.Key;\n",
            "import fresh.store.Key;\n",
            "import old.store.Table;\nimport old.stores.Row;\nimport old.store.deep.Cell;\n",
            "import fresh.store.Table;\nimport old.stores.Row;\nimport old.store.deep.Cell;\n",
        ),
        (
            "rust",
            "use store::{Key, Table};\n",
            "use crate::store::{Key, Table};\n",
            "use store::{Row};\nuse other::{Key};\n",
            "use crate::store::{Row};\nuse other::{Key};\n",
        ),
        (
            "python",
            "from old.store import Key, Table\n",
            "from fresh.store import Key, Table\n",
            "from old.store import Row\nfrom old.store import (\n    Key,\n)\nfrom old.other import Key\n",
            "from fresh.store import Row\nfrom fresh.store import (\n    Key,\n)\nfrom old.other import Key\n",
        ),
        (
            "go",
            'package a\n\nimport "a/b"\n',
            'package a\n\nimport "c/b"\n',
            'package a\n\nimport (\n\t"a/b"\n\t"d"\n)\n',
            'package a\n\nimport (\n\t"c/b"\n\t"d"\n)\n',
        ),
        (
            "typescript",
            "import Clock from 'clock';\n",
            "import Clock = require('clock');\n",
            "import Watch from 'clock';\n",
            "import Watch = require('clock');\n",
        ),
        (
            "php",
            "<?php\nuse A\\Key;\n",
            "<?php\nuse A\\B\\Key;\n",
            "<?php\nuse A\\Key;\nuse A\\Row;\n",
            "<?php\nuse A\\B\\Key;\nuse A\\Row;\n",
        ),
        (
            "cpp",
            '#include "key.h"\n',
            '#include "store/key.h"\n',
            '#include "key.h"\n#include "row.h"\n',
            '#include "store/key.h"\n#include "row.h"\n',
        ),
    ],
)
def test_a_module_that_moved_is_imported_from_its_new_place(
    language: str, before: str, after: str, text: str, wanted: str
) -> None:
    assert sure_edit(language, text, (before, after)).applied(text) == wanted


def test_another_form_of_import_is_sure_for_the_same_module_alone() -> None:
    example = ("import Clock from 'clock';\n", "import * as Clock from 'clock';\n")
    text = "import Map from 'map';\n"
    edit = edit_of("typescript", [example], text)
    assert edit.applied(text) == text
    assert reasons(edit) == ["wide: only `import from` is as in the example"]


def test_other_imports_of_what_went_are_counted() -> None:
    language = language_for("java", "")
    rules = learn([Example("import old.store.Key;\n", "import fresh.store.Key;\n")], language)
    (line,) = alike([rules], [("A.java", "import old.rules.Row;\nimport older.store.Key;\n")], 60)
    assert line == "1 more place has `old` in other code than the example: give one of them as an example too"


def test_two_modules_make_the_form_sure() -> None:
    examples = [
        ("import Clock from 'clock';\n", "import * as Clock from 'clock';\n"),
        ("import Map from 'map';\n", "import * as Map from 'map';\n"),
    ]
    text = "import Set from 'set';\n"
    assert sure_edit("typescript", text, *examples).applied(text) == "import * as Set from 'set';\n"


def test_a_relative_import_is_doubtful_in_another_file() -> None:
    text = "from app.store import Key\n"
    edit = sure_edit("python", text, ("from app.store import Row\n", "from .store import Row\n"))
    assert edit.applied(text) == text
    assert doubts(edit) == ["a relative import means another module in another folder"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("from app.store import Row", "from .store import Row"), ("from .store import Row", "from app.store import Row")],
)
def test_all_modules_of_the_own_package_are_imported_as_the_example_is(old: str, new: str) -> None:
    language = language_for("python", "")
    rules = learn([Example(f"{old}\n", f"{new}\n", "src/app/views.py")], language)
    before = old.replace("store", "state") + "\nfrom other.state import Key\nfrom app.state.deep import Key\n"
    beside, below = (rewrite(rules, path, before, language, beside=SURE) for path in ("app/forms.py", "src/app/b/c.py"))
    assert beside.applied(before) == before.replace(old.replace("store", "state"), new.replace("store", "state"))
    assert below.applied(before) == before
    assert doubts(below) == ["a relative import means another module in another folder"]


def test_require_becomes_an_import_of_any_package() -> None:
    example = ("import A = require('a');\n", "import * as A from 'a';\n")
    text = "import B = require('b');\nimport C = require('./c');\n"
    edit = sure_edit("typescript", text, example)
    assert edit.applied(text) == "import * as B from 'b';\nimport C = require('./c');\n"
    assert doubts(edit) == ["a module of these files may export other things than a package"]


@pytest.mark.parametrize("source", ["fs", "node:fs", "paint"])
def test_a_package_says_how_it_is_imported_alone(source: str) -> None:
    example = (f"import * as Paint from '{source}';\n", f"import Paint from '{source}';\n")
    assert sure_edit("typescript", "import * as B from 'b';\n", example).edits == ()


def test_an_import_that_went_goes_where_nothing_uses_it() -> None:
    example = ("import os\nfrom tests import Case\n", "import os\n")
    unused, used = "import os\nfrom tests import Case\n", "from tests import Case\n\n\nclass A(Case):\n    pass\n"
    assert repeated("python", *example, unused) == "import os\n"
    edit = edit_of("python", [example], used)
    assert edit.applied(used) == used
    assert reasons(edit) == ["`Case` is used here"]


def test_an_import_of_everything_stays() -> None:
    text = "from tests import *\n\nf(A)\n"
    edit = edit_of("python", [("from tests import *\n", "")], text)
    assert edit.applied(text) == text
    assert reasons(edit) == ["it may bring names that are used here"]


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "import a.b\n\na.b.f()\n", "import a.c\n\na.b.f()\n"),
        ("go", 'package p\n\nimport "a/b"\n', 'package p\n\nimport "a/c"\n'),
        ("python", "from a import b\n", "from a import b, c\n"),
        ("python", "from a import b\n", "from c import d\n"),
        ("python", "import a\n", "import b\nimport c\n"),
    ],
)
def test_a_change_of_imports_that_asks_for_other_edits_is_no_rule(language: str, before: str, after: str) -> None:
    with pytest.raises(NoRule, match="only imports changed"):
        rules_of(language, (before, after))


@pytest.mark.parametrize(
    ("language", "before", "after"),
    [
        ("python", "from m import old\n\nold.f(1)\nold.f(2)\ng(old)\n", "from m import new\n\nnew.f(1)\nold.f(2)\ng(old)\n"),
        ("typescript", "import { old } from 'm';\n\nold.f(1);\ng(old);\n", "import { new_one } from 'm';\n\nnew_one.f(1);\ng(old);\n"),
        ("rust", "use m::Old;\n\nfn f() { g(Old::new(1)); h(Old::other()) }\n", "use m::New;\n\nfn f() { g(New::new(1)); h(Old::other()) }\n"),
    ],
)  # fmt: skip
def test_a_use_that_the_user_renamed_with_its_import_leaves_the_rename_one(
    language: str, before: str, after: str
) -> None:
    new = "new_one" if "new_one" in after else "New" if "New" in after else "new"
    edit = sure_edit(language, after, (before, after))
    assert edit.applied(after) == re.sub(r"\b[oO]ld\b", new, before)
    assert rules_of(language, (before, after)) == [f"{'Old' if new == 'New' else 'old'} → {new}"]


SEVERAL = {
    "python": ("from lib import {}\n\nb(c)\n", "from lib import (\n    a,\n    b,\n)\n\nb()\n", "    a,\n"),
    "javascript": ("import {{ {} }} from 'lib';\n\nb(c);\n", "import { b, a } from 'lib';\n\nb();\n", ", a"),
    "typescript": ("import {{ {} }} from 'lib';\n\nb(c);\n", "import { a, b } from 'lib';\n\nlet x: b;\n", "a, "),
}


@pytest.mark.parametrize("language", SEVERAL)
def test_a_name_that_went_from_an_import_goes_where_nothing_uses_it(language: str) -> None:
    form, text, gone = SEVERAL[language]
    example = form.format("a, b, c"), form.format("b, c")
    assert rules_of(language, example) == ["import of a → nothing"]
    assert sure_edit(language, text, example).applied(text) == text.replace(gone, "", 1)
    used = f"{text}a()\n"
    assert sure_edit(language, used, example).applied(used) == used
    other = text.replace("lib", "other")
    assert sure_edit(language, other, example).applied(other) == other


def test_the_last_name_of_an_import_takes_it_along() -> None:
    form, *_ = SEVERAL["typescript"]
    edit = sure_edit("typescript", "import { a } from 'lib';\nb();\n", (form.format("a, b, c"), form.format("b, c")))
    assert edit.applied("import { a } from 'lib';\nb();\n") == "b();\n"


def test_a_package_of_python_may_hand_a_name_on_that_it_does_not_use() -> None:
    form, text, _ = SEVERAL["python"]
    edit = sure_edit("python", text, (form.format("a, b, c"), form.format("b, c")), paths=("p/a.py", "p/__init__.py"))
    assert edit.applied(text) == text
    assert doubts(edit) == ["others may import it from here"]
