"""What one side packs, the other side reads. Anything else is refused in one line."""

import asyncio
import struct

import attrs
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ProtocolError
from engine.protocol import framing, memory_messages
from engine.protocol import messages as protocol
from engine.protocol.framing import MAX_FRAME_BYTES, pack, read_frame, unpack
from engine.protocol.messages import Cancel, Failed, Fill, Hello, left_edge

TEXT = st.text(max_size=40)
NUMBER = st.integers(-(2**63), 2**63 - 1)
REAL = st.floats(allow_nan=False)
MODEL = st.builds(
    protocol.ModelInfo, TEXT, TEXT, TEXT, NUMBER, NUMBER, NUMBER, st.sampled_from(["absorbing", "uniform"]), TEXT, TEXT
)
RULE = st.sampled_from(["default", "threshold", "entropy", "verify", "left-to-right"])
CANDIDATE = st.builds(
    protocol.Candidate,
    TEXT,
    st.lists(TEXT, max_size=3),
    st.lists(REAL, max_size=3),
    st.sampled_from(["complete", "deadline", "cancelled", "canvas full"]),
)
MESSAGES = st.one_of(
    st.builds(Hello, NUMBER, TEXT, TEXT),
    st.builds(protocol.Welcome, NUMBER, TEXT, NUMBER, MODEL),
    st.builds(
        Fill,
        id=NUMBER,
        prefix=TEXT,
        suffix=TEXT,
        path=TEXT,
        language=TEXT,
        snippets=st.lists(st.builds(protocol.Snippet, TEXT, TEXT), max_size=2),
        extent=st.sampled_from(["line", "lines"]),
        budget_ms=REAL,
        rule=RULE,
        seed=NUMBER,
        progress=st.booleans(),
        workspace=TEXT,
        memory=st.sampled_from(["workspace", "file", "off"]),
    ),
    st.builds(protocol.Progress, NUMBER, NUMBER, st.lists(st.none() | TEXT, max_size=4)),
    st.builds(
        protocol.Filled,
        NUMBER,
        st.lists(CANDIDATE, max_size=2),
        NUMBER,
        RULE,
        NUMBER,
        NUMBER,
        st.builds(protocol.Timings, REAL, REAL, REAL, REAL),
    ),
    st.builds(Cancel, NUMBER),
    st.builds(memory_messages.Learn, TEXT, TEXT, TEXT, TEXT, NUMBER),
    st.builds(memory_messages.Forget, TEXT, st.lists(TEXT, max_size=3), NUMBER),
    st.builds(memory_messages.MemoryUpdated, NUMBER),
    st.builds(memory_messages.MemoryStatusRequest, TEXT, NUMBER),
    st.builds(memory_messages.MemoryStatus, TEXT, NUMBER, NUMBER, NUMBER, NUMBER),
    st.builds(protocol.StatusRequest),
    st.builds(protocol.Shutdown),
    st.builds(Failed, TEXT, TEXT, st.none() | NUMBER),
)


async def read(data: bytes) -> protocol.Message | None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    return await read_frame(reader)


@given(MESSAGES)
def test_a_packed_message_is_read_back_unchanged(message: protocol.Message) -> None:
    assert asyncio.run(read(pack(message))) == message


def message_or_error(body: bytes) -> protocol.Message | ProtocolError:
    try:
        return unpack(body)
    except ProtocolError as error:
        return error


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_protocol_error(body: bytes) -> None:
    outcome = message_or_error(body)
    if isinstance(outcome, ProtocolError):
        assert outcome.code in ("malformed", "unknown-type")
        assert "\n" not in str(outcome)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = sorted(
    {field.name for cls in (Fill, memory_messages.Learn, memory_messages.Forget) for field in attrs.fields(cls)}
)


@given(
    st.sampled_from(["hello", "fill", "cancel", "learn", "forget", "status-request", "failed"]),
    st.dictionaries(st.sampled_from(FIELDS), VALUES),
)
def test_fields_of_a_wrong_type_are_a_protocol_error(kind: str, fields: dict[str, object]) -> None:
    outcome = message_or_error(msgpack.packb({**fields, "type": kind}))
    if isinstance(outcome, ProtocolError):
        assert outcome.code == "malformed"
    else:
        assert unpack(pack(outcome)[4:]) == outcome or "nan" in repr(outcome)


def test_an_unknown_field_is_ignored() -> None:
    assert unpack(msgpack.packb({"type": "cancel", "id": 3, "later": [1, 2]})) == Cancel(3)


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"", "malformed", "not valid msgpack"),
        (b"\xc1", "malformed", "not valid msgpack"),
        (msgpack.packb([1]), "malformed", "not a map"),
        (msgpack.packb({"type": 3}), "malformed", "not a map"),
        (msgpack.packb({"type": "dance"}), "unknown-type", "'dance'"),
        (msgpack.packb({"type": "cancel"}), "malformed", "id"),
        (msgpack.packb({"type": "cancel", "id": "7"}), "malformed", "expected int, got str"),
        (msgpack.packb({"type": "cancel", "id": True}), "malformed", "expected int, got bool"),
        (b"\x91" * 100_000, "malformed", "not valid msgpack"),
    ],
)
def test_the_error_says_what_is_wrong(body: bytes, code: str, says: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        unpack(body)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_a_message_over_the_limit_is_not_packed() -> None:
    with pytest.raises(ProtocolError, match="at most 4194304"):
        pack(Fill(1, "x" * MAX_FRAME_BYTES, ""))


async def test_a_frame_over_the_limit_is_refused_before_its_body_is_read() -> None:
    with pytest.raises(ProtocolError, match=f"{MAX_FRAME_BYTES + 1} bytes was announced") as caught:
        await read(struct.pack(">I", MAX_FRAME_BYTES + 1))
    assert caught.value.code == "too-large"


async def test_a_stream_can_end_between_frames_but_not_inside_one() -> None:
    assert await read(b"") is None
    for cut in (2, 10):
        with pytest.raises(ProtocolError, match="ended inside a frame"):
            await read(pack(Cancel(1))[:cut])


@pytest.mark.parametrize("begun", [b"\x00", b"\x00\x00\x00\x05", b"\x00\x00\x00\x05abc"])
async def test_a_frame_that_is_never_sent_whole_is_given_up(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "REST_S", 0.05)
    reader = asyncio.StreamReader()
    reader.feed_data(begun)
    with pytest.raises(ProtocolError) as caught:
        await framing.read_frame(reader)
    assert caught.value.code == "incomplete"


def test_a_text_that_fits_is_kept_whole() -> None:
    assert left_edge(100, 100, 25) == 0
    assert left_edge(0, 0, 25) == 0


def test_a_text_that_grows_moves_its_edge_once_a_stride() -> None:
    assert {left_edge(length, 100, 25) for length in range(101, 126)} == {25}
    assert left_edge(126, 100, 25) == 50


def test_a_stride_below_one_counts_as_one() -> None:
    assert left_edge(103, 100, 0) == 3


@given(st.integers(0, 10_000), st.integers(0, 1000), st.integers(1, 500))
def test_the_text_fits_and_at_most_a_stride_of_room_stays_free(length: int, room: int, stride: int) -> None:
    edge = left_edge(length, room, stride)
    assert length - edge <= room
    assert edge == 0 or length - edge > room - stride
    assert edge % stride == 0
