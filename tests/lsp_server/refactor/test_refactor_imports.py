"""Imports go along with an edit, as the example changed them, and only where they are needed."""

import pytest
from support.refactor_case import reasons, repeated, sure_edit

from lsp_server.refactor.learn.example import NoRule

PYTHON = ("import os\nx = os.getcwd()\n", "from pathlib import Path\nx = Path.cwd()\n")
GO = (
    'package a\n\nimport "io/ioutil"\n\nfunc f() { ioutil.ReadAll(r) }\n',
    'package a\n\nimport "io"\n\nfunc f() { io.ReadAll(r) }\n',
)
SCRIPT = ("import _ from 'lodash';\nx = _.map(a, b);\n", "x = a.map(b);\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os\n\nos.getcwd()\n", "from pathlib import Path\n\nPath.cwd()\n"),
        ("import os\n\nprint(os.getcwdb())\n", "import os\n\nprint(os.getcwdb())\n"),
        (
            "import os\nimport re\n\nprint(os.getcwd(), os.sep)\n",
            "import os\nimport re\nfrom pathlib import Path\n\nprint(Path.cwd(), os.sep)\n",
        ),
        (
            "import os\nfrom pathlib import PurePath\n\nprint(os.getcwd(), os.sep)\n",
            "import os\nfrom pathlib import Path, PurePath\n\nprint(Path.cwd(), os.sep)\n",
        ),
        ("import os, re\n\nprint(os.getcwd(), re)\n", "import re\nfrom pathlib import Path\n\nprint(Path.cwd(), re)\n"),
        (
            "import os\nfrom pathlib import Path\n\nprint(os.getcwd())\n",
            "from pathlib import Path\n\nprint(Path.cwd())\n",
        ),
    ],
)
def test_python(text: str, expected: str) -> None:
    assert repeated("python", *PYTHON, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'package b\n\nimport (\n\t"fmt"\n\t"io/ioutil"\n)\n\nfunc g() { fmt.Println(ioutil.ReadAll(x)) }\n',
            'package b\n\nimport (\n\t"fmt"\n\t"io"\n)\n\nfunc g() { fmt.Println(io.ReadAll(x)) }\n',
        ),
        (
            'package b\n\nimport "io/ioutil"\n\nfunc g() { ioutil.ReadAll(ioutil.Discard) }\n',
            'package b\n\nimport (\n\t"io"\n\t"io/ioutil"\n)\n\nfunc g() { io.ReadAll(ioutil.Discard) }\n',
        ),
    ],
)
def test_go(text: str, expected: str) -> None:
    assert repeated("go", *GO, text) == expected


def test_typescript() -> None:
    text = "import _ from 'lodash';\nimport { b } from './b';\n\nexport const c = _.map(b, _.map(d, e));\n"
    assert repeated("typescript", *SCRIPT, text) == "import { b } from './b';\n\nexport const c = b.map(d.map(e));\n"


def test_a_name_is_added_beside_a_default_import() -> None:
    example = (
        "import React from 'react';\nx = React.useState(1);\n",
        "import React, { useState } from 'react';\nx = useState(1);\n",
    )
    text = "import React from 'react';\n\nconst y = React.useState(2) || React;\n"
    assert repeated("typescript", *example, text) == (
        "import React, { useState } from 'react';\n\nconst y = useState(2) || React;\n"
    )


def test_imports_stay_where_no_place_is_edited() -> None:
    text = "import os\n\nprint('none')\n"
    assert repeated("python", *PYTHON, text) == text


@pytest.mark.parametrize("rest", ["", "  ", "  # noqa", " # noqa  "])
def test_a_new_import_comes_after_the_whole_line_before_it(rest: str) -> None:
    before, after = "import app\n\nf(a)\n", "import app\nfrom app.b import g\n\ng(a)\n"
    text = f"import app{rest}\n\nf(b)\n"
    assert repeated("python", before, after, text) == f"import app{rest}\nfrom app.b import g\n\ng(b)\n"


def test_an_example_of_imports_alone_is_not_called_equal() -> None:
    with pytest.raises(NoRule, match="only imports changed"):
        repeated("python", "import a\nf()\n", "import b\nf()\n", "")


PACKAGES = {
    "java": ("package a.b;\n\n", "import {};\n\n", "class A {{ void f() {{ {}.load(x); }} }}\n"),
    "php": ("<?php\nnamespace a\\b;\n\n", "use {};\n\n", "class A {{ function f() {{ {}::load($x); }} }}\n"),
    "kotlin": ("package a.b\n\n", "import {}\n\n", "fun f() {{ {}.load(x) }}\n"),
    "scala": ("package a.b\n\n", "import {}\n\n", "class A {{ def f() = {}.load(x) }}\n"),
}


@pytest.mark.parametrize("language", PACKAGES)
def test_another_package_imports_what_the_example_has_in_its_own(language: str) -> None:
    head, used, code = PACKAGES[language]
    example = head + code.format("Store"), head + code.format("Shelf")
    dot = "\\" if language == "php" else "."
    imported = [used.format(dot.join(one)) for one in (("a", "b", "Store"), ("z", "Store"), ("z", "Shelf"))]
    heads = [head.replace("b", "c", 1) + more for more in (imported[0], imported[1], imported[2] + imported[0])]
    texts = [each + code.format("Store") for each in heads]
    edited = [repeated(language, *example, text) for text in texts]
    assert edited == [texts[0].replace("Store", "Shelf"), *texts[1:]]
    assert repeated(language, *example, example[0]) == example[1]


def test_a_class_of_another_namespace_is_another_one_in_php() -> None:
    head, _, code = PACKAGES["php"]
    text = head.replace("b", "c", 1) + code.format("Store")
    assert repeated("php", head + code.format("Store"), head + code.format("Shelf"), text) == text


@pytest.mark.parametrize(
    ("language", "head", "call", "new", "other"),
    [
        ("python", "from lib import twice", "run(a)", "run(twice(a))", "from lib import twice"),
        ("typescript", "import { twice } from 'lib';", "run(a);", "run(twice(a));", "import { twice } from 'lib';"),
        ("go", 'package p\n\nimport "lib"\n', "var b = run(a)", "var b = lib.Go(a)", 'import "lib"'),
        ("java", "import lib.Lib;", "class A { B b = run(a); }", "class A { B b = Lib.run(a); }", "import lib.Lib;"),
    ],
)
def test_an_import_that_the_example_had_before_follows(
    language: str, head: str, call: str, new: str, other: str
) -> None:
    text = "package p\n\n" * (language == "go") + f"{call}\n"
    done = sure_edit(language, text, (f"{head}\n{call}\n", f"{head}\n{new}\n"), paths=("p/a", "p/b")).applied(text)
    assert new in done
    assert other in done


@pytest.mark.parametrize(
    ("language", "head", "paths", "other"),
    [
        ("python", "from .m import twice", ("p/q/a.py", "p/b.py"), "from .q.m import twice"),
        ("python", "from .m import twice", ("p/a.py", "p/q/b.py"), "from ..m import twice"),
        ("python", "from .m import twice", ("src/p/a.py", "tests/b.py"), "from p.m import twice"),
        ("typescript", "import { twice } from './m';", ("p/a.ts", "p/q/b.ts"), "import { twice } from '../m';"),
        ("javascript", "import { twice } from '../m';", ("p/q/a.js", "p/b.js"), "import { twice } from './m';"),
    ],
)
@pytest.mark.parametrize("is_there_before", [True, False])
def test_a_relative_import_names_its_module_from_the_other_file(
    language: str, head: str, paths: tuple[str, str], other: str, is_there_before: bool
) -> None:
    before = f"{head}\n" * is_there_before + "run(a)\n"
    edit = sure_edit(language, "run(b)\n", (before, f"{head}\nrun(twice(a))\n"), paths=paths)
    assert edit.applied("run(b)\n").replace('"', "'").split("\n")[0] == other


def test_a_parameter_with_the_name_of_an_import_that_the_edit_uses_hides_it() -> None:
    example = ("from lib import twice\nx = run(a)\n", "from lib import twice\nx = run(twice(a))\n")
    edit = sure_edit("python", "def f(twice):\n    run(b)\n", example)
    assert not edit.edits
    assert reasons(edit) == ["`twice`, which the edit uses, is something else here"]


def test_a_script_that_requires_its_modules_gets_no_import() -> None:
    head, text = "import { twice } from 'lib';\n", "const lib = require('lib');\nrun(lib);\n"
    edit = sure_edit("javascript", text, (f"{head}run(a);\n", f"{head}run(twice(a));\n"), paths=("a.mjs", "b.js"))
    assert not edit.edits
    assert reasons(edit) == ["`twice`, which the edit uses, is not known here"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use a::{c, old};\nfn g() { old(2); c(); }\n", "use a::{c, new};\nfn g() { new(2); c(); }\n"),
        ("use a::{\n    old,\n    c,\n};\nfn g() { old(2); c(); }\n",
         "use a::{\n    new,\n    c,\n};\nfn g() { new(2); c(); }\n"),
        ("use {a::{self, old}, c};\nfn g() { old(2); c(a::d); }\n",
         "use {a::{self, new}, c};\nfn g() { new(2); c(a::d); }\n"),
        ("use a::old;\nfn g() { old(2); }\n", "use a::new;\nfn g() { new(2); }\n"),
        ("use b::{c, old};\nfn g() { old(2); c(); }\n", "use b::{c, old};\nfn g() { old(2); c(); }\n"),
    ],
)  # fmt: skip
def test_a_name_of_a_group_of_rust_is_that_of_a_use_of_its_own(text: str, expected: str) -> None:
    for group in ("use a::{old, d};\n", "use a::{d, old};\n", "use a::old;\nuse a::d;\n"):
        example = f"{group}fn f() {{ old(1); d(); }}\n"
        edit = sure_edit("rust", text, (example, example.replace("old", "new")), paths=("src/x.rs", "src/y.rs"))
        assert edit.applied(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use A\\{C, Old};\nf(new Old(2), new C);\n", "use A\\{C, Fresh};\nf(new Fresh(2), new C);\n"),
        ("use A\\C, A\\Old;\nf(new Old(2), new C);\n", "use A\\C, A\\Fresh;\nf(new Fresh(2), new C);\n"),
        ("use A\\Old;\nf(new Old(2));\n", "use A\\Fresh;\nf(new Fresh(2));\n"),
        ("use B\\{C, Old};\nf(new Old(2), new C);\n", "use B\\{C, Old};\nf(new Old(2), new C);\n"),
    ],
)
def test_a_name_of_a_group_of_php_is_that_of_a_use_of_its_own(text: str, expected: str) -> None:
    for group in ("use A\\{Old, D};\n", "use A\\{D, Old};\n", "use A\\Old;\nuse A\\D;\n"):
        example = f"<?php\n{group}g(new Old(1), new D);\n"
        edit = sure_edit("php", f"<?php\n{text}", (example, example.replace("Old", "Fresh")), paths=("a", "b"))
        assert edit.applied(f"<?php\n{text}") == f"<?php\n{expected}"


def test_what_goes_from_a_group_of_rust_leaves_the_others() -> None:
    example = "use a::{b, c::{d, e}};\nfn f() { d(1); e(b); }\n", "use a::{b, c::e};\nfn f() { g(1); e(b); }\n"
    text = "use a::{c::{d, h}, b};\nfn k() { d(2); h(b); }\n"
    edited = sure_edit("rust", text, example, paths=("a", "b")).applied(text)
    assert edited == "use a::{c::{h}, b};\nfn k() { g(2); h(b); }\n"


@pytest.mark.parametrize(
    ("language", "before", "after", "text", "expected"),
    [
        ("python", "from a import old\nfrom a import d\nold(1)\nd()\n",
         "from a import d\nfrom q import new\nnew(1)\nd()\n",
         "from a import old\nold(2)\n", "from q import new\nnew(2)\n"),
        ("java", "import a.Old;\nimport d.D;\nclass R { Old y; D d; }\n",
         "import d.D;\nimport q.New;\nclass R { New y; D d; }\n",
         "import a.Old;\nclass Q { Old x; }\n", "import q.New;\nclass Q { New x; }\n"),
        ("rust", "use a::{old, d};\nfn f() { old(1); d(); }\n", "use a::{d};\nuse q::new;\nfn f() { new(1); d(); }\n",
         "use a::old;\nfn g() { old(2); }\n", "use q::new;\nfn g() { new(2); }\n"),
    ],
)  # fmt: skip
def test_an_import_takes_the_line_of_the_only_one_that_goes(
    language: str, before: str, after: str, text: str, expected: str
) -> None:
    assert sure_edit(language, text, (before, after), paths=("a", "b")).applied(text) == expected
