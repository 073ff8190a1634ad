"""What was filled, as JSON and as lines of what was left out."""

import json
from collections.abc import Iterator, Sequence

import attrs
import cattrs
from cattrs.gen import make_dict_unstructure_fn, override

from lsp_server.messages import camel_case
from lsp_server.refactor.report import shown_path
from lsp_server.refactor.search import Found
from lsp_server.slots.files import Filled


@attrs.frozen
class PlaceReport:
    """A filled slot: `text` takes the place of the characters from `start` to `end`. `line` counts from 1."""

    line: int
    start: int
    end: int
    text: str
    reason: str
    by_model: bool
    doubtful: bool


@attrs.frozen
class OmissionReport:
    """A slot that was left out."""

    line: int
    reason: str


@attrs.frozen
class FileReport:
    """The slots of a file; `digest` is the SHA-256 of its text before."""

    path: str
    digest: str
    places: list[PlaceReport]
    left_out: list[OmissionReport]


@attrs.frozen
class Report:
    """The JSON of a command. Its names are camelCase there."""

    files: list[FileReport]
    places: int
    doubtful: int
    left_out: int
    reached: list[str]


def as_json(filled: Sequence[Filled], reached: Sequence[str]) -> str:
    """Return what was filled as JSON."""
    files = [_file(one) for one in filled]
    doubtful = sum(place.doubtful for file in files for place in file.places)
    places, left_out = sum(len(file.places) for file in files), sum(len(file.left_out) for file in files)
    return json.dumps(_converter().unstructure(Report(files, places, doubtful, left_out, list(reached))))


def lines(filled: Sequence[Filled], *, with_doubtful: bool) -> Iterator[str]:
    """Yield one line for each slot that was left out or is doubtful."""
    for one in filled:
        path = _path(one)
        for place in one.edit.places:
            if place.doubtful and not with_doubtful:
                yield f"{path}:{place.span.line + 1}: doubtful: `{place.edit.text.strip(' :=>-')}`, {place.reason}"
        for omission in one.edit.left_out:
            yield f"{path}:{omission.span.line + 1}: left out: {omission.reason}"


def _file(one: Filled) -> FileReport:
    places = [
        PlaceReport(
            place.span.line + 1,
            place.edit.start,
            place.edit.end,
            place.edit.text,
            place.reason,
            place.by_model,
            place.doubtful,
        )
        for place in one.edit.places
    ]
    left_out = [OmissionReport(omission.span.line + 1, omission.reason) for omission in one.edit.left_out]
    return FileReport(_path(one), one.edit.digest, places, left_out)


def _path(one: Filled) -> str:
    return shown_path(Found(one.target, one.edit.file_edit(with_doubtful=True)))


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter()
    for cls in (PlaceReport, OmissionReport, FileReport, Report):
        names = {field.name: override(rename=camel_case(field.name)) for field in attrs.fields(cls)}
        converter.register_unstructure_hook(cls, make_dict_unstructure_fn(cls, converter, **names))  # type: ignore[arg-type]
    return converter
