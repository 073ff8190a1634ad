"""Which functions are still to be written, language by language; «» is the hole of each."""

import pytest
from support.slot_texts import opened

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
    "Go, a method": ("a.go", "package a\n\nfunc (r *R) F() {}\n", "package a\n\nfunc (r *R) F() {\n    «»\n}\n"),
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
