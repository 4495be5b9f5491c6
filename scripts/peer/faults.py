# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Protocol faults after startup, by name.

A fault is a function of a connection and a target, which is memory of the other end. It
returns the faulty octets, together with what has to precede them, and the ULPDUs that a
Terminate may report as the cause. inject() sends the octets in one piece.
"""

import collections
import dataclasses
import struct

from peer import ddp, mpa, rdmap

Target = collections.namedtuple("Target", "to stag size")

INFO = 16                       # octets that rping has receives for
NO_STAG = 0x5eed1e00
FLOOD = 24

FIRST, ASKED, TARGET = {}, {}, {}       # by what they need: nothing, a Read, an rkey


def fault(where, *names):
    """Decorator: registers the function in WHERE, for each of NAMES. It is called with the name."""
    def note(function):
        for name in names:
            where[name] = (function, name)
        return function
    return note


def number(name):
    return int(name.rsplit("-", 1)[1], 0)


# Each fault returns (octets, ULPDUs that a Terminate may blame).


def one(conn, seg, **wrong):
    ulpdu = seg.encode()
    return conn.tx.encode(ulpdu, **wrong), [ulpdu]


def send(conn, **fields):
    fields.setdefault("payload", bytes(INFO))
    fields.setdefault("msn", conn.msn[0])
    return conn.segment(rdmap.SEND, **fields)


# --- MPA ---------------------------------------------------------------------


FLIPS = {"crc-header": (12, 0x01), "crc-payload": (-10, 0x80), "crc-pad": (-5, 0x01),
         "crc-field": (-1, 0x40)}


@fault(FIRST, *FLIPS)
def bad_crc(conn, _, name):
    return one(conn, send(conn, payload=bytes(INFO - 1)), flip=FLIPS[name])


@fault(FIRST, "length-0", "length-1", "length-13", "length-64769", "length-65535")
def bad_length(conn, _, name):
    return one(conn, send(conn), length=number(name))


@fault(FIRST, "length-17")
def short_header(conn, _, name):
    """An untagged segment that is only long enough for a tagged header."""
    ulpdu = send(conn).encode()[:number(name)]
    return conn.tx.encode(ulpdu), [ulpdu]


@fault(FIRST, "marker-pointer")
def marker_pointer(conn, _, __):
    return one(conn, send(conn, payload=bytes(600)),
               marker=lambda ptr: struct.pack(">HH", 0, ptr + 4 if ptr else 0))


@fault(FIRST, "marker-zero")
def marker_zero(conn, _, __):
    """A marker inside an FPDU that points to itself, as if the FPDU began there."""
    return one(conn, send(conn, payload=bytes(600)), marker=lambda _: bytes(4))


@fault(FIRST, "marker-between")
def marker_between(conn, _, __):
    """A marker between two FPDUs that is not 0."""
    return one(conn, send(conn), marker=lambda ptr: struct.pack(">HH", 0, ptr or 8))


@fault(FIRST, "marker-reserved")
def marker_reserved(conn, _, __):
    return one(conn, send(conn), marker=lambda ptr: struct.pack(">HH", 0x100, ptr))


@fault(FIRST, "marker-position")
def marker_position(conn, _, __):
    """A marker four octets too early."""
    conn.tx.pos += 4
    return one(conn, send(conn, payload=bytes(600)))


@fault(FIRST, "marker-none")
def marker_none(conn, _, __):
    conn.tx.markers = False
    return one(conn, send(conn, payload=bytes(600)))


# --- the stream --------------------------------------------------------------


@fault(FIRST, "fin-idle", "reset-idle")
def end_idle(_, __, ___):
    return b"", []


@fault(FIRST, "fin-in-fpdu", "reset-in-fpdu", "fin-in-message", "reset-in-message")
def end_inside(conn, _, name):
    octets, _ = one(conn, send(conn, payload=bytes(8), last=False))
    return octets[:-9] if name.endswith("fpdu") else octets, []


# --- DDP ---------------------------------------------------------------------


@fault(FIRST, "ddp-version-0", "ddp-version-1", "ddp-version-2", "ddp-version-3")
def ddp_version(conn, _, name):
    return one(conn, send(conn, ddp_version=number(name)))


@fault(FIRST, "ddp-version-tagged-0", "ddp-version-tagged-2")
def ddp_version_tagged(conn, _, name):
    return one(conn, conn.segment(rdmap.WRITE, ddp_version=number(name), payload=bytes(8)))


@fault(FIRST, "qn-1", "qn-2", "qn-3", "qn-0xffffffff")
def queue(conn, _, name):
    return one(conn, send(conn, qn=number(name)))


@fault(FIRST, "msn-skip", "msn-zero")
def msn(conn, _, name):
    return one(conn, send(conn, msn=conn.msn[0] + 1 if name == "msn-skip" else 0))


@fault(FIRST, "read-msn")
def read_msn(conn, _, __):
    return one(conn, conn.segment(rdmap.READ_REQUEST, msn=conn.msn[1] + 3,
                                  payload=rdmap.encode_read((1, 0, 0, 0, 0))))


@fault(FIRST, "msn-repeat")
def msn_repeat(conn, _, __):
    first, _ = one(conn, send(conn))
    again, blame = one(conn, send(conn))
    return first + again, blame


@fault(FIRST, "mo-first")
def mo_first(conn, _, __):
    return one(conn, send(conn, mo=4, payload=bytes(8)))


@fault(FIRST, "mo-skip-12", "mo-overlap-4")
def mo(conn, _, name):
    first, _ = one(conn, send(conn, payload=bytes(8), last=False))
    second, blame = one(conn, send(conn, mo=number(name), payload=bytes(4)))
    return first + second, blame


@fault(FIRST, "too-long-17", "too-long-1000")
def too_long(conn, _, name):
    return one(conn, send(conn, payload=bytes(number(name))))


@fault(FIRST, "too-long-later")
def too_long_later(conn, _, __):
    first, _ = one(conn, send(conn, payload=bytes(INFO), last=False))
    second, blame = one(conn, send(conn, mo=INFO, payload=b"x"))
    return first + second, blame


@fault(FIRST, "between-write", "between-read", "between-send", "between-send-se")
def between(conn, _, name):
    """A message inside another one, whose last segment has not been sent yet."""
    begun = send(conn, payload=bytes(8), last=False)
    if name == "between-send":
        begun = conn.segment(rdmap.WRITE, last=False)
    inside = {"between-write": lambda: conn.segment(rdmap.WRITE),
              "between-read": lambda: _read(conn, 0, 0, 0),
              "between-send": lambda: send(conn),
              "between-send-se": lambda: conn.segment(rdmap.SEND_SOLICITED, msn=conn.msn[0],
                                                      mo=8, payload=bytes(8))}[name]()
    first, _ = one(conn, begun)
    second, blame = one(conn, inside)
    return first + second, blame


# Fields in which the last segment does not continue those before it
ON = {"on-mo": {"mo": 4}, "on-msn": {"msn": 9}, "on-qn": {"qn": 1}, "on-length": {"payload": bytes(12)},
      "on-opcode": {"opcode": rdmap.SEND_SOLICITED}, "on-version": {"ddp_version": 2},
      "on-rdmap-version": {"rdmap_version": 2}, "on-stag": {"stag": NO_STAG}, "on-to": {"to": 0},
      "on-response": {"opcode": rdmap.READ_RESPONSE}}


@fault(FIRST, "on-mo", "on-msn", "on-qn", "on-length", "on-opcode", "on-version",
       "on-rdmap-version", "on-end")
@fault(TARGET, "on-stag", "on-to", "on-response", "on-end-to")
def goes_on(conn, target, name):
    """Segments of the same size that continue a message. Only the last of them is wrong; with
    "end", it exceeds the memory."""
    def segment(i):
        if target:
            size = target.size // 4
            return conn.segment(rdmap.WRITE, last=False, stag=target.stag, payload=bytes(size),
                                to=target.to + i * size)
        return send(conn, last=False, mo=i * 4, payload=bytes(4))
    right = [segment(i) for i in range(4 if name.startswith("on-end") else 2)]
    wrong = dataclasses.replace(segment(len(right)), **ON.get(name, {}))
    first = b"".join(one(conn, seg)[0] for seg in right)
    last, blame = one(conn, wrong)
    return first + last, blame


@fault(FIRST, "no-buffer")
def no_buffer(conn, _, __):
    """More messages at once than rping has receives."""
    segments = [send(conn, msn=conn.msn[0] + n) for n in range(FLOOD)]
    return conn.encode(segments), [seg.encode() for seg in segments]


@fault(FIRST, "write-stag")
def write_stag(conn, _, __):
    return one(conn, conn.segment(rdmap.WRITE, stag=NO_STAG, to=0x1000, payload=bytes(64)))


@fault(FIRST, "first-of-two")
def first_of_two(conn, _, __):
    """Two different faults. The Terminate must blame the first one, RFC 5040 7.1 rule 4."""
    first = conn.segment(rdmap.WRITE, stag=NO_STAG, to=0x1000, payload=bytes(64))
    second = send(conn, ddp_version=2)
    return conn.encode([first, second]), [first.encode()]


def _at(target, name):
    """STag, tagged offset and size of an access that is wrong as the end of NAME says."""
    how = name.split("-", 1)[1]
    return {"key": (target.stag ^ 1, target.to, 8),
            "index": (target.stag ^ 0x100, target.to, 8),
            "after": (target.stag, target.to + target.size - 7, 8),
            "before": (target.stag, target.to - 1, 8),
            "far": (target.stag, target.to + (1 << 40), 8),
            "wrap": (target.stag, (1 << 64) - 4, 8),
            "here": (target.stag, target.to, 8),
            "sink": (target.stag, target.to, 8)}[how]


@fault(TARGET, "write-key", "write-index", "write-after", "write-before", "write-far",
       "write-wrap", "write-here")
@fault(ASKED, "write-sink")
def write(conn, target, name):
    """With "here", the address is valid, but the memory must not be written to. With "sink", it is
    the sink of a Read, which is exposed only to the Response."""
    stag, to, size = _at(target, name)
    return one(conn, conn.segment(rdmap.WRITE, stag=stag, to=to, payload=bytes(size)))


@fault(TARGET, "crc-write")
def crc_write(conn, target, _):
    """Right but for its CRC: nothing of it may be placed."""
    seg = conn.segment(rdmap.WRITE, stag=target.stag, to=target.to, payload=bytes(32))
    return one(conn, seg, flip=(-10, 0x80))


def _after_good_ones(conn, target, size, is_next=lambda: True, **wrong):
    """A Write of what the memory has already, in up to a dozen segments of SIZE octets. From the
    third on, those for which IS_NEXT() are WRONG."""
    octets, ulpdus = [], []
    for at in range(0, min(target.size, 12 * size) - size, size):
        segment = conn.segment(rdmap.WRITE, stag=target.stag, to=target.to + at,
                               payload=b"\xff" * size, last=False)
        ulpdus.append(segment.encode())
        octets.append(conn.tx.encode(ulpdus[-1], **(wrong if at >= 2 * size and is_next() else {})))
    return b"".join(octets), ulpdus[2:]


@fault(TARGET, "crc-later")
def crc_later(conn, target, _):
    """A bad CRC behind FPDUs of the same message. What it changes must not be placed."""
    return _after_good_ones(conn, target, 16, flip=(-10, 0x80))


@fault(TARGET, "marker-later")
def marker_later(conn, target, _):
    """The same with a wrong marker, in the middle of the payload."""
    return _after_good_ones(conn, target, 200, lambda: 40 <= -conn.tx.pos % mpa.INTERVAL < 180,
                            marker=lambda _: bytes(4))


# --- RDMAP -------------------------------------------------------------------


@fault(FIRST, "rdmap-version-0", "rdmap-version-2", "rdmap-version-3")
def rdmap_version(conn, _, name):
    return one(conn, send(conn, rdmap_version=number(name)))


@fault(FIRST, *(f"opcode-{n}" for n in range(8, 16)))
def opcode(conn, _, name):
    return one(conn, conn.segment(number(name), msn=conn.msn[0], payload=bytes(INFO)))


@fault(FIRST, "send-tagged")
def send_tagged(conn, _, __):
    return one(conn, send(conn, tagged=True))


@fault(FIRST, "write-untagged")
def write_untagged(conn, _, __):
    return one(conn, conn.segment(rdmap.WRITE, tagged=False, payload=bytes(8)))


def _read(conn, stag, to, size, msn_offset=0):
    request = rdmap.encode_read((NO_STAG, 0, size, stag, to))
    return conn.segment(rdmap.READ_REQUEST, msn=conn.msn[1] + msn_offset, payload=request)


@fault(FIRST, "read-stag")
def read_stag(conn, _, __):
    return one(conn, _read(conn, NO_STAG, 0x1000, 64))


@fault(TARGET, "read-key", "read-index", "read-after", "read-before", "read-far", "read-wrap",
       "read-here")
@fault(ASKED, "read-sink")
def read(conn, target, name):
    stag, to, size = _at(target, name)
    return one(conn, _read(conn, stag, to, size))


@fault(TARGET, "read-gone")
def read_gone(conn, target, _):
    """A valid Read whose memory becomes invalid while the Response is being sent."""
    return one(conn, _read(conn, target.stag, target.to, target.size))


@fault(TARGET, "read-flood")
def read_flood(conn, target, _):
    """More outstanding Reads than were negotiated."""
    segments = [_read(conn, target.stag, target.to, target.size, n) for n in range(FLOOD)]
    return conn.encode(segments), [seg.encode() for seg in segments]


@fault(FIRST, "read-request-27", "read-request-29")
def read_request_size(conn, _, name):
    return one(conn, conn.segment(rdmap.READ_REQUEST, msn=conn.msn[1],
                                  payload=bytes(number(name))))


@fault(FIRST, "response-unasked")
def response_unasked(conn, _, __):
    return one(conn, conn.segment(rdmap.READ_RESPONSE, stag=NO_STAG, payload=bytes(8)))


@fault(ASKED, "response-short", "response-long", "response-stag", "response-to",
       "response-empty", "response-empty-stag")
def response(conn, target, name):
    size = {"response-short": target.size - 1, "response-long": target.size + 1,
            "response-empty": 0, "response-empty-stag": 0}.get(name, target.size)
    return one(conn, conn.segment(rdmap.READ_RESPONSE,
                                  stag=target.stag ^ (1 if name.endswith("-stag") else 0),
                                  to=target.to + (1 if name == "response-to" else 0),
                                  payload=bytes(size)))


@fault(ASKED, "response-twice")
def response_twice(conn, target, _):
    seg = conn.segment(rdmap.READ_RESPONSE, stag=target.stag, to=target.to,
                       payload=bytes(target.size))
    first, _ = one(conn, seg)
    second, blame = one(conn, seg)
    return first + second, blame


@fault(FIRST, "invalidate-stag")
@fault(TARGET, "invalidate-rkey")
def invalidate(conn, target, _):
    stag = target.stag if target else NO_STAG
    return one(conn, conn.segment(rdmap.SEND_INVALIDATE, stag=stag, msn=conn.msn[0],
                                  payload=bytes(INFO)))


@fault(FIRST, "terminate-3")
def terminate_short(conn, _, __):
    return one(conn, conn.segment(rdmap.TERMINATE, payload=bytes(3)))


@fault(FIRST, "terminate")
def terminate(conn, _, __):
    """Not a fault: a Terminate, which must be answered by closing the stream and nothing else."""
    return one(conn, conn.segment(rdmap.TERMINATE, payload=bytes((0x12, 2, 0, 0))))


NAMES = {**FIRST, **ASKED, **TARGET}


def inject(conn, name, target, opt):
    """Commits the fault NAME; records in OPT which ULPDUs can be blamed for it."""
    function, _ = NAMES[name]
    octets, opt.blame = function(conn, target, name)
    if opt.finish:
        conn.stream.cork()
    conn.stream.send(octets)
    if opt.finish or name.startswith("fin-"):
        conn.stream.finish()
    elif name.startswith("reset-"):
        conn.stream.reset()


def _brought_up(request, done):
    """A Read Request, updated for DONE octets that have been answered, RFC 5040 4.8."""
    sink_stag, sink_to, size, src_stag, src_to = rdmap.decode_read(request)
    return rdmap.encode_read((sink_stag, sink_to + done, size - done, src_stag, src_to + done))


def _terminate(code, ulpdu, done):
    """RFC 5040 4.8 and figure 10: the payload of the Terminate CODE, which blames ULPDU."""
    layer, etype, value = code
    if layer == 2 or etype == 0:
        return bytes((layer << 4 | etype, value, 0, 0))
    size = ddp.head_size(ulpdu)
    is_read = not ulpdu[0] & ddp.TAGGED and ulpdu[1] & 0xf == rdmap.READ_REQUEST
    # Layer 0, type 1: only a Read Request has an RDMAP header, which is included
    with_read = is_read and (layer, etype) == (0, 1)
    control = bytes((layer << 4 | etype, value, 0xe0 if with_read else 0xc0, 0))
    headers = struct.pack(">H", len(ulpdu)) + ulpdu[:size]
    return control + headers + (_brought_up(ulpdu[size:size + 28], done) if with_read else b"")


def contradiction(conn, term, code, blame, done=0):
    """Compares the ULPDU of a Terminate, bit for bit, with what RFC 5040 4.8 requires for CODE and
    one of the ULPDUs to BLAME. Returns the difference, or None. DONE: octets of the Response that had
    arrived, if the Terminate is about a Read Request."""
    payloads = {_terminate(code, ulpdu, done) for ulpdu in blame or [b""]}
    wanted = {conn.segment(rdmap.TERMINATE, payload=p).encode().hex() for p in payloads}
    if term["ulpdu"] in wanted:
        return None
    return f"{term['ulpdu']}, not {' or '.join(sorted(wanted))}"
