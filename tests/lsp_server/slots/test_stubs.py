"""Which functions are still to be written («» is the hole of each), and what is filled in without a model."""

import pytest
from support.refactor_case import undone
from support.slot_texts import opened, snapshot_of

from lsp_server.refactor.edit.file_edit import digest_of
from lsp_server.slots.fill import NO_MODEL, fill_slots
from lsp_server.slots.find import find_slots

STUBS = {
    "pass": ("a.py", "def f():\n    pass\n", "def f():\n    «»\n"),
    "dots": ("a.py", "async def f():\n    ...\n", "async def f():\n    «»\n"),
    "an error": ("a.py", "def f():\n    raise NotImplementedError\n", "def f():\n    «»\n"),
    "an error with a message": ("a.py", 'def f():\n    raise NotImplementedError("x")\n', "def f():\n    «»\n"),
    "a docstring stays": ("a.py", 'def f():\n    """Doc."""\n    pass\n', 'def f():\n    """Doc."""\n    «»\n'),
    "on the header's line": ("a.py", "class A:\n    def f(self): pass\n", "class A:\n    def f(self):\n        «»\n"),
    "a comment that says nothing goes": ("a.py", "def f():\n    # TODO: implement\n    pass\n", "def f():\n    «»\n"),
    "a comment that says what stays": (
        "a.py",
        "def f():\n    # TODO: sort them\n    pass  # noqa\n",
        "def f():\n    # TODO: sort them\n    «»\n",
    ),
    "Windows' line ends": ("a.py", "def f():\r\n    pass\r\n", "def f():\r\n    «»\r\n"),
    "tabs": ("a.py", "class A:\n\tdef f(self):\n\t\tpass\n", "class A:\n\tdef f(self):\n\t\t«»\n"),
    "wide characters before": ("a.py", 's = "🙂"\ndef f():\n    pass\n', 's = "🙂"\ndef f():\n    «»\n'),
    "TypeScript throws": (
        "a.ts",
        'class A {\n  f(): void {\n    throw new Error("Not implemented");\n  }\n}\n',
        "class A {\n  f(): void {\n    «»\n  }\n}\n",
    ),
    "TypeScript, empty": ("a.ts", "export function f() {}\n", "export function f() {\n  «»\n}\n"),
    "TSX, an arrow": ("a.tsx", "const f = (a) => {\n  // TODO\n};\n", "const f = (a) => {\n  «»\n};\n"),
    "JavaScript, an error of its own": (
        "a.js",
        "function f() {\n  throw new NotImplementedError();\n}\n",
        "function f() {\n  «»\n}\n",
    ),
    "Go panics": ("a.go", 'package a\n\nfunc F() {\n\tpanic("TODO")\n}\n', "package a\n\nfunc F() {\n\t«»\n}\n"),
    "Go, a method": ("a.go", "package a\n\nfunc (r *R) F() {}\n", "package a\n\nfunc (r *R) F() {\n\t«»\n}\n"),
    "Rust todo": ("a.rs", "fn f() -> i32 {\n    todo!()\n}\n", "fn f() -> i32 {\n    «»\n}\n"),
    "Rust unimplemented": ("a.rs", 'fn f() {\n    unimplemented!("x");\n}\n', "fn f() {\n    «»\n}\n"),
    "Java throws": (
        "A.java",
        'class A {\n    int f() {\n        throw new UnsupportedOperationException("Not implemented yet");\n    }\n}\n',
        "class A {\n    int f() {\n        «»\n    }\n}\n",
    ),
    "Java's generated comment": (
        "A.java",
        "class A {\n    void f() {\n        // TODO Auto-generated method stub\n    }\n}\n",
        "class A {\n    void f() {\n        «»\n    }\n}\n",
    ),
    "C# throws": (
        "A.cs",
        "class A {\n    int F() {\n        throw new NotImplementedException();\n    }\n}\n",
        "class A {\n    int F() {\n        «»\n    }\n}\n",
    ),
    "C#, an expression": (
        "A.cs",
        "class A {\n    int F() => throw new NotImplementedException();\n}\n",
        "class A {\n    int F() => «»;\n}\n",
    ),
}

NONE = {
    "an abstract method": ("a.py", "class A:\n    @abc.abstractmethod\n    def f(self):\n        pass\n"),
    "a protocol": ("a.py", "class A(Protocol[T]):\n    def f(self): ...\n"),
    "an overload": ("a.py", "@typing.overload\ndef f(a: int): ...\n"),
    "an exception class": ("a.py", "class Error(Exception):\n    pass\n"),
    "an error that is ignored": ("a.py", "def f():\n    try:\n        g()\n    except OSError:\n        pass\n"),
    "a stub file": ("a.pyi", "def f(): ...\n"),
    "a body with more": ("a.py", "def f():\n    g()\n    raise NotImplementedError\n"),
    "a docstring alone": ("a.py", 'def f():\n    """Doc."""\n'),
    "an abstract method of TypeScript": ("a.ts", "abstract class A {\n  abstract f(): void;\n}\n"),
    "an overload of TypeScript": ("a.ts", "function f(a: string): void;\n"),
    "a constructor": ("a.ts", "class A {\n  constructor(private a: number) {}\n}\n"),
    "a callback": ("a.ts", "on(() => {}, function () {});\n"),
    "a function to do nothing": ("a.ts", "const noop = () => {};\n"),
    "an empty body that says why": ("a.js", "function f() {\n  // Nothing is to be done.\n}\n"),
    "another panic": ("a.go", 'package a\n\nfunc F() {\n\tpanic("unreachable")\n}\n'),
    "a marker method": ("a.go", "package a\n\nfunc (r *R) isNode() {}\n"),
    "a method of a trait": ("a.rs", "trait T {\n    fn f(&self) {}\n}\n"),
    "a method of an interface": ("A.java", "interface A {\n    default void f() {}\n}\n"),
    "an operation that is not supported": (
        "A.java",
        "class A {\n    int f() {\n        throw new UnsupportedOperationException();\n    }\n}\n",
    ),
    "a virtual method": ("A.cs", "class A {\n    protected virtual void F() { }\n}\n"),
    "another language": ("a.rb", "def f\nend\n"),
}


@pytest.mark.parametrize(("path", "text", "expected"), STUBS.values(), ids=STUBS)
def test_a_stub_is_found(path: str, text: str, expected: str) -> None:
    assert opened(text, "stubs", f"/project/{path}") == expected


@pytest.mark.parametrize(("path", "text"), NONE.values(), ids=NONE)
def test_what_looks_like_a_stub_is_none(path: str, text: str) -> None:
    assert opened(text, "stubs", f"/project/{path}") == text


TEXTS = {
    "plain": "def f(a: int) -> int:\n    return a\n\n\ndef g(b=0, c=''):\n    print(b)\n",
    "Windows' line ends": "def f(a: int) -> int:\r\n    return a\r\n\r\n\r\ndef g(b=0, c=''):\r\n    print(b)\r\n",
    "wide characters": "x = '🙂é'\ndef f(a: int) -> int: return a\n\n\ndef g(b=0, c=''): # 🙂\n    print(b)\n",
    "tabs": "class A:\n\tdef f(a: int) -> int: return a\n\n\tdef g(self, b=0, c=''):\n\t\tprint(b)\n",
    "a syntax error elsewhere": "def f(a: int) -> int: return a\n\n\ndef g(b=0, c=''):\n    print(b)\n\nx = (\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_known_types_are_filled_in_and_taken_back(text: str) -> None:
    snapshot = snapshot_of(text)
    done: list[None] = []
    result = await fill_slots(snapshot, find_slots(snapshot, "annotations"), None, lambda: done.append(None))
    edit = result.file_edit(with_doubtful=False)
    after = edit.applied(text)
    assert after == text.replace("b=0, c=''):", "b: int = 0, c: str = '') -> None:")
    assert undone(edit, text).applied(after) == text
    assert edit.digest == digest_of(text)
    assert [place.reason for place in result.places] == ["its default is 0", "its default is ''", "it returns nothing"]
    assert len(done) == 3


async def test_what_the_file_does_not_say_is_left_out_with_the_reason() -> None:
    snapshot = snapshot_of("def f(a) -> int: ...\n")
    result = await fill_slots(snapshot, find_slots(snapshot, "annotations"), None, lambda: None)
    assert result.places == ()
    assert [omission.reason for omission in result.left_out] == [f"the type of `a`: {NO_MODEL}"]


@pytest.mark.parametrize("depth", [10, 3000])
async def test_deeply_nested_code_is_looked_at_or_left_alone(depth: int) -> None:
    chain = "if (a) { return 1; } else " * depth
    snapshot = snapshot_of(f"function f(a: number) {{ {chain} {{ return 2; }} }}\n", "/project/a.ts")
    slots = find_slots(snapshot, "annotations")
    assert len(slots) == 1 or depth > 10


async def test_a_function_that_does_not_parse_gets_no_annotations() -> None:
    snapshot = snapshot_of("def f(a: int) -> int:\n    return a\n\n\ndef g(b=0):\n    return (\n    print(\n")
    assert [slot.title for slot in find_slots(snapshot, "annotations") if "`g`" in slot.title] == []
