"""The root of one import says what those of others become: `crate::` of Rust, `jakarta` of Java."""

import pytest
from support.refactor_case import edit_of, sure_edit

from lsp_server.languages.registry import language_for
from lsp_server.refactor.edit.rewrite import rewrite
from lsp_server.refactor.learn.example import Example
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.places.doubts import SURE
from lsp_server.refactor.rivals import with_rivals
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.search import Target

BEFORE = "use tree::{Leaf, Root};\n"
FILES = {
    "a/src/lib.rs": "#[macro_use]\nextern crate log;\nextern crate rand as dice;\nmod tree;\npub use tree::Leaf;\n",
    "a/src/tree.rs": "use std::fmt;\nuse log::info;\nuse dice::roll;\nuse {Error, tree};\nuse self::x::Y;\n",
    "a/src/log/mod.rs": "mod tests { use tree::*; use Error; }\n",
    "b/src/lib.rs": "mod log;\npub use log::Log;\nextern crate tree;\nuse tree::Oak;\n",
    "c/src/lib.rs": "use anyhow::Error;\n",
    "d/src/lib.rs": "#[macro_use(info)] extern crate log;\nextern crate alloc;\nuse serde::Serialize;\n",
    "e/src/lib.rs": "#[cfg(test)] extern crate quick;\nextern crate ox;\nuse {ox::Horn, Error};\nuse quick::Gen;\n",
}


def learned() -> RuleSet:
    rules = learn([Example(BEFORE, BEFORE.replace("tree", "crate::tree"), "a/src/log.rs")], language_for("rust", ""))
    return with_rivals([rules], [Target("", path, text) for path, text in FILES.items()], 60)[0]


def changed(path: str) -> str:
    return rewrite(learned(), path, FILES[path], language_for("rust", ""), beside=SURE).applied(FILES[path])


def test_what_no_crate_is_called_is_of_the_own_crate() -> None:
    assert changed("a/src/lib.rs") == FILES["a/src/lib.rs"].replace("pub use tree", "pub use crate::tree")
    assert changed("a/src/tree.rs") == FILES["a/src/tree.rs"].replace("use {Error", "use crate::{Error")
    assert changed("a/src/log/mod.rs") == "mod tests { use crate::tree::*; use crate::Error; }\n"


def test_each_folder_has_other_crates() -> None:
    assert changed("b/src/lib.rs") == FILES["b/src/lib.rs"].replace("pub use log", "pub use crate::log")


@pytest.mark.parametrize("path", ["c/src/lib.rs", "d/src/lib.rs"])
def test_a_crate_that_declares_none_for_its_names_may_be_of_a_later_edition(path: str) -> None:
    edit = rewrite(learned(), path, FILES[path], language_for("rust", ""), beside=SURE)
    assert [one.phrase for one in edit.left_out] == ["doubtful: nothing says which crates it uses"]


def test_a_crate_that_a_test_or_a_group_has_stays() -> None:
    assert changed("e/src/lib.rs") == FILES["e/src/lib.rs"]


def test_an_import_that_does_more_than_begin_at_the_crate_is_of_its_module_alone() -> None:
    example = ("use tree::Leaf;\n", "use crate::oak::Leaf;\n")
    assert edit_of("rust", [example], "use hay::Stack;\n").edits == ()


def test_what_java_has_itself_stays_where_java_ee_moved() -> None:
    example = ("import javax.mail.Part;\n", "import jakarta.mail.Part;\n")
    moved = "import javax.inject.Inject;\nimport static javax.ws.rs.Stone.cut;\nimport javax.annotation.Priority;\n"
    stays = "import javax.sql.Row;\nimport javax.annotation.Nullable;\nimport javax.transaction.xa.Key;\n"
    assert sure_edit("java", moved + stays, example).applied(moved + stays) == moved.replace("javax", "jakarta") + stays


def test_a_name_of_java_ee_in_code_says_as_much_as_an_import() -> None:
    example = ("class A { javax.mail.Part a; }\n", "class A { jakarta.mail.Part a; }\n")
    moved = (
        "import javax.inject.Named;\nclass B<T extends javax.inject.Named> { Object a = javax.inject.Named.class; }\n"
    )
    stays = "class C { javax.sql.Row a; my.javax.inject.Named b; }\n"
    assert sure_edit("java", moved + stays, example).applied(moved + stays) == (
        moved.replace("javax", "jakarta") + stays
    )
