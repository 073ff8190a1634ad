"""What edits depend on in a language: one row a language."""

from functools import partial

import attrs

Surroundings = tuple[str, str]
"""The code before a piece of code and after it."""
Spelling = tuple[frozenset[str], frozenset[str]]
"""Tokens, and others that mean the same."""

_SCRIPT: tuple[Surroundings, ...] = (
    ("function _(", ") {}\n"),
    ("class _ {\n", "\n}\n"),
    ("const ", " = _;\n"),
    ("try {} ", " { _ }\n"),
    ("", "\nclass _ {}\n"),
)
_TYPED_SCRIPT = (("let ", ";\n"), ("let _: ", ";\n"), ("interface _ {\n", "\n}\n"), *_SCRIPT)
_MARKUP = ("<_ ", " />;\n")
_MEMBERS = (("class A {\n", "\n}\n"), ("class A { ", " x; }\n"))


def _spellings(*pairs: tuple[str, str]) -> frozenset[Spelling]:
    return frozenset((frozenset(old.split()), frozenset(new.split())) for old, new in pairs)


_KEYWORDS = _spellings(("let", "const"), ("var", "const"), ("var", "let"))


@attrs.frozen
class Traits:
    """What a language lets an edit do. A language without a row has no trait.

    `family` names languages that share their syntax. `declares` says that a name is declared before it is assigned to,
    `names_all` that a file defines or imports each name that it uses, apart from those of the language. A method names
    the fields of its class without a receiver where `bare_fields`; a field and a method of one name are two things
    where `fields_apart`; a class has several methods of one name where `overloads`. `macros` may have code whose syntax
    no grammar knows. A declaration begins with its type where `type_first`. A function returns what it says, and
    nothing if it says nothing, where `says_results`; no local variable stays unread where `must_read`. `hides` says
    that what has no modifier is less visible than `public`, `ends_statements` that a statement needs its ";".
    `access` is the modifier that members without one have.
    `instances` are the names of the object that a method is of, and of its class. `spellings` are older tokens and
    newer ones of the same code. `around` makes a file of expressions and statements, where they are not for the top of
    one; `contexts` do that with types, parameters, members, attributes and patterns.
    """

    family: str = ""
    declares: bool = False
    names_all: bool = False
    bare_fields: bool = False
    fields_apart: bool = False
    overloads: bool = False
    macros: bool = False
    type_first: bool = False
    says_results: bool = False
    must_read: bool = False
    hides: bool = False
    ends_statements: bool = False
    access: str = ""
    instances: frozenset[str] = frozenset()
    spellings: frozenset[Spelling] = frozenset()
    around: Surroundings | None = None
    contexts: tuple[Surroundings, ...] = ()

    @property
    def is_script(self) -> bool:
        """Whether it is JavaScript, or TypeScript."""
        return self.family == "script"

    @property
    def is_c(self) -> bool:
        """Whether it is C, or C++."""
        return self.family == "c"


_NONE = Traits()
_THIS = frozenset({"this"})
_script = partial(Traits, "script", declares=True, names_all=True, instances=_THIS, spellings=_KEYWORDS)
_typed = partial(Traits, declares=True, says_results=True)
_classes = partial(_typed, bare_fields=True, overloads=True)
_sharp = partial(_classes, type_first=True, hides=True, ends_statements=True, instances=_THIS)
_c = partial(
    _typed,
    "c",
    bare_fields=True,
    macros=True,
    type_first=True,
    ends_statements=True,
    around=("void f() {\n", "\n}\n"),
    contexts=(("", " x;\n"), ("void f(", ");\n")),
)
_TRAITS = {
    "python": Traits(
        names_all=True,
        instances=frozenset({"self", "cls"}),
        contexts=(
            ("_: ", "\n"),
            ("def _(", "): pass\n"),
            ("", "\ndef _(): pass\n"),
            ("match _:\n    case ", ":\n        pass\n"),
            ("try:\n    pass\n", "\n    pass\n"),
        ),
    ),
    "javascript": _script(contexts=(*_SCRIPT, _MARKUP)),
    "typescript": _script(access="public", contexts=_TYPED_SCRIPT),
    "typescriptreact": _script(access="public", contexts=(*_TYPED_SCRIPT, _MARKUP)),
    "go": _typed(
        must_read=True,
        around=("package p\n\nfunc f() {\n", "\n}\n"),
        contexts=(
            ("package p\n\nvar _ ", "\n"),
            ("package p\n\nfunc _(", ") {}\n"),
            ("package p\n\ntype _ struct {\n", "\n}\n"),
            ("package p\n\n", "\n"),
        ),
    ),
    "rust": _typed(
        fields_apart=True,
        macros=True,
        instances=frozenset({"self", "Self"}),
        around=("fn f() {\n", "\n}\n"),
        contexts=(
            ("type T = ", ";\n"),
            ("fn f(", ") {}\n"),
            ("struct S {\n", "\n}\n"),
            ("fn f() { match x { ", " => {} } }\n"),
            ("", "\nstruct S;\n"),
        ),
    ),
    "java": _sharp(
        fields_apart=True,
        around=("class A { void f() {\n", "\n} }\n"),
        contexts=(*_MEMBERS, ("class A { void f(", ") {} }\n"), ("class A {\n", "\nvoid f() {} }\n")),
    ),
    "csharp": _sharp(
        access="private",
        around=("class A { void F() {\n", "\n} }\n"),
        contexts=(
            *_MEMBERS,
            ("class A { void F() { _ = ", "; } }\n"),
            ("class A { void F(", ") {} }\n"),
            ("class A {\n", "\nvoid F() {} }\n"),
        ),
    ),
    "c": _c(),
    "cpp": _c(spellings=_spellings(("NULL", "nullptr"))),
    "php": Traits(
        access="public",
        ends_statements=True,
        instances=frozenset({"this", "self", "parent"}),
        spellings=_spellings(("array ( )", "[ ]"), ("list ( )", "[ ]"), ("else if", "elseif")),
        around=("<?php\n", "\n"),
        contexts=(("<?php\nfunction f(", " $x) {}\n"),),
    ),
    "ruby": Traits(bare_fields=True),
    "scala": _classes(around=("object A {\n", "\n}\n"), contexts=(("val x: ", " = y\n"),)),
    "kotlin": _classes(access="public", contexts=(("val x: ", "\n"), ("fun f(", ") {}\n"))),
    "swift": _classes(contexts=(("let x: ", "\n"), ("func f(", ") {}\n"))),
}


def traits_of(language: str) -> Traits:
    """Return the traits of a language by its id."""
    return _TRAITS.get(language, _NONE)
