"""The edits of the benchmark: a rule from any one of their sites edits no other place wrongly."""

import pytest

from benchmarks.refactor_edits import Edit, read_edits, score
from lsp_server.refactor.learn import learn
from lsp_server.refactor.rewrite import rewrite


@pytest.mark.parametrize("edit", read_edits(), ids=lambda edit: edit.name)
def test_no_place_is_edited_wrongly(edit: Edit) -> None:
    for place in edit.places:
        rules = learn([edit.example(place)], edit.language)
        done = score(edit, rewrite(rules, edit.name, edit.before, edit.language), {place})
        assert done.wrong == 0, edit.sites[place].text
        assert done.imports_right or not done.is_whole
