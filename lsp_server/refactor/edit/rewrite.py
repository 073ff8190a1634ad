"""Applies rules to one file."""

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence

import attrs

from lsp_server.documents.source import Source
from lsp_server.documents.text_edit import edited
from lsp_server.languages.language import Language
from lsp_server.languages.registry import language_for
from lsp_server.refactor.code.bindings import UNKNOWN, Scopes, imports_of
from lsp_server.refactor.code.syntax import PARSE_SECONDS, Syntax, indent_unit, parse, syntax_of
from lsp_server.refactor.code.traits import traits_of
from lsp_server.refactor.edit.checks import Done, done_spans, is_kept_import, is_same_thing, unbound_beside, why_not
from lsp_server.refactor.edit.file_edit import Doubt, FileEdit, Omission, Span, digest_of, is_sound, sound_parts
from lsp_server.refactor.edit.import_edits import edits_without, import_edits
from lsp_server.refactor.edit.layout import (
    ByteEdit,
    Output,
    deleted_line,
    edits_of,
    ending_edit,
    in_order,
    layout_of,
    realigned,
)
from lsp_server.refactor.edit.ranges import Ranges
from lsp_server.refactor.edit.render import File, LeftOut, Place, render
from lsp_server.refactor.places.doubts import ALL_BUT_WIDE, Beside, doubt_of
from lsp_server.refactor.places.insertion_places import line_matches
from lsp_server.refactor.places.uses import of_module, uses_in
from lsp_server.refactor.rules.candidates import in_macros, may_have_places, near_places, other_syntax, patterns_of
from lsp_server.refactor.rules.matching import Bound, Match
from lsp_server.refactor.rules.pattern import Branch, Leaf, literals
from lsp_server.refactor.rules.rule import Rule, RuleSet
from lsp_server.refactor.rules.task import Rename


def fits_language(rule: Rule, language: Language) -> bool:
    """Return whether a rule may apply to a language: its own, or one with the same syntax."""
    return rule.language == language.id or "" != traits_of(rule.language).family == traits_of(language.id).family


def may_fit(rules: Sequence[Rule], data: bytes) -> bool:
    """Return whether a file has the literal parts of some rule, or of what looks like its places. It is not parsed."""
    needed = (literals(pattern) for rule in rules for pattern in patterns_of(rule))
    return any(all({"'", '"'} & {*text} or text.encode() in data for text in texts) for texts in needed)


def rewrite(
    rules: RuleSet,
    path: str,
    text: str,
    language: Language,
    only: Collection[Span] | None = None,
    beside: Beside = ALL_BUT_WIDE,
) -> FileEdit:
    """Return the edits of a file by all rules that fit its language: of all places, or of these only.

    The file is not written.
    """
    if language.id == "c" and rules.language == "cpp" and path.endswith(".h"):
        language = language_for("cpp", "")  # the name of a header does not say which of them it is
    source = Source.of(text)
    fitting = [rule for rule in rules.all if fits_language(rule, language)]
    if not fitting or not may_fit(fitting, source.data):
        return FileEdit(path)
    tree = language.parse(source.data, None, PARSE_SECONDS)
    try:
        if tree is None or not any(may_have_places(rule, tree, source.data, language) for rule in fitting):
            return FileEdit(path)
        return _Rewriting(rules, fitting, source, path, syntax_of(tree, source.data, language)).edit(only, beside)
    except RecursionError:  # generated code can be nested deeper than Python's stack
        return FileEdit(path, digest_of(text), left_out=(Omission(Span(0, len(text), 0), "it is nested too deeply"),))


class _Rewriting:
    def __init__(self, rules: RuleSet, fitting: Sequence[Rule], source: Source, path: str, syntax: Syntax) -> None:
        self._path = path
        self._rules, self._fitting = rules, [rule for rule in fitting if not isinstance(rule.task, Rename)]
        self._source, self._syntax = source, syntax
        renames = [rule for rule in fitting if isinstance(rule.task, Rename)]
        self._renames = [each for one in renames for each in (one, *of_module(one, syntax))]
        self._scopes = Scopes(syntax, imports_of(syntax))
        self._digest = digest_of(source.text)
        self._imports = rules.imports.seen_from(next((one.path for one in fitting if one.path), ""), path)
        self._own = _own_spans(rules, source)
        self._left_out: dict[tuple[int, int], tuple[str, Doubt]] = {}

    def edit(self, only: Collection[Span] | None, beside: Beside) -> FileEdit:
        places: list[Place] = []
        for place in self._places():
            if not place.doubt or beside.takes(place.rule):
                places.append(place)
            else:
                self._leave_out(place, place.doubt, _sort_of(place))
        if beside.wide == "apart":
            places = list(self._apart(places))
        if only is not None:
            places = [place for place in places if self._span_of(place) in only]
        places = list(self._bound(places))
        if not places:
            return FileEdit(self._path, self._digest, left_out=self._omissions())
        edits = self._edits(places)
        if not self._is_sound(edits):
            parts = sound_parts(places, lambda some: self._is_sound(self._edits(some)))
            sound = [place for part in parts for place in part]
            for place in places:
                if place not in sound:
                    self._leave_out(place, "the result would have a syntax error")
            # Places that are sound alone may not be so together.
            places = sound if self._is_sound(self._edits(sound)) else []
            edits = self._edits(places)
        done = [one for one in places if (one.match.start, one.match.end) not in self._left_out]
        if not done:
            return FileEdit(self._path, self._digest, left_out=self._omissions())
        imports = self._imports.along(pair for place in done for pair in place.rule.new_names.follows)
        needed = {one: place.rule.path for place in done for one in place.rule.new_names.needed}
        imports = imports.needing(one.seen_from(example, self._path) for one, example in needed.items())
        after = None
        if imports.added or imports.removed or imports.follows:
            after = parse(self._applied(edits).encode("utf-8", "surrogatepass"), self._syntax.language)
        if after is not None:
            edits = _with_imports(edits, import_edits(imports, self._syntax, after, self._source.newline))
        spans, texts = tuple(map(self._span_of, done)), tuple(edit.in_text(self._source) for edit in edits)
        return FileEdit(
            self._path,
            self._digest,
            texts,
            spans,
            self._omissions(),
            has_errors=self._syntax.errors > 0,
            unknown=self._unknown(done),
            doubtful=tuple(
                Omission(span, one.doubt, doubt=_sort_of(one))
                for span, one in zip(spans, done, strict=True)
                if one.doubt
            ),
        )

    def _apart(self, places: Sequence[Place]) -> Iterator[Place]:
        """Yield places without the wide ones that share a line with others."""
        others = Ranges[Match]()
        for place in places:
            if not place.rule.wide:
                others.add(place.match)
        data = self._syntax.data
        for place in places:
            start, end = data.rfind(b"\n", 0, place.match.start) + 1, data.find(b"\n", place.match.end)
            if place.rule.wide and others.touching(start, end if end >= 0 else len(data)):
                self._leave_out(place, place.doubt, "wide")
            else:
                yield place

    def _bound(self, places: Sequence[Place]) -> Iterator[Place]:
        """Yield places without those that use a name which another place was to bind: `x` of `for x in a`."""
        for place in places:
            if (name := unbound_beside(place, places, self._scopes)) is None:
                yield place
            else:
                self._leave_out(place, f"`{name}`, which the edit uses, is not known here")

    def _unknown(self, places: Sequence[Place]) -> tuple[str, ...]:
        """Return the names that the edits of places use, and that nothing defines in a file that has to name all."""
        if not traits_of(self._syntax.language.id).names_all or self._scopes.imports_everything():
            return ()
        added = {one.bound for one in self._imports.added}
        return tuple(
            sorted(
                {
                    name
                    for place in places
                    for name in place.rule.new_names.unbound
                    if name not in added and self._scopes.binding(name, place.match.nodes[0]) == UNKNOWN
                }
            )
        )

    def _places(self) -> list[Place]:
        """Return the places to edit, in their order, without those that overlap."""
        found: list[Place] = []
        taken = Ranges[Match]()
        for rule in self._fitting:
            done = done_spans(rule, self._syntax, self._own or ())
            layout = layout_of(rule)
            for match in line_matches(rule, self._syntax):
                if done.has(match) or not match.end > match.start or is_kept_import(rule, match):
                    continue
                if rule.wide and any(one < match.end and match.start < other for one, other in self._left_out):
                    continue
                if rule.wide and any(_is_variable(match, one) for one in taken.touching(match.start, match.end)):
                    continue  # the narrow rule makes the same edit there
                place = Place(rule, match, layout, self._doubt(rule, match))
                reason = why_not(place, self._scopes, self._imports, self._own is not None)
                if reason is not None:
                    if not rule.wide:
                        self._leave_out(place, reason)
                else:
                    _take(place, found, taken)
        for place in self._renamed():
            _take(place, found, taken)
        for rule in self._fitting:
            if not rule.wide:
                self._leave_out_near(rule, taken)
        found = self._without_empty_bodies(found)
        return sorted(found, key=lambda place: (place.match.start, -place.match.end))

    def _renamed(self) -> Iterator[Place]:
        """Yield the uses of the declarations that the example renamed."""
        plain = self._source.data.replace(b"\r\n", b"\n") if self._renames else b""
        digest = hashlib.sha256(plain).hexdigest()
        for rule in self._renames:
            for use in uses_in(rule, self._syntax, digest, self._path):
                leaf, old, name = use.leaf, rule.pattern[0], rule.template[0]
                assert isinstance(old, Leaf)
                assert isinstance(name, Leaf)
                text = attrs.evolve(name, text=f"{use.before}{name.text}{use.behind}")
                match = Match((leaf,), (Bound(old, leaf.start, leaf.end, (leaf,)),))
                used = attrs.evolve(rule, template=(text,))
                yield Place(used, match, layout_of(used), use.doubt)

    def _doubt(self, rule: Rule, match: Match) -> str:
        return doubt_of(rule, match, self._scopes, self._own, path=self._path, has_errors=self._syntax.errors > 0)

    def _leave_out_near(self, rule: Rule, taken: Ranges[Match]) -> None:
        """List what looks like a place of a rule and is none, so that nothing is missed in silence."""
        done = done_spans(attrs.evolve(rule, repeats=True), self._syntax, self._own or ())
        for match, reason in near_places(rule, self._syntax):
            is_known = any(start <= match.start and match.end <= end for start, end in self._left_out)
            is_place = any(
                one.start == match.start or one.end == match.end or _is_of_edit(match, one)
                for one in taken.touching(match.start, match.end)
            )
            if is_known or is_place or done.has(match) or not is_same_thing(rule, match, self._scopes):
                continue
            self._left_out[match.start, match.end] = reason, ""
        for span in in_macros(rule, self._syntax):
            if not any(True for _ in taken.touching(*span)):
                self._left_out.setdefault(span, ("it is inside of a macro, whose tokens have no syntax", ""))
        words = other_syntax(rule)
        for found in words.finditer(self._syntax.data) if words is not None else ():
            self._leave_out_other_syntax(found.span(), done, taken)

    def _leave_out_other_syntax(self, span: tuple[int, int], done: Done, taken: Ranges[Match]) -> None:
        """List a name that no rule has in the syntax that it has here: a part of a type, a pattern, an import."""
        start, end = span
        known = [*self._left_out, *done.parts, *((one.start, one.end) for one in done.matches)]
        known += [(one.start, one.end) for one in taken.touching(start, end)]
        is_known = any(low < end and start < high for low, high in known)
        comments = self._syntax.comments
        at = bisect_right(comments, start, key=lambda comment: comment.start)
        is_comment = at > 0 and start < comments[at - 1].end
        if not (is_known or is_comment or self._syntax.in_string(start)):
            self._left_out[span] = "it has another syntax here than in the example", ""

    def _without_empty_bodies(self, places: Sequence[Place]) -> list[Place]:
        """Leave out the places that are deleted if nothing would be left of a body that needs something."""
        if not self._syntax.language.indentation_is_syntax:
            return list(places)
        deleted = {id(node) for place in places if not place.rule.template for node in place.match.nodes}
        kept: list[Place] = []
        for place in places:
            body = place.match.nodes[0].parent
            statements = body.parts if body is not None else []
            is_top = body is None or body.parent is None
            if place.rule.template or is_top or any(id(child) not in deleted for child in statements):
                kept.append(place)
            else:
                self._leave_out(place, "nothing would be left of the body")
        return kept

    def _edits(self, places: Sequence[Place]) -> list[ByteEdit]:
        """Return the edits of places. A place that cannot be rendered is left out, and places inside of it are not."""
        tasks = [(place, place.rule.task) for place in places]
        gone = [place for place, task in tasks if isinstance(task, Rename) and task.gone is not None]
        places = [place for place in places if place not in gone]
        inner: dict[int, list[Place]] = {}
        tops: list[Place] = []
        stack: list[Place] = []
        for place in places:
            while stack and stack[-1].match.end <= place.match.start:
                stack.pop()
            (inner.setdefault(id(stack[-1].match), []) if stack else tops).append(place)
            stack.append(place)
        file = File(self._syntax, self._source.newline, indent_unit(self._syntax, self._syntax.language), inner)
        edits: list[ByteEdit] = []
        for place in tops:
            edits += self._edits_of(place, file)
        # Another name leaves the lines below as they are: another shape has them changed anyway.
        shapes = [(place.match.start, place.match.end) for place in tops if _has_other_shape(place)]
        edits = realigned(edits, self._syntax, shapes)
        ends = {end for one in places if (end := ending_edit(one.rule.edges.ending, one.match.nodes[0], self._syntax))}
        apart = [end for end in ends if all(end.end < one.start or one.end <= end.start for one in edits)]
        apart += edits_without([place.match.nodes[0] for place in gone], self._syntax, self._source.newline)
        return sorted([*edits, *apart], key=lambda one: (one.start, one.end))

    def _edits_of(self, place: Place, file: File) -> list[ByteEdit]:
        match = place.match
        output = Output(self._syntax, match.start, self._source.newline)
        try:
            render(place, file, output)
        except LeftOut as reason:
            self._leave_out(place, str(reason))
            return [edit for inner in file.inner.get(id(match), ()) for edit in self._edits_of(inner, file)]
        if not output.pieces:
            return [deleted_line(self._syntax, match.start, match.end)]
        pieces = in_order(output.pieces, self._syntax, match.start, match.end)
        return edits_of(pieces, match.start, match.end)

    def _is_sound(self, edits: Sequence[ByteEdit]) -> bool:
        """Return whether the edits add no syntax error."""
        return is_sound(self._applied(edits), self._syntax.language, self._syntax.errors)

    def _applied(self, edits: Sequence[ByteEdit]) -> str:
        return edited(self._source.text, (edit.in_text(self._source) for edit in edits))

    def _leave_out(self, place: Place, reason: str, doubt: Doubt = "") -> None:
        self._left_out.setdefault((place.match.start, place.match.end), (reason, doubt))

    def _span_of(self, place: Place) -> Span:
        """Return a place with the end of its statement, if the edit changes that."""
        end = ending_edit(place.rule.edges.ending, place.match.nodes[0], self._syntax)
        return self._span(place.match.start, max(place.match.end, end.end if end is not None else 0))

    def _omissions(self) -> tuple[Omission, ...]:
        left_out = sorted(self._left_out.items())
        return tuple(Omission.of(self._source, self._span(*span), *why) for span, why in left_out)

    def _span(self, start: int, end: int) -> Span:
        first = self._source.offset_of_byte(start)
        return Span(first, self._source.offset_of_byte(end), self._source.lines.at(first))


def _sort_of(place: Place) -> Doubt:
    return "wide" if place.rule.wide else "doubtful"


def _own_spans(rules: RuleSet, source: Source) -> list[tuple[int, int]] | None:
    """Return the parts of a text that are examples of the rules, in its bytes; None if it is no example's text."""
    if not rules.own:
        return None
    data = source.data
    plain = data.replace(b"\r\n", b"\n")
    digest = hashlib.sha256(plain).hexdigest()
    spans = [span for own in rules.own if own.digest == digest for span in own.spans]
    if not any(own.digest == digest for own in rules.own):
        return None
    if len(plain) == len(data):
        return spans
    added = [match.start() - index for index, match in enumerate(re.finditer(rb"\r\n", data))]
    return [(start + bisect_left(added, start), end + bisect_left(added, end)) for start, end in spans]


def _has_other_shape(place: Place) -> bool:
    kinds = [one.kind for one in place.rule.template if isinstance(one, Branch)]
    return kinds != [node.kind for node in place.match.nodes]


def _take(place: Place, found: list[Place], taken: Ranges[Match]) -> None:
    """Add a place, if it overlaps none that is taken."""
    match = place.match
    if not any(_clash(match, other) for other in taken.touching(match.start, match.end)):
        found.append(place)
        taken.add(match)


def _clash(one: Match, other: Match) -> bool:
    """Return whether two places overlap and neither is inside a variable of the other."""
    if one.end <= other.start or other.end <= one.start:
        return False
    return not (_is_inside(one, other) or _is_inside(other, one))


def _is_of_edit(match: Match, place: Match) -> bool:
    """Return whether what looks like a place is a part of one, and not inside of a variable of it."""
    return place.start <= match.start and match.end <= place.end and not _is_inside(match, place)


def _is_variable(one: Match, other: Match) -> bool:
    return any(bound.start == one.start and one.end == bound.end for bound in other.bounds if bound.nodes)


def _is_inside(one: Match, other: Match) -> bool:
    return any(
        bound.nodes and bound.start <= one.start and one.end <= bound.end and not isinstance(bound.item, Leaf)
        for bound in other.bounds
    )


def _with_imports(edits: Sequence[ByteEdit], imports: Sequence[ByteEdit]) -> list[ByteEdit]:
    apart = [one for one in imports if all(one.end <= edit.start or edit.end <= one.start for edit in edits)]
    return sorted([*edits, *apart], key=lambda edit: (edit.start, edit.end))
