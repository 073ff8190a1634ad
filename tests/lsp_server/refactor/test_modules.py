"""Calls in other files: which names there surely mean a function whose signature changed."""

from pathlib import Path

import attrs
import pytest
from support.signature_edits import changed, with_all

from lsp_server.refactor.signatures import calls_left


def followed_elsewhere(root: Path, path: str, text: str, edit: tuple[str, str], other: str, code: str) -> str:
    """Return the code of another file when all its calls have followed an edit of `path`."""
    found, _ = changed(path, text, edit)
    assert found is not None
    located = attrs.evolve(found.changed, what=found.changed.what.located(str(root)))
    return with_all(calls_left(located, (), code, other), code)


_PY, _JS, _GO, _RS = (
    "def f(a):\n    return a\n",
    "export function f(a) {}\n",
    "package m\n\nfunc F(a int) {}\n",
    "pub fn f(a: i32) {}\n",
)
_PY_EDIT, _JS_EDIT, _GO_EDIT, _RS_EDIT = (
    ("(a)", "(a, b)"),
    ("(a)", "(a, b)"),
    ("a int", "a, b int"),
    ("i32", "i32, b: i32"),
)


@pytest.mark.parametrize(
    ("path", "other", "code", "wanted"),
    [
        ("m.py", "x.py", "from m import f\n\nf(1)\n", "f(1, NEW)"),
        ("m.py", "x.py", "from m import f as g\n\ng(1)\n", "g(1, NEW)"),
        ("m.py", "x.py", "import m\n\nm.f(1)\n", "m.f(1, NEW)"),
        ("m.py", "x.py", "import m as n\n\nn.f(1)\n", "n.f(1, NEW)"),
        ("p/m.py", "x.py", "import p.m\n\np.m.f(1)\n", "p.m.f(1, NEW)"),
        ("src/p/m.py", "tests/x.py", "from p.m import f\n\nf(1)\n", "f(1, NEW)"),
        ("p/m.py", "p/x.py", "from .m import f\n\nf(1)\n", "f(1, NEW)"),
        ("p/m.py", "p/x.py", "from . import m\n\nm.f(1)\n", "m.f(1, NEW)"),
        ("p/m.py", "p/q/x.py", "from ..m import f\n\n\ndef g():\n    return f(1)\n", "return f(1, NEW)"),
        ("p/m.py", "x.py", "from p import m\n\nm.f(1)\n", "m.f(1, NEW)"),
        ("p/__init__.py", "x.py", "import p\n\np.f(1)\n", "p.f(1, NEW)"),
    ],
)
def test_python_calls_what_it_imports(tmp_path: Path, path: str, other: str, code: str, wanted: str) -> None:
    assert followed_elsewhere(tmp_path, path, _PY, _PY_EDIT, other, code).endswith(f"{wanted}\n")


@pytest.mark.parametrize(
    ("package", "code", "wanted"),
    [
        ("from .m import f\n", "from p import f\n\nf(1)\n", "f(1, NEW)"),
        ("from p.m import f\n", "import p\n\np.f(1)\n", "p.f(1, NEW)"),
        ("from .m import f as g\n", "from p import g\n\ng(1)\n", "g(1)"),
        ("from .n import f\n", "from p import f\n\nf(1)\n", "f(1)"),
        ("", "from p import f\n\nf(1)\n", "f(1)"),
    ],
)
def test_a_package_of_python_hands_a_function_on(tmp_path: Path, package: str, code: str, wanted: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "__init__.py").write_text(package, encoding="utf-8")
    assert followed_elsewhere(tmp_path, "p/m.py", _PY, _PY_EDIT, "x.py", code).endswith(f"{wanted}\n")


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ("x.py", "f(1)\n"),
        ("x.py", "from m import *\n\nf(1)\n"),
        ("x.py", "from other.m import f\n\nf(1)\n"),
        ("x.py", "from .q.m import f\n\nf(1)\n"),
        ("x.py", "from m import f\n\n\ndef g(f):\n    f(1)\n"),
        ("x.py", "from m import f\n\n\ndef f(a):\n    pass\n\n\nf(1)\n"),
        ("x.py", "import m\n\n\ndef g(m):\n    m.f(1)\n"),
        ("x.py", "from m import f\n\nf(*a)\n"),
        ("x.py", "from m import f\n\nf(1, 2)\n"),
        ("x.py", "from m import f\n\nx.f(1)\n"),
        ("q/x.py", "from .m import f\n\nf(1)\n"),
        ("x.js", 'import { f } from "./m";\n\nf(1);\n'),
    ],
)
def test_what_may_be_another_function_stays(tmp_path: Path, other: str, code: str) -> None:
    assert followed_elsewhere(tmp_path, "m.py", _PY, _PY_EDIT, other, code) == code


@pytest.mark.parametrize(
    ("path", "text", "code", "wanted"),
    [
        ("m.js", _JS, 'import { f } from "./m";\nf(1);', "f(1, NEW);"),
        ("m.js", _JS, 'import { f as g } from "./m.js";\ng(1);', "g(1, NEW);"),
        ("m.js", _JS, 'import * as m from "./m";\nm.f(1);', "m.f(1, NEW);"),
        ("m/index.js", _JS, 'import { f } from "./m";\nf(1);', "f(1, NEW);"),
        ("m.js", "export default function f(a) {}\n", 'import h from "./m";\nh(1);', "h(1, NEW);"),
        ("m.js", "const f = (a) => a;\nexport { f };\n", 'import { f } from "./m";\nf(1);', "f(1, NEW);"),
        ("m.js", "export const f = (a) => a;\n", 'import { f } from "./m";\nf(1);', "f(1, NEW);"),
        ("m.js", "function f(a) {}\nmodule.exports = { f };\n", 'const { f } = require("./m");\nf(1);', "f(1, NEW);"),
        ("m.js", "function f(a) {}\nexports.f = f;\n", 'const m = require("./m");\nm.f(1);', "m.f(1, NEW);"),
        ("m.js", "function f(a) {}\nmodule.exports = f;\n", 'const g = require("./m");\ng(1);', "g(1, NEW);"),
        (
            "m.ts",
            "export class C {\n  constructor(a) {}\n}\n",
            'import { C } from "./m.js";\nnew C(1);',
            "new C(1, NEW);",
        ),
        (
            "m.ts",
            "export class C {\n  run(a) {}\n}\n",
            'import { C } from "./m";\nfunction g(c: C) { c.run(1); }',
            "function g(c: C) { c.run(1, NEW); }",
        ),
    ],
)
def test_a_script_calls_what_it_imports_or_requires(
    tmp_path: Path, path: str, text: str, code: str, wanted: str
) -> None:
    assert followed_elsewhere(tmp_path, path, text, _JS_EDIT, f"x.{path[-2:]}", code).endswith(wanted)


@pytest.mark.parametrize(
    "code",
    [
        'import { f } from "./other";\nf(1);',
        'import { f } from "m";\nf(1);',
        'import f from "./m";\nf(1);',
        'const { g: f } = require("./m");\nf(1);',
        'import { f } from "./m";\nfunction g(f) { f(1); }',
    ],
)
def test_another_export_or_package_is_another_function(tmp_path: Path, code: str) -> None:
    assert followed_elsewhere(tmp_path, "m.js", _JS, _JS_EDIT, "x.js", code) == code


@pytest.mark.parametrize(
    ("path", "other", "code", "wanted"),
    [
        ("m/m.go", "m/x.go", "package m\n\nfunc g() { F(1) }", "func g() { F(1, NEW) }"),
        ("m/m.go", "x.go", 'package x\n\nimport "e.com/p/m"\n\nfunc g() { m.F(1) }', "func g() { m.F(1, NEW) }"),
        ("m/m.go", "x.go", 'package x\n\nimport n "e.com/p/m"\n\nfunc g() { n.F(1) }', "func g() { n.F(1, NEW) }"),
        ("m/m.go", "m/x.go", "package m_test\n\nfunc g() { F(1) }", "func g() { F(1) }"),
        ("m/m.go", "n/x.go", "package m\n\nfunc g() { F(1) }", "func g() { F(1) }"),
        ("m/m.go", "x.go", 'package x\n\nimport "o.com/p/m"\n\nfunc g() { m.F(1) }', "func g() { m.F(1) }"),
        ("m/m.go", "m/x.go", "package m\n\nfunc g(F func(int)) { F(1) }", "func g(F func(int)) { F(1) }"),
    ],
)
def test_go_calls_what_its_package_has_or_imports(
    tmp_path: Path, path: str, other: str, code: str, wanted: str
) -> None:
    (tmp_path / "go.mod").write_text("module e.com/p\n\ngo 1.24\n", encoding="utf-8")
    assert followed_elsewhere(tmp_path, path, _GO, _GO_EDIT, other, code).endswith(wanted)


@pytest.mark.parametrize(
    ("path", "other", "code", "wanted"),
    [
        ("src/m.rs", "src/x.rs", "use crate::m::f;\nfn g() { f(1) }", "fn g() { f(1, NEW) }"),
        ("src/m.rs", "src/x.rs", "use crate::{m::{f as h}};\nfn g() { h(1) }", "fn g() { h(1, NEW) }"),
        ("src/m.rs", "src/x.rs", "use crate::m;\nfn g() { m::f(1) }", "fn g() { m::f(1, NEW) }"),
        ("src/m.rs", "src/x.rs", "fn g() { crate::m::f(1) }", "fn g() { crate::m::f(1, NEW) }"),
        ("src/m.rs", "src/x.rs", "fn g() { super::m::f(1) }", "fn g() { super::m::f(1, NEW) }"),
        ("src/m.rs", "src/lib.rs", "mod m;\nfn g() { m::f(1) }", "fn g() { m::f(1, NEW) }"),
        ("src/m/mod.rs", "tests/x.rs", "use my_crate::m::f;\nfn g() { f(1) }", "fn g() { f(1, NEW) }"),
        ("src/m.rs", "src/x.rs", "fn g() { f(1) }", "fn g() { f(1) }"),
        ("src/m.rs", "src/x.rs", "use crate::n::f;\nfn g() { f(1) }", "fn g() { f(1) }"),
        ("src/m.rs", "src/x.rs", "use other::m::f;\nfn g() { f(1) }", "fn g() { f(1) }"),
        ("src/m.rs", "tests/x.rs", "use crate::m::f;\nfn g() { f(1) }", "fn g() { f(1) }"),
        ("src/m.rs", "src/x.rs", "use crate::m::f;\nfn g(f: fn(i32)) { f(1) }", "fn g(f: fn(i32)) { f(1) }"),
    ],
)
def test_rust_calls_what_a_path_leads_to(tmp_path: Path, path: str, other: str, code: str, wanted: str) -> None:
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "my-crate"\n', encoding="utf-8")
    assert followed_elsewhere(tmp_path, path, _RS, _RS_EDIT, other, code).endswith(wanted)


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("from m import C\n\n\ndef g(c: C, d):\n    d.run(2)\n    c.run(1)\n", "c.run(1, NEW)"),
        ("from m import C\n\nc = C()\nc.run(1)\n", "c.run(1, NEW)"),
        ("from n import C\n\n\ndef g(c: C):\n    c.run(1)\n", "c.run(1)"),
        ("from m import C\n\n\ndef g(c):\n    c.run(1)\n", "c.run(1)"),
    ],
)
def test_a_method_is_called_by_what_has_the_imported_type(tmp_path: Path, code: str, wanted: str) -> None:
    text = "class C:\n    def run(self, a):\n        return a\n"
    after = followed_elsewhere(tmp_path, "m.py", text, ("self, a", "self, a, b"), "x.py", code)
    assert after.endswith(f"{wanted}\n")
    assert "d.run(2, " not in after


@pytest.mark.parametrize(
    ("path", "text", "edit", "other", "code", "wanted"),
    [
        (
            "m.py",
            "@dataclass\nclass T:\n    a: int\n",
            ("a: int\n", "a: int\n    b: int\n"),
            "x.py",
            "import m\n\nt = m.T(a=1)",
            "t = m.T(a=1, b=NEW)",
        ),
        (
            "m/m.go",
            "package m\n\ntype T struct {\n\tA int\n}\n",
            ("A int\n", "A int\n\tB int\n"),
            "x.go",
            'package x\n\nimport "e.com/p/m"\n\nvar t = &m.T{A: 1}',
            "var t = &m.T{A: 1, B: NEW}",
        ),
        (
            "src/m.rs",
            "pub struct T {\n    pub a: i32,\n}\n",
            ("i32,\n", "i32,\n    pub b: i32,\n"),
            "src/x.rs",
            "use crate::m::T;\nfn g() { T { a: 1 } }",
            "fn g() { T { a: 1, b: NEW } }",
        ),
    ],
)
def test_the_fields_of_an_imported_type_are_given_too(
    tmp_path: Path, path: str, text: str, edit: tuple[str, str], other: str, code: str, wanted: str
) -> None:
    (tmp_path / "go.mod").write_text("module e.com/p\n", encoding="utf-8")
    assert followed_elsewhere(tmp_path, path, text, edit, other, code).endswith(wanted)
