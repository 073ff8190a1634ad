"""`midspan refactor repeat`: learn an edit from examples, and make it everywhere else."""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, NoReturn

import attrs
import cattrs
import typer
from cattrs.gen import make_dict_unstructure_fn
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from engine.errors import MidspanError
from engine.protocol.editor_messages import wire_names
from engine.protocol.messages import plain
from engine.reading import read_text
from lsp_server.languages.language import Language
from lsp_server.languages.registry import LANGUAGES, language_for
from lsp_server.refactor.alike import alike, why_nothing
from lsp_server.refactor.edit.file_edit import FileEdit, counted
from lsp_server.refactor.edit.rewrite import fits_language
from lsp_server.refactor.learn.example import Example, NoRule, changed_files
from lsp_server.refactor.learn.learn import learn
from lsp_server.refactor.learn.notation import described, rules_of_code, with_contexts
from lsp_server.refactor.places.doubts import Beside
from lsp_server.refactor.rivals import with_rivals
from lsp_server.refactor.rules.rule import RuleSet
from lsp_server.refactor.save import NotSaved, save, undo_interrupted
from lsp_server.refactor.search import Caps, Found, Progress, Target, search
from lsp_server.settings import Settings
from lsp_server.workspace.files import MAX_FILES, Rules, learnable_files

FAILED = 1
BAD_INPUT = 2
LEFT_OUT = 3
"""The exit status when all is done, but some places that fit were left out."""
MOST_SHOWN = 100
"""So many places that were left out for one reason have a line each."""

app = typer.Typer(
    name="midspan refactor", no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False
)
_err = Console(stderr=True, highlight=False, markup=False, emoji=False)


@app.callback()
def _root() -> None:
    """Edits of code by its structure, in all files at once. Nothing is written without --apply."""
    if undone := undo_interrupted():
        typer.echo(f"midspan: an earlier --apply was cut off; its {undone} files are as they were before", err=True)


@app.command()
def repeat(
    paths: Annotated[list[Path], typer.Argument(help="Files, and folders whose files git tracks or does not ignore.")],
    before: Annotated[
        str | None, typer.Option("--from", metavar="CODE", help="Code before the edit; $X and $$XS say what varies.")
    ] = None,
    after: Annotated[str | None, typer.Option("--to", metavar="CODE", help="The same code after the edit.")] = None,
    example: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--example", metavar="OLD NEW", help="A file before and after the edit, of one place or more."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="REVISION", help="Take the working tree's edits as examples.")
    ] = None,
    language: Annotated[str, typer.Option("--language", help="The language of --from. Default: that of PATHS.")] = "",
    diff: Annotated[bool, typer.Option("--diff", help="Print a unified diff. This is the default.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Write the files.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: edits, places, and what was left out.")] = False,
    doubtful: Annotated[bool, typer.Option("--doubtful", "--all", help="Edit the doubtful places too.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Edit all that the widest form of the edit fits.")] = False,
    max_places: Annotated[int, typer.Option(min=1, help="The most places.")] = Caps().places,
    max_files: Annotated[int, typer.Option(min=1, help="The most files that are searched.")] = Caps().files,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="The most seconds of searching.")] = Caps().seconds,
) -> None:
    """Make an edit everywhere that was made in one or two places.

    The exit status is 0 if every place that fits is edited, 3 if some were left out or others look alike, 1 if nothing
    was found or a file was not written, and 2 for bad input.
    """
    try:
        targets = targets_of(paths)
        rules = _rules(targets, before, after, example, since, language)
        check_form(diff, apply, json)
    except MidspanError as error:
        leave(error)
    for one in rules:
        for line in dict.fromkeys(f"{'wide: ' * bool(rule.wide)}{described(rule)}" for rule in one.all):
            typer.echo(plain(f"{one.language}: {line}"), err=True)
        for reason in one.reasons:
            typer.echo(f"{one.language}: not learned: {reason}", err=True)
    caps = Caps(max_files, max_places, max_seconds)
    found, progress = _search(rules, targets, caps, Beside(doubtful, "all" if wide else ""))
    if json:
        typer.echo(as_json(found, progress))
    elif not apply:
        typer.echo(shown(as_diff(found)), nl=False)
    for line in unknown_names(found):
        typer.echo(plain(f"midspan: {line}"), err=True)
    left = list(_alike(rules, targets, found, max_seconds)) if _is_all(found, progress) else []
    for line in left:
        typer.echo(plain(f"midspan: {line}"), err=True)
    failed = apply and not save_all(found)
    _summary(found, progress, "edited" if apply and not failed else "found")
    is_nothing = not any(one.edit.places or one.edit.left_out for one in found)
    if is_nothing and not progress.reached:
        for line in why_nothing(rules, targets):
            typer.echo(plain(f"midspan: {line}"), err=True)
    if failed or (is_nothing and not progress.reached):
        raise typer.Exit(FAILED)
    if left or not _is_all(found, progress):
        raise typer.Exit(LEFT_OUT)


def _is_all(found: Sequence[Found], progress: Progress) -> bool:
    """Return whether no place that was found is left out, and no cap was reached."""
    return not progress.reached and not any(one.edit.left_out for one in found)


def _alike(
    rules: Sequence[RuleSet], targets: Sequence[Target], found: Sequence[Found], seconds: float
) -> Iterator[str]:
    """Yield lines on what is left of the code that the edits take away."""
    edits = {one.target.full: one.edit for one in found}
    texts = ((one, read_text(one.folder, one.path)) for one in targets)
    after = (
        (one.path, edits[one.full].applied(text) if one.full in edits else text)
        for one, text in texts
        if text is not None
    )
    return alike(rules, after, seconds) if found else iter(())


def targets_of(paths: Iterable[Path]) -> list[Target]:
    """Return the files of paths that a user gave. Raises NoRule for a file that cannot be read."""
    targets: dict[str, Target] = {}
    for path in paths:
        full = os.path.realpath(path)
        if os.path.isdir(full):  # noqa: PTH112  pathlib's raises for a name that is too long
            files = learnable_files(full, Rules.of(Settings()), "")
            if len(files) >= MAX_FILES:
                typer.echo(f"midspan: {path} has more than {MAX_FILES} files; only so many are searched", err=True)
            found = [Target(full, file) for file in files]
        else:
            folder, name = os.path.split(full)
            if read_text(folder, name) is None:
                if not os.path.exists(full):  # noqa: PTH110  as above
                    raise NoRule(f"no such file: {path}")
                raise NoRule(f"{path} cannot be read as a UTF-8 text of at most 200 kB; name another file")
            found = [Target(folder, name)]
        targets.update((one.full, one) for one in found)
    return list(targets.values())


def check_form(*forms: bool) -> None:
    """Raise NoRule if the user asked for several of --diff, --apply and --json."""
    if sum(forms) > 1:
        raise NoRule("--diff, --apply and --json exclude each other; give one of them")


def _rules(
    targets: Sequence[Target],
    before: str | None,
    after: str | None,
    example: tuple[Path, Path] | None,
    since: str | None,
    name: str,
) -> list[RuleSet]:
    if sum((before is not None or after is not None, example is not None, since is not None)) != 1:
        raise NoRule("give one of --from with --to, --example and --since")
    if example is not None:
        return _learned([(language_for(name, str(example[1])), _read(example))], "the example is not")
    if since is not None:
        changed = changed_files(Path(targets[0].folder) if targets else Path.cwd(), since)
        return _learned(
            [(language_for("", one.path), one.example) for one in changed], f"nothing changed since {since}"
        )
    if before is None or after is None:
        raise NoRule("--from and --to belong together; give both")
    if any("\ud800" <= character <= "\udfff" for character in before + after):
        raise NoRule("--from or --to is not UTF-8; write the code in UTF-8")
    return _rules_of_code(Example(before, after), _languages(targets, name))


def _read(example: tuple[Path, Path]) -> Example:
    try:
        before, after = (path.read_bytes().decode("utf-8-sig") for path in example)
        return Example(before, after, example[1].as_posix())
    except (OSError, UnicodeDecodeError) as error:
        names = " and ".join(map(str, example))
        raise NoRule(f"{names} cannot be read ({type(error).__name__}); give two UTF-8 files") from error


def _languages(targets: Sequence[Target], name: str) -> list[Language]:
    if name:
        language = language_for(name, "")
        if language.grammar is None:
            raise NoRule(
                f"--language {name!r} is not known; known are {', '.join(sorted(one.id for one in LANGUAGES))}"
            )
        return [language]
    known = {language_for("", target.path).id: language_for("", target.path) for target in targets}
    return [language for language in known.values() if language.grammar is not None]


def _rules_of_code(example: Example, languages: Sequence[Language]) -> list[RuleSet]:
    """Return the rules of code in each language that it is code of."""
    rules: list[RuleSet] = []
    reasons: list[str] = []
    problem = NoRule("no rule: no file here is in a language with a grammar; name files of one")
    for language in languages:
        if any(fits_language(rule, language) for one in rules for rule in one.rules):
            continue
        try:
            rules.append(rules_of_code(example, language))
        except NoRule as error:
            problem = error
            reasons.append(f"{language.id}: not searched: {str(error).removeprefix('no rule: ').partition(';')[0]}")
    if not rules:
        raise problem
    for line in reasons:
        typer.echo(line, err=True)
    return rules


def _learned(examples: Sequence[tuple[Language, Example]], nothing: str) -> list[RuleSet]:
    rules: list[RuleSet] = []
    problem = NoRule(f"no rule: {nothing} in a language with a grammar; edit a place and save it first")
    for language in {one.id: one for one, _ in examples if one.grammar is not None}.values():
        try:
            learned = learn([example for one, example in examples if one.id == language.id], language)
            rules.append(with_contexts(learned, language))
        except NoRule as error:
            problem = error
    if not rules:
        raise problem
    return rules


def _search(
    rules: Sequence[RuleSet], targets: Sequence[Target], caps: Caps, beside: Beside
) -> tuple[list[Found], Progress]:
    columns = (TextColumn("searching"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[places]} places"))
    rules = with_rivals(rules, targets[: caps.files], caps.seconds / 2)
    with Bar(*columns, console=_err, transient=True, disable=not _err.is_terminal) as bar:
        task = bar.add_task("", total=len(targets), places=0)

        def report(progress: Progress) -> None:
            bar.update(task, completed=progress.searched, places=progress.places)

        return asyncio.run(search(rules, targets, caps, report, beside=beside))


def save_all(found: Sequence[Found]) -> bool:
    """Write all files or none, and return whether they are written."""
    try:
        save([one for one in found if one.edit.edits])
    except NotSaved as error:
        typer.echo(plain(f"midspan: {error}; no file was changed"), err=True)
        return False
    return True


def _summary(found: Sequence[Found], progress: Progress, done: str) -> None:
    for line in omissions(found):
        typer.echo(line, err=True)
    for line in progress.reached:
        typer.echo(f"midspan: {line}; raise --max-files, --max-places or --max-seconds", err=True)
    places = sum(len(one.edit.places) for one in found)
    files = sum(bool(one.edit.edits) for one in found)
    left_out = sum(len(one.edit.left_out) for one in found)
    doubts = Counter[str](omission.doubt for one in found for omission in one.edit.left_out)
    sorts = [one for one in ("doubtful", "wide") if doubts[one]]
    more = "".join(f", {doubts[one]:,} of them {one}: --{one} takes them" for one in sorts)
    typer.echo(f"{counted(places, 'place')} in {counted(files, 'file')} {done}, {left_out} left out{more}", err=True)


def leave(error: MidspanError) -> NoReturn:
    """Say what is wrong with the input, and end."""
    typer.echo(plain(f"midspan: {error}"), err=True)
    raise typer.Exit(BAD_INPUT)


@attrs.frozen
class Result:
    """The JSON of a search. Its names are camelCase there."""

    files: list[FileEdit]
    searched: int
    places: int
    left_out: int
    reached: list[str]


def as_diff(found: Sequence[Found]) -> str:
    """Return the edits as a unified diff, each path as it is from here."""
    parts: list[str] = []
    for one in found:
        text = read_text(one.target.folder, one.target.path)
        if text is None or not one.edit.edits:
            continue
        path = shown_path(one)
        old, new = _lines(text), _lines(one.edit.applied(text))
        parts += unified_diff(old, new, f"a/{path}", f"b/{path}")
    return "".join(parts)


def shown(text: str) -> str:
    """Return what a command prints of a text: the text into a file or a pipe, without control codes for a terminal."""
    return plain(text) if sys.stdout.isatty() else text


def as_json(found: Sequence[Found], progress: Progress) -> str:
    """Return the edits as JSON."""
    files = [attrs.evolve(one.edit, path=shown_path(one)) for one in found]
    left_out = sum(len(one.edit.left_out) for one in found)
    return to_json(Result(files, progress.searched, progress.places, left_out, progress.reached))


def omissions(found: Sequence[Found]) -> Iterator[str]:
    """Yield one line for each place that was left out, and one for those beyond MOST_SHOWN of a reason."""
    seen: Counter[str] = Counter()
    for one in found:
        for omission in one.edit.left_out:
            seen[omission.phrase] += 1
            if seen[omission.phrase] <= MOST_SHOWN:
                yield plain(f"{shown_path(one)}:{omission.span.line + 1}: left out: {omission.phrase}")
    for reason, count in seen.items():
        if count > MOST_SHOWN:
            yield plain(f"midspan: {counted(count - MOST_SHOWN, 'more place')} left out: {reason}")


def unknown_names(found: Sequence[Found]) -> Iterator[str]:
    """Yield a line for each name that the edits use, and that some of the files do not know."""
    for name in sorted({name for one in found for name in one.edit.unknown}):
        files = [one for one in found if name in one.edit.unknown]
        places = sum(len(one.edit.places) for one in files)
        where = ", ".join(map(shown_path, files[:3])) + (", ..." if len(files) > 3 else "")
        yield (
            f"the edit uses `{name}`, which nothing defines or imports in {where} ({counted(places, 'place')}); "
            "import it in the example, and its import follows"
        )


def shown_path(found: Found) -> str:
    """Return the path of a file from the current folder, with slashes; the full one if it is elsewhere."""
    full = Path(found.target.full)
    here = Path.cwd().resolve()
    return (full.relative_to(here) if full.is_relative_to(here) else full).as_posix()


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True) if "\r" not in text else [f"{line}\n" for line in text.split("\n")[:-1]]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n\\ No newline at end of file\n"
    return lines


def to_json(value: attrs.AttrsInstance) -> str:
    """Return a report as JSON, whose names are camelCase."""
    converter = cattrs.Converter()
    converter.register_unstructure_hook_factory(
        attrs.has, lambda cls: make_dict_unstructure_fn(cls, converter, **wire_names(cls))
    )
    return json.dumps(converter.unstructure(value))
