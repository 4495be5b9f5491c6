# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Both roles of MPA startup (RFC 5044 7.1, RFC 6581), and faults during startup."""

import time

from peer import mpa, rdmap

RTR_PREFERENCE = ("write", "read", "send")
DRIBBLE = {"dribble": 0.005, "dribble-slow": 0.25}


class Rejected(Exception):
    """The Reply has R; args[0] is the Frame."""


class Stopped(Exception):
    """A fault was committed. CONN, if any, is the connection on which to observe the reaction. Without
    one, nothing may come but the end of the stream, or before it one frame with the key ANSWER."""

    def __init__(self, what, conn=None, answer=None):
        super().__init__(what)
        self.conn, self.answer = conn, answer


def _flip_key(frame):
    octets = bytearray(frame.encode())
    octets[9] ^= 0x20
    return bytes(octets)


def _other_key(frame):
    frame.key = mpa.KEY_REPLY if frame.key == mpa.KEY_REQUEST else mpa.KEY_REQUEST
    return frame.encode()


def _with(**fields):
    def change(frame):
        for name, value in fields.items():
            setattr(frame, name, value)
        return frame.encode()
    return change


def _long(length):
    def change(frame):
        frame.ird, frame.pdata = None, bytes(length)
        return frame.encode(pd_length=length)
    return change


def _short_enhanced(frame):
    frame.rev, frame.ird, frame.pdata, frame.reserved = 2, None, bytes(2), mpa.S
    return frame.encode()


# Faults in a complete frame; the startup continues after it.
FRAME = {
    "bad-key": _flip_key,
    "wrong-role": _other_key,
    "rev-3": _with(rev=3),
    "rev-255": _with(rev=255),
    "pd-513": _long(513),
    "pd-65535": _long(65535),
    "short-s": _short_enhanced,
    "r-in-request": _with(reject=True),
    "reserved": _with(reserved=mpa.RESERVED),
    "no-s": _with(ird=None, p2p=False, rtr=frozenset()),
    "no-a": _with(p2p=False, rtr=frozenset()),
    "no-rtr": _with(rtr=frozenset()),
    "ord-huge": _with(ord=0x3ffe),
    "rev-0-reply": _with(rev=0, ird=None),
}

# Points at which the stream ends or stalls: before, inside and after the frame, and after the other
# end's frame. The faults are named fin-POINT, reset-POINT and stall-POINT.
POINTS = ("before", "in-frame", "in-pdata", "after", "after-reply")
ENDS = {f"{how}-{point}": (how, point)
        for how in ("fin", "reset", "stall") for point in POINTS}
OTHERS = ("extra", "rtr-crc", "rtr-payload", "rtr-invalidate", "rtr-send", *DRIBBLE)
NAMES = (*FRAME, *ENDS, *OTHERS)


def _end(stream, fault, point, conn=None, answer=None):
    """Ends or stalls the stream if the fault does so at POINT. CONN, ANSWER: see Stopped."""
    how, where = ENDS.get(fault, (None, None))
    if where != point:
        return
    if how == "fin":
        stream.finish()
    elif how == "reset":
        stream.reset()
    raise Stopped(fault, conn, answer)


def _send_frame(stream, frame, fault, log, more=b""):
    log("sent", **frame.describe())
    octets = FRAME[fault](frame) if fault in FRAME else frame.encode()
    _end(stream, fault, "before")
    for point, size in (("in-frame", 19), ("in-pdata", len(octets) - 1)):
        if ENDS.get(fault, ("", ""))[1] == point:
            stream.send(octets[:size])
            _end(stream, fault, point)
    if fault in DRIBBLE:
        for at in range(len(octets)):
            stream.send(octets[at:at + 1])
            time.sleep(DRIBBLE[fault])
    else:
        stream.send(octets + more)


def _check_key(frame, key):
    if frame.key != key:
        raise mpa.MpaError(f"key {frame.key!r}")


def _receive_frame(stream, key, log):
    frame, length = mpa.decode_head(stream.exactly(mpa.HEAD.size))
    mpa.decode_body(frame, stream.exactly(length, begun=True) if length else b"")
    log("received", **frame.describe())
    _check_key(frame, key)
    return frame


def check_stray(octets, answer):
    """Checks what has come without a connection: nothing, or all of one frame with the key ANSWER."""
    if not octets:
        return
    if not answer or len(octets) < mpa.HEAD.size:
        raise mpa.MpaError(f"{len(octets)} octets came that nobody was to send: {octets[:64].hex()}")
    frame, length = mpa.decode_head(octets[:mpa.HEAD.size])
    _check_key(frame, answer)
    if len(octets) != mpa.HEAD.size + length:
        raise mpa.MpaError(f"{len(octets)} octets came, not a frame of {mpa.HEAD.size + length}")
    mpa.decode_body(frame, octets[mpa.HEAD.size:])


def _check_markers(opt, asked):
    """Checks that the other end asks for markers as --markers says."""
    wanted = opt.markers in ("tx", "both")
    if opt.strict_markers and opt.rev and asked != wanted:
        raise mpa.MpaError(f"M is {asked}, not {wanted}")


def _connection(stream, opt, own, other, log, **agreed):
    # RFC 5044 C.2: with revision 0, markers and CRCs are always used
    old = opt.rev == 0
    options = {"crc": old or own.crc or other.crc, "tx_markers": old or other.markers,
               "rx_markers": old or own.markers, "version": 0 if old else 1}
    log("negotiated", rev=min(own.rev, other.rev), **options, **agreed)
    return rdmap.Connection(stream, ulpdu=opt.fpdu, **options)


def _asks_for_markers(opt):
    return opt.rev == 0 or opt.markers in ("rx", "both")


def _request(opt):
    frame = mpa.Frame(mpa.KEY_REQUEST, rev=opt.rev, markers=_asks_for_markers(opt),
                      crc=opt.crc, pdata=opt.pdata)
    if opt.rev >= 2 and opt.enhanced:
        frame.ird, frame.ord = opt.ird, opt.ord
        frame.p2p, frame.rtr = opt.p2p, frozenset(opt.rtr) if opt.p2p else frozenset()
    return frame


def _check_reply(request, reply):
    if reply.rev > request.rev:
        raise mpa.MpaError(f"revision {reply.rev} in answer to {request.rev}")
    if reply.enhanced != request.enhanced:
        raise mpa.MpaError("only one of Request and Reply has S")
    if reply.p2p != request.p2p or not reply.rtr <= request.rtr:
        raise mpa.MpaError(f"A {reply.p2p}, RTR {sorted(reply.rtr)}")
    if request.p2p and not reply.rtr:
        raise mpa.MpaError("no kind of RTR is left")
    # RFC 6581 9.1: a depth of 0x3fff is answered with 0x3fff
    for asked, told in ((request.ord, reply.ird), (request.ird, reply.ord)):
        if request.enhanced and asked == mpa.DEPTH and told != mpa.DEPTH:
            raise mpa.MpaError(f"depth {told} in answer to {asked:#x}")


def _send_rtr(conn, kind, fault, announce):
    if fault == "rtr-crc":
        octets = conn.encode(conn.untagged(rdmap.SEND))
        conn.stream.send(octets[:-1] + bytes([octets[-1] ^ 1]))
        raise Stopped(fault, conn)
    if fault == "rtr-payload":
        conn.stream.send(conn.encode(conn.tagged(rdmap.WRITE, 0x12345600, 0, bytes(16))))
        raise Stopped(fault, conn)
    if fault == "rtr-invalidate":
        # Empty like an RTR, but not an RTR, because it has an STag to invalidate
        conn.stream.send(conn.encode(conn.untagged(rdmap.SEND_INVALIDATE, stag=0x12345600)))
        raise Stopped(fault, conn)
    if fault == "rtr-send":
        # Regardless of the kind that was negotiated
        conn.send(b"")
        raise Stopped(fault, conn)
    conn.send_rtr(kind, announce)


def initiator(stream, opt, log, early=None):
    """The initiator's startup on STREAM. EARLY(conn) returns octets to send with the Request."""
    request = _request(opt)
    more = b""
    if opt.fault == "extra":
        # EARLY sends no markers, and CRCs. The other end may want no more than that.
        conn = rdmap.Connection(stream, crc=True, rx_markers=request.markers, ulpdu=opt.fpdu)
        more = early(conn)
    _send_frame(stream, request, opt.fault, log, more)
    _end(stream, opt.fault, "after", answer=mpa.KEY_REPLY)
    reply = _receive_frame(stream, mpa.KEY_REPLY, log)
    if reply.reject:
        raise Rejected(reply)
    _check_reply(request, reply)
    _check_markers(opt, reply.markers)
    _end(stream, opt.fault, "after-reply")
    if more:
        return conn
    both = request.rtr & reply.rtr
    kind = next((k for k in opt.prefer or RTR_PREFERENCE if k in both), None)
    conn = _connection(stream, opt, request, reply, log, p2p=reply.p2p, rtr=kind,
                       ird=reply.ord, ord=reply.ird)
    if kind:
        _send_rtr(conn, kind, opt.fault, opt.announce)
    return conn


def _reply(opt, request):
    reply = mpa.Frame(mpa.KEY_REPLY, rev=min(opt.rev, request.rev),
                      markers=_asks_for_markers(opt), crc=opt.crc or request.crc,
                      pdata=opt.pdata, reject=opt.reject)
    if request.enhanced and reply.rev >= 2:
        reply.ird = max(opt.ird, request.ord)
        reply.ord = mpa.DEPTH if request.ird == mpa.DEPTH else min(opt.ord, request.ird)
        reply.p2p = request.p2p
        reply.rtr = request.rtr & frozenset(opt.rtr)
    return reply


def _check_request(opt, request):
    if request.reject:
        raise mpa.MpaError("R in a Request")
    for name in ("p2p", "crc", "rev"):
        wanted = getattr(opt, "want_" + name)
        if wanted is not None and getattr(request, name) != wanted:
            raise mpa.MpaError(f"{name} {getattr(request, name)} in the Request, not {wanted}")


def responder(stream, opt, log):
    """The responder's startup on STREAM: accepts or rejects the Request."""
    request = _receive_frame(stream, mpa.KEY_REQUEST, log)
    _check_request(opt, request)
    _check_markers(opt, request.markers)
    reply = _reply(opt, request)
    _send_frame(stream, reply, opt.fault, log)
    if reply.reject:
        stream.finish()
        raise Stopped("rejected")
    conn = _connection(stream, opt, reply, request, log, p2p=reply.p2p, rtr=sorted(reply.rtr),
                       ird=reply.ird, ord=reply.ord)
    # The initiator may go on: its first FPDU is due.
    for point in ("after", "after-reply"):
        _end(stream, opt.fault, point, conn)
    conn.expect_rtr = reply.rtr if reply.p2p else frozenset()
    return conn
