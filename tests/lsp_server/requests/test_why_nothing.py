"""Why nothing is shown, through a real server: each moment of silence has one line, and it is true.

The engine asks a real HTTP server on loopback, which returns the tokens and probabilities that a test sets.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from support.lsp_editor import INVOKED, PATIENCE_S, Editor, engine_home, eventually, shown
from support.remote_server import ModelServer, hangs
from support.scripted_model import Written, writes

from lsp_server.settings import price_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALL: Written = [("connect", 0.9), ("(host)", 0.9)]
DISMISSED = "you dismissed a suggestion here; others come when the text here changes, or when you ask"


@pytest.fixture(scope="module")
def server(module_server: ModelServer) -> ModelServer:
    return module_server


@pytest.fixture(scope="module")
def settings(server: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    model = server.model("openai")
    with engine_home(tmp_path_factory.mktemp("runtime"), model):
        yield {"model": model, "gate": 0.6, "budgetMs": 5000}


@pytest.fixture
def editor(
    session: Editor, server: ModelServer, settings: dict[str, Any], request: pytest.FixtureRequest
) -> Iterator[Editor]:
    """An editor with a new document and the cursor after "link = "; the server writes CALL."""
    server.behaviour = writes(CALL)
    session.open("link = |\nother\n", f"file:///project/{request.node.name}.py", "python")
    yield session
    configure(session, settings)


def configure(editor: Editor, settings: dict[str, Any]) -> None:
    pushed = types.DidChangeConfigurationParams({"midspan": settings})
    editor.client.workspace_did_change_configuration(pushed)


async def why(editor: Editor, request: str = "midspan/whyNoSuggestion") -> str:
    answer = await editor.raw_request(request, {"textDocument": {"uri": editor.uri}})
    assert answer.places == []
    return str(answer.summary)


async def eventually_says(editor: Editor, line: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (said := await why(editor)) != line:
        assert time.monotonic() < deadline, said
        await asyncio.sleep(0.01)


async def test_before_any_request_nothing_was_asked_for(editor: Editor) -> None:
    assert await why(editor) == "nothing was asked for in this document yet"


async def test_an_unsure_text_is_named_with_how_sure_it_is_and_what_it_needs(
    editor: Editor, server: ModelServer
) -> None:
    server.behaviour = writes([("build(x)", 0.3)])
    assert await shown(editor) == []
    assert await why(editor) == 'unsure: "build(x)" is 30 % sure, and is shown from 60 % on'


async def test_a_probability_just_below_what_is_needed_is_not_rounded_up_to_it(
    editor: Editor, server: ModelServer
) -> None:
    server.behaviour = writes([("build(x)", 0.599)])
    assert await shown(editor) == []
    assert await why(editor) == 'unsure: "build(x)" is 59 % sure, and is shown from 60 % on'


async def test_a_text_that_is_too_short_for_its_price_says_what_it_costs(
    editor: Editor, server: ModelServer, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "gate": "normal", "pauseMs": 0})
    server.behaviour = writes([("b", 0.68)])
    assert await shown(editor) == []
    keys = -price_of("normal").worth(0.68, 1)
    assert keys > 0
    assert await why(editor) == (
        f'too short to be worth a glance: "b" is 68 % sure; it costs {keys:.1f} keys more to read than it saves'
    )


async def test_what_is_held_back_says_that_it_comes_at_a_pause_and_comes_then(
    editor: Editor, server: ModelServer, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "gate": "normal"})
    server.behaviour = writes([("b", 0.68)])
    answer = asyncio.create_task(shown(editor))
    await eventually_says(editor, '"b" comes once you stop typing for a moment')
    assert await answer == ["b"]
    assert await why(editor) == '"b" was shown'


async def test_a_key_before_the_pause_ends_what_was_held_back(
    editor: Editor, server: ModelServer, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "gate": "normal", "pauseMs": 10_000})
    server.behaviour = writes([("b", 0.68)])
    answer = asyncio.create_task(shown(editor))
    await eventually_says(editor, '"b" comes once you stop typing for a moment')
    editor.type("x")
    assert await answer == []


async def test_what_is_unsure_at_a_pause_too_says_from_when_on_it_would_come(
    editor: Editor, server: ModelServer, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "gate": "normal"})
    server.behaviour = writes([("b", 0.5)])
    assert await shown(editor) == []
    assert await why(editor) == 'unsure: "b" is 50 % sure, and is shown from 60 % on'


async def test_the_quiet_gate_shows_nothing_more_at_a_pause(
    editor: Editor, server: ModelServer, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "gate": "quiet"})
    server.behaviour = writes([("b", 0.9)])
    assert await shown(editor) == []
    assert (await why(editor)).startswith('too short to be worth a glance: "b" is 90 % sure')


async def test_a_name_is_shown_at_a_pause_as_far_as_it_is_sure(
    editor: Editor, server: ModelServer, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "gate": "normal"})
    server.behaviour = writes([("read", 0.95), ("_all", 0.4)])
    assert await shown(editor) == ["read"]


async def test_a_line_on_which_something_else_was_typed_needs_more(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == ["connect(host)"]
    server.behaviour = writes([("uild(x)", 0.68)])
    editor.type("b")
    assert await shown(editor) == []
    dearer = "you typed something else than was shown on this line, so it needs more"
    assert await why(editor) == f'unsure: "uild(x)" is 68 % sure, and is shown from 71 % on; {dearer}'


async def test_where_a_suggestion_was_dismissed_this_is_said_at_once_and_after_the_next_request(
    editor: Editor,
) -> None:
    assert await shown(editor) == ["connect(host)"]
    assert await why(editor) == '"connect(host)" was shown'
    await editor.dismiss()
    assert await why(editor) == DISMISSED
    assert await shown(editor) == []
    assert await why(editor) == DISMISSED


async def test_the_rest_of_a_dismissed_text_was_dismissed(editor: Editor, server: ModelServer) -> None:
    assert await shown(editor) == ["connect(host)"]
    await editor.dismiss()
    server.behaviour = writes([("onnect(host)", 0.9)])
    editor.type("c")
    assert await shown(editor) == []
    assert await why(editor) == 'you dismissed "onnect(host)" here'


async def test_what_was_just_deleted_says_so(editor: Editor) -> None:
    editor.type("connect(host)")
    editor.delete(len("connect(host)"))
    assert await shown(editor) == []
    assert await why(editor) == 'you just deleted "connect(host)" here'


async def test_what_was_ignored_twice_says_so(editor: Editor) -> None:
    here, elsewhere = editor.offset, len(editor.text) - 1
    for _ in range(2):
        editor.offset = here
        assert await shown(editor) == ["connect(host)"]
        editor.offset = elsewhere
        await shown(editor)
    editor.offset = here
    assert await shown(editor) == []
    assert await why(editor) == '"connect(host)" was shown here twice, and you typed something else'


async def test_a_comma_only_formats(editor: Editor, server: ModelServer, settings: dict[str, Any]) -> None:
    configure(editor, {**settings, "gate": 0})
    editor.open("items = [name|\n]\n", "file:///project/comma.py", "python")
    server.behaviour = writes([(",", 0.99)])
    assert await shown(editor) == []
    assert await why(editor) == '"," would change the formatting only'


async def test_what_breaks_the_syntax_does_not_fit(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([(")", 0.99)])
    editor.offset = len(editor.text) - 1
    assert await shown(editor) == []
    assert await why(editor) == '")" would not fit: it is there already, or would break the syntax'


async def test_a_model_that_writes_nothing_says_so_to_a_user_who_asks_too(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([(" ", 0.9)])
    assert await shown(editor) == []
    assert await why(editor) == "the model would write nothing here"
    told = len(editor.warnings())
    assert await shown(editor, INVOKED) == []
    await eventually(lambda: editor.warnings()[told:] == ["Midspan: the model would write nothing here"])


async def test_the_time_that_ran_out_is_named(editor: Editor, server: ModelServer, settings: dict[str, Any]) -> None:
    configure(editor, {**settings, "budgetMs": 100})
    server.behaviour = hangs
    assert await shown(editor) == []
    assert "100 ms" in await why(editor)


async def test_a_request_that_an_edit_ended_says_so(editor: Editor, server: ModelServer) -> None:
    server.received.clear()
    server.behaviour = hangs
    asked = asyncio.ensure_future(editor.suggest())
    await eventually(lambda: server.received)
    assert await why(editor) == "the engine has not answered yet"
    editor.type("x")
    await asked
    told = "the last request ended before its answer: the text or the cursor changed, or insert mode ended"
    assert await why(editor) == told


async def test_a_prompt_for_a_commit_message_says_what_the_model_is_made_for(
    editor: Editor, server: ModelServer
) -> None:
    server.behaviour = writes([("the tests", 0.3)])
    editor.open("Mend |\n", "file:///project/.git/COMMIT_EDITMSG", "gitcommit")
    assert await shown(editor) == []
    made_for = "this is a commit message, and the model is made for code"
    assert await why(editor) == f'unsure: "the tests" is 30 % sure, and is shown from 60 % on; {made_for}'


async def test_an_excluded_file_names_its_rule_and_a_language_its_setting(
    editor: Editor, settings: dict[str, Any]
) -> None:
    configure(editor, {**settings, "exclude": ["test_an*.py"], "languages": {"go": False}})
    assert await shown(editor) == []
    rule = 'it matches "test_an*.py" of the setting midspan.exclude'
    assert await why(editor) == f"this file is left alone: {rule}"
    editor.open("x := |\n", "file:///project/main.go", "go")
    assert await shown(editor) == []
    assert (await why(editor)).startswith("suggestions are switched off for go")


async def test_suggestions_that_come_only_when_asked_for_say_why(editor: Editor, settings: dict[str, Any]) -> None:
    await editor.command("midspan.snooze", 5)
    assert await shown(editor) == []
    assert await why(editor) == "suggestions come only when you ask: the snooze is on"
    await editor.command("midspan.snooze", 0)
    configure(editor, {**settings, "automatic": False})
    assert await shown(editor) == []
    assert await why(editor) == "suggestions come only when you ask: midspan.automatic is off"


async def test_an_entry_of_the_menu_that_nothing_goes_on_after_is_the_reason(editor: Editor) -> None:
    here = types.Range(editor.position(), editor.position())
    entry = types.SelectedCompletionInfo(here, "different")
    assert await editor.suggest(selected=entry) == []
    assert (await why(editor)).startswith("the completion menu has an entry selected")


async def test_the_question_about_a_suggestion_is_answered_with_the_silence_after_it_unless_it_was_just_taken(
    editor: Editor, server: ModelServer
) -> None:
    assert await shown(editor) == ["connect(host)"]
    server.behaviour = writes([("zzzzz(x)", 0.2)])
    editor.type("connect(host)")
    assert await shown(editor) == []
    question = {"textDocument": {"uri": editor.uri}}
    server.behaviour = writes(CALL)
    taken = await editor.raw_request("midspan/whyThisSuggestion", question)
    assert taken.summary.startswith('"connect(host)" comes from the model')
    server.behaviour = writes([("zzzzz(x)", 0.2)])
    editor.type("\n")
    assert await shown(editor) == []
    assert await why(editor, "midspan/whyThisSuggestion") == (
        'unsure: "zzzzz(x)" is 20 % sure, and is shown from 60 % on'
    )


async def test_an_explained_fill_says_the_same(editor: Editor, server: ModelServer) -> None:
    server.behaviour = writes([("build(x)", 0.3)])
    explained = await editor.fill(explain=True)
    assert (explained.text, explained.silence) == (
        "build(x)",
        'unsure: "build(x)" is 30 % sure, and is shown from 60 % on',
    )
    server.behaviour = writes(CALL)
    assert (await editor.fill(explain=True)).silence == ""


async def test_an_engine_that_cannot_start_is_the_reason(tmp_path: Path) -> None:
    editor = Editor()
    await editor.start({"model": str(tmp_path / "none")})
    try:
        editor.open("link = |\n", "file:///project/away.py", "python")
        await editor.until("error")
        assert await shown(editor) == []
        assert await why(editor) == f"the engine is away. {editor.statuses[-1].message}"
    finally:
        await editor.stop()
