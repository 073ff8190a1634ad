"""Draws recorded terminal screens as one animated SVG: sharp text, no script, played by CSS alone."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby

import attrs

FONT = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
FOREGROUND, BACKGROUND, CURSOR = "#e0e2ea", "#14161b", "#e0e2ea"
_CELL_WIDTH, _ROW_HEIGHT, _FONT_SIZE = 8.4, 19, 14
_MARGIN, _TITLE_HEIGHT, _FOOTER_HEIGHT = 14, 34, 40
_ANSI = ["#07080d", "#ffc0b9", "#b3f6c0", "#fce094", "#a6dbff", "#ffcaff", "#8cf8f7", "#eef1f8"]
_ESCAPE = re.compile(r"\x1b\[([\d;:]*)m")


@attrs.frozen
class Frame:
    """What is on the screen from `start_s` seconds on: SGR-coloured text, cursor as (column, row), name of a key."""

    start_s: float
    screen: str
    cursor: tuple[int, int]
    key: str = ""


@attrs.frozen
class _Style:
    color: str = FOREGROUND
    background: str = ""
    is_bold: bool = False
    is_italic: bool = False
    is_reversed: bool = False


@attrs.frozen
class _Interval:
    start_s: float
    end_s: float


def animated_svg(frames: Sequence[Frame], seconds: float, size: tuple[int, int], title: str) -> str:
    """Return an SVG that plays `frames` for `seconds` and then begins again.

    `size` is (columns, rows). Each text that a row shows is drawn once and is visible in the intervals that have it.
    Where animation is off, the picture is the frame with the longest suggestion.
    """
    columns, rows = size
    width = columns * _CELL_WIDTH + 2 * _MARGIN
    height = _TITLE_HEIGHT + rows * _ROW_HEIGHT + _FOOTER_HEIGHT
    poster = max(frames, key=_length_after_cursor)
    drawing = _Drawing(seconds, poster.start_s)
    screens = [_rows(frame.screen, rows) for frame in frames]
    for row in range(rows):
        y = _TITLE_HEIGHT + row * _ROW_HEIGHT
        drawing.add_track(frames, [_row_elements(screen[row], y) for screen in screens])
    drawing.add_track(frames, [_cursor_element(frame.cursor) for frame in frames])
    drawing.add_track(frames, [_key_element(frame.key, width / 2, height) for frame in frames])
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" width="{width:g}" '
            f'height="{height}" role="img" aria-label="{escape(title)}">',
            f"<style>text{{font:{_FONT_SIZE}px {FONT};white-space:pre;fill:{FOREGROUND}}}",
            f".a{{visibility:hidden;animation:{seconds:g}s step-end infinite}}.p{{visibility:visible}}",
            *drawing.keyframes,
            "@media (prefers-reduced-motion:reduce){.a{animation:none!important}}</style>",
            f'<rect width="{width:g}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
            *(f'<circle cx="{18 + 18 * n}" cy="17" r="5" fill="#4f5258"/>' for n in range(3)),
            f'<text x="{width / 2:g}" y="21" text-anchor="middle" style="fill:#9b9ea4;font-size:12px">'
            f"{escape(title)}</text>",
            *drawing.elements,
            "</svg>\n",
        ]
    )


class _Drawing:
    """Elements and the keyframes that show them. Elements with the same intervals share one animation."""

    def __init__(self, seconds: float, poster_s: float) -> None:
        self.elements: list[str] = []
        self.keyframes: list[str] = []
        self._seconds = seconds
        self._poster_s = poster_s
        self._names: dict[tuple[_Interval, ...], str] = {}

    def add_track(self, frames: Sequence[Frame], drawn: Sequence[str]) -> None:
        """Add what one place of the picture shows: `drawn` has its elements in each frame."""
        intervals: dict[str, list[_Interval]] = {}
        ends = [frame.start_s for frame in frames[1:]] + [self._seconds]
        shown = zip(drawn, frames, ends, strict=True)
        for elements, run in groupby(shown, key=lambda each: each[0]):
            steps = list(run)
            intervals.setdefault(elements, []).append(_Interval(steps[0][1].start_s, steps[-1][2]))
        for elements, times in intervals.items():
            if elements:
                self.elements.append(elements if self._is_always(times) else self._animated(elements, tuple(times)))

    def _is_always(self, times: Sequence[_Interval]) -> bool:
        return times[0] == _Interval(0, self._seconds)

    def _animated(self, elements: str, times: tuple[_Interval, ...]) -> str:
        if times not in self._names:
            self._names[times] = f"k{len(self._names)}"
            self.keyframes.append(f"@keyframes {self._names[times]}{{{''.join(self._steps(times))}}}")
        in_poster = any(each.start_s <= self._poster_s < each.end_s for each in times)
        return f'<g class="a{" p" if in_poster else ""}" style="animation-name:{self._names[times]}">{elements}</g>'

    def _steps(self, times: Iterable[_Interval]) -> Iterable[str]:
        steps = {0.0: "hidden", self._seconds: "hidden"}
        for each in times:
            steps[each.start_s] = "visible"
            steps.setdefault(each.end_s, "hidden")
        for at_s, visibility in sorted(steps.items()):
            yield f"{100 * at_s / self._seconds:.4g}%{{visibility:{visibility}}}"


def _length_after_cursor(frame: Frame) -> int:
    column, row = frame.cursor
    return len(_ESCAPE.sub("", frame.screen).split("\n")[row].rstrip()) - column


def _rows(screen: str, count: int) -> list[list[tuple[_Style, str]]]:
    """Return the first `count` rows as runs of one style each. A style holds on over the end of a row."""
    rows, style = [], _Style()
    for line in [*screen.split("\n"), *[""] * count][:count]:
        runs, start = [], 0
        for match in _ESCAPE.finditer(line):
            runs.append((style, line[start : match.start()]))
            style, start = _styled(style, match[1]), match.end()
        runs.append((style, line[start:]))
        rows.append([run for run in runs if run[1]])
    return rows


def _styled(style: _Style, parameters: str) -> _Style:
    """Return `style` after one SGR escape."""
    codes = [int(code or 0) for code in re.split("[;:]", parameters)]
    while codes:
        code = codes.pop(0)
        if code == 0:
            style = _Style()
        elif code in (38, 48):
            color, codes = _extended_color(codes)
            style = attrs.evolve(style, color=color) if code == 38 else attrs.evolve(style, background=color)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = attrs.evolve(style, color=_ANSI[code % 10])
        elif 40 <= code <= 47:
            style = attrs.evolve(style, background=_ANSI[code % 10])
        elif code == 39:
            style = attrs.evolve(style, color=FOREGROUND)
        elif code == 49:
            style = attrs.evolve(style, background="")
        elif code in (1, 22):
            style = attrs.evolve(style, is_bold=code == 1)
        elif code in (3, 23):
            style = attrs.evolve(style, is_italic=code == 3)
        elif code in (7, 27):
            style = attrs.evolve(style, is_reversed=code == 7)
    return style


def _extended_color(codes: list[int]) -> tuple[str, list[int]]:
    """Return the colour that the codes after 38 or 48 name, and the codes after it."""
    if codes[0] == 2:
        return "#{:02x}{:02x}{:02x}".format(*codes[1:4]), codes[4:]
    return _ANSI[codes[1] % 8], codes[2:]


def _row_elements(runs: Sequence[tuple[_Style, str]], y: float) -> str:
    """Return the elements of one row. Each run has its own width, so no viewer's font can move what follows."""
    elements, column = [], 0
    for style, text in runs:
        x, width = _MARGIN + column * _CELL_WIDTH, len(text) * _CELL_WIDTH
        column += len(text)
        color, background = style.color, style.background
        if style.is_reversed:
            color, background = background or BACKGROUND, color
        if background:
            elements.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{_ROW_HEIGHT}" fill="{background}"/>')
        elements += [
            _text(match[0], x + match.start() * _CELL_WIDTH, y + 14, style, color)
            for match in re.finditer(r"\S+(?: \S+)*", text)
        ]
    return "".join(elements)


def _text(text: str, x: float, y: float, style: _Style, color: str) -> str:
    looks = [f"fill:{color}"] if color != FOREGROUND else []
    looks += ["font-weight:bold"] if style.is_bold else []
    looks += ["font-style:italic"] if style.is_italic else []
    css = f' style="{";".join(looks)}"' if looks else ""
    return f'<text x="{x:g}" y="{y:g}" textLength="{len(text) * _CELL_WIDTH:g}"{css}>{escape(text, quote=False)}</text>'


def _cursor_element(cursor: tuple[int, int]) -> str:
    x, y = _MARGIN + cursor[0] * _CELL_WIDTH, _TITLE_HEIGHT + cursor[1] * _ROW_HEIGHT
    return f'<rect x="{x - 1:g}" y="{y + 1:g}" width="2" height="{_ROW_HEIGHT - 2}" fill="{CURSOR}"/>'


def _key_element(key: str, center: float, height: float) -> str:
    """Return a key cap in the footer, or nothing."""
    if not key:
        return ""
    y = height - _FOOTER_HEIGHT + 9
    return (
        f'<rect x="{center - 30:g}" y="{y:g}" width="60" height="22" rx="5" fill="#2c2e33" stroke="#9b9ea4"/>'
        f'<text x="{center:g}" y="{y + 15:g}" text-anchor="middle" style="font-size:12px">{escape(key)}</text>'
    )
