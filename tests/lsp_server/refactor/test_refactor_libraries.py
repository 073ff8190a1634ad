"""What an edit puts before one function of a library, it puts before the others too."""

import pytest
from support.refactor_case import doubts, reasons, sure_edit

LOGGED = 'fn f() { debug!("{}", 1); }\n'
ASSERTED = "<?php\n$this->assertSame(1, $b);\n"


@pytest.mark.parametrize("crate", ["log", "tracing"])
def test_the_crate_of_one_macro_that_logs_may_be_meant_for_it_alone(crate: str) -> None:
    text = 'fn g() { warn!("a"); println!("c"); }\n'
    edit = sure_edit("rust", text, (LOGGED, LOGGED.replace("debug", f"{crate}::debug")))
    assert reasons(edit) == ["wide: only that it is a macro that logs is as in the example"]


def test_a_macro_of_another_crate_or_of_the_file_gets_no_crate() -> None:
    text = "use tracing::info;\nmacro_rules! trace { () => {} }\nfn g() { info!(1); trace!(); }\n"
    edit = sure_edit("rust", text, (LOGGED, LOGGED.replace("debug", "log::debug")))
    assert (edit.edits, reasons(edit)) == ((), [])


@pytest.mark.parametrize("receiver", ["self::", "static::"])
def test_what_is_before_one_assertion_of_php_unit_comes_before_the_others(receiver: str) -> None:
    text = "<?php\n$this->assertCount(2, $c);\n$this->assertOwn($c);\n$this->fail('x');\n"
    edit = sure_edit("php", text, (ASSERTED, ASSERTED.replace("$this->", receiver)))
    assert edit.applied(text) == text.replace("$this->assertCount", f"{receiver}assertCount").replace(
        "$this->fail", f"{receiver}fail"
    )


def test_a_class_that_has_the_assertion_itself_may_mean_that_one() -> None:
    text = "<?php\nclass A { function f() { $this->assertNull(1); } function assertNull($x) {} }\n"
    edit = sure_edit("php", text, (ASSERTED, ASSERTED.replace("$this->", "self::")))
    assert edit.edits == ()
    assert reasons(edit) == ["doubtful: `assertNull` is a method of its own class"]


def test_the_namespace_of_one_function_of_c_may_be_meant_for_it_alone() -> None:
    before, text = "void f() { fputs(a, b); }\n", "void g() { puts(a); }\n"
    edit = sure_edit("cpp", text, (before, before.replace("fputs", "std::fputs")))
    assert reasons(edit) == ["wide: only that it is a function of C's library is as in the example"]
    assert doubts(edit) == []
