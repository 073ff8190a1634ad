"""What Rust's own macros take is code; other macros have tokens."""

import pytest
from support.refactor_case import reasons, sure_edit

EXAMPLE = ('fn f() { let a = Tank::fill_with(b"x"); }\n', 'fn f() { let a = Tank::from(&b"x"[..]); }\n')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("assert_eq!(Tank::fill_with(x.y), 1);", "assert_eq!(Tank::from(&x.y[..]), 1);"),
        (
            'println!("{}", format!("{:?}", Tank::fill_with(x)));',
            'println!("{}", format!("{:?}", Tank::from(&x[..])));',
        ),
        ("let v = vec![Tank::fill_with(x), y];", "let v = vec![Tank::from(&x[..]), y];"),
        ("let v = vec![Tank::fill_with(x); 3];", "let v = vec![Tank::from(&x[..]); 3];"),
    ],
)
def test_a_place_in_a_macro_that_takes_expressions_is_edited(before: str, after: str) -> None:
    text = f"fn g() {{ {before} }}\n"
    assert sure_edit("rust", text, EXAMPLE).applied(text) == f"fn g() {{ {after} }}\n"


@pytest.mark.parametrize(
    "code", ["own!(Tank::fill_with(x));", 'println!("{a}", a = Tank::fill_with(x));', "vec! { Tank::fill_with(x) };"]
)
def test_a_place_in_another_macro_is_listed(code: str) -> None:
    text = f"fn g() {{ {code} }}\n"
    done = sure_edit("rust", text, EXAMPLE)
    assert done.applied(text) == text
    assert reasons(done) == ["it is inside of a macro, whose tokens have no syntax"]


def test_an_example_in_a_macro_says_what_is_meant_outside() -> None:
    example = ("fn f() { assert!(tank.has_room(1)); }\n", "fn f() { assert!(tank.room() > 1); }\n")
    text = "fn g() { if tank.has_room(2) { h(); } }\n"
    assert sure_edit("rust", text, example).applied(text) == "fn g() { if tank.room() > 2 { h(); } }\n"


def test_an_old_try_in_a_condition_is_a_place() -> None:
    text = "fn g() -> R { while let Some(x) = try!(a.next()) { h(x); } }\n"
    example = ("fn f() -> R { try!(b(1)); }\n", "fn f() -> R { b(1)?; }\n")
    assert sure_edit("rust", text, example).applied(text) == text.replace("try!(a.next())", "a.next()?")


def test_a_type_that_gets_a_bound_stays_as_it_is_before_a_function() -> None:
    example = ("type A = Box<Tank + 'static>;\n", "type A = Box<Tank + Send + 'static>;\n")
    text = "fn g(a: Box<Tank + 'static>) { assert_eq!(Tank::size(&a), 0); }\n"
    edited = "fn g(a: Box<Tank + Send + 'static>) { assert_eq!(Tank::size(&a), 0); }\n"
    assert sure_edit("rust", text, example).applied(text) == edited


def test_a_macro_that_gets_its_module_takes_what_it_took() -> None:
    text = 'fn g() { debug!("{}", a.b()); warn!("{}", c); }\n'
    done = sure_edit(
        "rust", text, ('fn f() { debug!("{} {}", x.y(), 1); }\n', 'fn f() { log::debug!("{} {}", x.y(), 1); }\n')
    )
    assert done.applied(text) == text.replace("debug!", "log::debug!")
    assert reasons(done) == ["wide: only that it is a macro that logs is as in the example"]
