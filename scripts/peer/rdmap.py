# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""RDMAP on one stream: RFC 5040, and RFC 7306 if it is to be spoken. Messages in both directions,
memory, Terminate."""

import collections
import struct
import time

from peer import atomic, ddp, mpa

(WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INVALIDATE, SEND_SOLICITED,
 SEND_SOLICITED_INVALIDATE, TERMINATE) = range(8)
# RFC 7306 figure 2
IMMEDIATE, IMMEDIATE_SOLICITED, ATOMIC_REQUEST, ATOMIC_RESPONSE = range(8, 12)
SENDS = (SEND, SEND_INVALIDATE, SEND_SOLICITED, SEND_SOLICITED_INVALIDATE)
QUEUES = {READ_REQUEST: 1, TERMINATE: 2, **dict.fromkeys(SENDS, 0),
          IMMEDIATE: 0, IMMEDIATE_SOLICITED: 0, ATOMIC_REQUEST: 1, ATOMIC_RESPONSE: 3}
TAGGED_OPCODES = (WRITE, READ_RESPONSE)
ANNOUNCE_TO = int.from_bytes(b"kiwarp\0\1", "big")    # Documentation/large-fpdus.rst

ReadRequest = collections.namedtuple("ReadRequest", "sink_stag sink_to size src_stag src_to")
_READ = struct.Struct(">IQIIQ")


class RdmapError(Exception):
    """The other end has violated RFC 5040 or RFC 5041."""


class Misplaced(RdmapError):
    """A segment that accesses other memory, or answers another Request, than it should. This can be
    the fault of a Request or Response that was changed on its way to the other end."""


class Terminated(Exception):
    """The other end has sent a Terminate; args[0] is the decoded one."""


def encode_read(request):
    return _READ.pack(*request)


def decode_read(octets):
    return _READ.unpack(octets)


def decode_terminate(payload, ulpdu=b""):
    """Decodes a Terminate (RFC 5040 4.8) to a dictionary; raises RdmapError if it is incomplete.
    ULPDU: the whole ULPDU that contains it."""
    if len(payload) < 4:
        raise RdmapError(f"Terminate of {len(payload)} octets")
    bits, rest = payload[2], payload[4:]
    term = {"layer": payload[0] >> 4, "etype": payload[0] & 0xf, "code": f"{payload[1]:02x}",
            "m": bool(bits & 0x80), "d": bool(bits & 0x40), "r": bool(bits & 0x20),
            "raw": payload.hex(), "ulpdu": ulpdu.hex()}
    if bits & 0x1f or payload[3]:
        raise RdmapError(f"Terminate with reserved bits: {payload.hex()}")
    if term["m"] or term["d"]:
        term["length"], = struct.unpack_from(">H", rest)
        rest = rest[2:]
    if term["d"]:
        size = ddp.head_size(rest)
        term["ddp"], rest = rest[:size].hex(), rest[size:]
    if term["r"]:
        term["read"], rest = rest[:_READ.size].hex(), rest[_READ.size:]
    if rest:
        raise RdmapError(f"Terminate with {len(rest)} octets too many")
    return term


def ends_own(seg):
    """Whether SEG is the last of a message that completes a work request when it was sent."""
    return seg.last and (seg.opcode == WRITE or seg.opcode in SENDS)


class Region:
    """Memory that the other end may access by STAG; the first octet has the tagged offset BASE."""

    def __init__(self, stag, base, size):
        self.stag, self.base, self.data = stag, base, bytearray(size)

    def slice(self, to, size):
        at = to - self.base
        if at < 0 or at + size > len(self.data):
            raise Misplaced(f"STag {self.stag:08x}: {size} octets at {to:x} are out of bounds")
        return slice(at, at + size)


class Connection:
    """A stream in full operation."""

    def __init__(self, stream, crc=True, tx_markers=False, rx_markers=False, version=1,
                 ulpdu=1444):
        self.stream, self.version = stream, version
        self.ulpdu = ulpdu
        self.tx = mpa.Writer(crc, tx_markers)
        self.rx = mpa.Reader(crc, rx_markers)
        self.msn = {0: 1, 1: 1, 2: 1, 3: 1}
        self.rx_msn = {0: 1, 1: 1, 2: 1, 3: 1}
        self.rx_mo = 0
        self.message = bytearray()
        self.sends = collections.deque()
        self.reads = collections.deque()
        self.regions = {}
        self.rtr = None             # the kind of the RTR that came
        self.expect_rtr = frozenset()
        self.spoken = False
        self.largest = 0            # ULPDU that came
        self.announced = False      # the first message that came says: large FPDUs are welcome
        self.whole = 0              # Sends and Writes that came, but for an RTR
        self.answer_reads = True
        self.asked = None           # the Read Request that came last
        # RFC 7306: whether it is spoken, what came, and the answers to requests of this end
        self.extended = False
        self.immediates = collections.deque()
        self.atomics = []
        self.originals = []

    # Sending

    def segment(self, opcode, **fields):
        """A segment with the DDP and RDMAP versions of this stream."""
        fields.setdefault("ddp_version", self.version)
        fields.setdefault("rdmap_version", self.version)
        fields.setdefault("tagged", opcode in TAGGED_OPCODES)
        fields.setdefault("qn", QUEUES.get(opcode, 0))
        return ddp.Segment(opcode, **fields)

    def untagged(self, opcode, payload=b"", stag=0):
        """The segments of a message; takes its MSN."""
        qn = QUEUES[opcode]
        msn, room, at = self.msn[qn], self.ulpdu - ddp.UNTAGGED_SIZE, 0
        self.msn[qn] += 1
        segments = []
        while True:
            part = payload[at:at + room]
            segments.append(self.segment(opcode, stag=stag, msn=msn, mo=at, payload=part,
                                         last=at + len(part) == len(payload)))
            at += len(part)
            if at == len(payload):
                return segments

    def tagged(self, opcode, stag, to, payload):
        room, at, segments = self.ulpdu - ddp.TAGGED_SIZE, 0, []
        while True:
            part = payload[at:at + room]
            segments.append(self.segment(opcode, stag=stag, to=to + at, payload=part,
                                         last=at + len(part) == len(payload)))
            at += len(part)
            if at == len(payload):
                return segments

    def encode(self, segments):
        return b"".join(self.tx.encode(seg.encode()) for seg in segments)

    def send(self, payload, opcode=SEND):
        self.stream.send(self.encode(self.untagged(opcode, payload)))

    def write(self, stag, to, payload):
        self.stream.send(self.encode(self.tagged(WRITE, stag, to, payload)))

    def read(self, request):
        """Sends a Read Request; receive() processes the Response."""
        self.reads.append([request, 0])
        self.stream.send(self.encode(self.untagged(READ_REQUEST, encode_read(request))))

    def immediate(self, data, solicited=False):
        opcode = IMMEDIATE_SOLICITED if solicited else IMMEDIATE
        self.stream.send(self.encode(self.untagged(opcode, data)))

    def ask(self, request):
        """The segments of an Atomic Request, whose Response receive() processes."""
        self.reads.append([request, 0])
        return self.untagged(ATOMIC_REQUEST, request.encode())

    def operate(self, request):
        self.stream.send(self.encode(self.ask(request)))

    def answer(self, request, original):
        """The segments of the Response to an Atomic Request of the other end."""
        return self.untagged(ATOMIC_RESPONSE, atomic.Response(request.id, original).encode())

    def announce(self):
        """Says that large FPDUs are welcome."""
        self.write(0, ANNOUNCE_TO, b"")

    def send_rtr(self, kind, announce=False):
        """RFC 6581 9.2: the first FPDU, without payload."""
        if kind == "send":
            self.send(b"")
        elif kind == "write" and announce:
            self.announce()
        elif kind == "write":
            self.write(0, 0, b"")
        else:
            self.read(ReadRequest(0, 0, 0, 0, 0))

    # Receiving

    def receive(self):
        """Waits for an FPDU and processes it; returns its Segment. Raises EOFError at the end of
        the stream."""
        while True:
            ulpdu = self.rx.next()
            if ulpdu is not None:
                self.largest = max(self.largest, len(ulpdu))
                return self._dispatch(ddp.decode(ulpdu))
            data = self.stream.receive()
            if not data:
                raise EOFError("inside of an FPDU" if self.rx.buf else "")
            self.rx.feed(data)

    def _dispatch(self, seg):
        if (seg.ddp_version, seg.rdmap_version) != (self.version, self.version):
            raise RdmapError(f"version {seg.ddp_version}/{seg.rdmap_version}")
        last = ATOMIC_RESPONSE if self.extended else TERMINATE
        if seg.opcode > last or seg.tagged != (seg.opcode in TAGGED_OPCODES):
            raise RdmapError(f"opcode {seg.opcode}, tagged: {seg.tagged}")
        if not seg.tagged:
            self._check_untagged(seg)
        if seg.opcode == TERMINATE:
            raise Terminated(decode_terminate(seg.payload, seg.encode()))
        first, self.spoken = not self.spoken, True
        if first:
            self.announced = seg.opcode == WRITE and not seg.payload and seg.to == ANNOUNCE_TO
        if first and self.expect_rtr:
            self._take_rtr(seg)
        elif not first or not self.announced:
            self.whole += ends_own(seg)
            if seg.opcode in SENDS:
                self._take_send(seg)
        take = {WRITE: self._take_write, READ_REQUEST: self._take_read,
                READ_RESPONSE: self._take_response, IMMEDIATE: self._take_immediate,
                IMMEDIATE_SOLICITED: self._take_immediate, ATOMIC_REQUEST: self._take_atomic,
                ATOMIC_RESPONSE: self._take_original}.get(seg.opcode)
        if take:
            take(seg)
        return seg

    def _check_untagged(self, seg):
        if seg.qn != QUEUES[seg.opcode]:
            raise RdmapError(f"opcode {seg.opcode} on queue {seg.qn}")
        mo = self.rx_mo if seg.qn == 0 else 0
        if (seg.msn, seg.mo) != (self.rx_msn[seg.qn], mo):
            raise RdmapError(f"queue {seg.qn}: MSN {seg.msn} MO {seg.mo}, "
                             f"not {self.rx_msn[seg.qn]} {mo}")
        if seg.qn == 0:
            self.rx_mo = 0 if seg.last else mo + len(seg.payload)
        if seg.last:
            self.rx_msn[seg.qn] += 1
        if seg.stag and seg.opcode not in (SEND_INVALIDATE, SEND_SOLICITED_INVALIDATE):
            raise RdmapError("an STag where none belongs")

    def _take_rtr(self, seg):
        kinds = {SEND: "send", WRITE: "write", READ_REQUEST: "read"}
        self.rtr = kinds.get(seg.opcode)
        size = _READ.unpack(seg.payload)[2] if self.rtr == "read" else len(seg.payload)
        if self.rtr not in self.expect_rtr or size or not seg.last:
            raise RdmapError(f"not an RTR that was agreed on: opcode {seg.opcode}, {size} octets")

    def _take_send(self, seg):
        self.message += seg.payload
        if seg.last:
            self.sends.append(bytes(self.message))
            self.message.clear()

    def _region(self, stag):
        if stag not in self.regions:
            raise Misplaced(f"STag {stag:08x} is not known")
        return self.regions[stag]

    def _take_write(self, seg):
        if seg.payload:
            region = self._region(seg.stag)
            region.data[region.slice(seg.to, len(seg.payload))] = seg.payload

    def _take_read(self, seg):
        request = ReadRequest(*_READ.unpack(seg.payload))
        data = b""
        if request.size:
            region = self._region(request.src_stag)
            data = bytes(region.data[region.slice(request.src_to, request.size)])
        self.asked = request
        if self.answer_reads:
            self.stream.send(self.encode(self.tagged(READ_RESPONSE, request.sink_stag,
                                                     request.sink_to, data)))

    def _take_immediate(self, seg):
        """RFC 7306 6.3"""
        if len(seg.payload) != atomic.IMMEDIATE_SIZE or not seg.last:
            raise RdmapError(f"Immediate Data of {len(seg.payload)} octets")
        self.immediates.append((seg.payload, seg.opcode == IMMEDIATE_SOLICITED))

    def _take_atomic(self, seg):
        """RFC 7306 5.2.1"""
        if not seg.last:
            raise RdmapError("an Atomic Request in two segments")
        request = atomic.Request.decode(seg.payload)
        self.atomics.append(request)
        if self.answer_reads:
            region = self._region(request.stag)
            where = region.slice(request.to, atomic.WORD)
            old = int.from_bytes(region.data[where], "little")
            region.data[where] = request.result(old).to_bytes(atomic.WORD, "little")
            self.stream.send(self.encode(self.answer(request, old)))

    def _take_original(self, seg):
        """RFC 7306 5.2.2"""
        if not seg.last:
            raise RdmapError("an Atomic Response in two segments")
        response = atomic.Response.decode(seg.payload)
        if not self.reads or not isinstance(self.reads[0][0], atomic.Request):
            raise Misplaced("an Atomic Response that nobody asked for")
        request, _ = self.reads.popleft()
        if request.id != response.id:
            raise Misplaced(f"Atomic Response {response.id}, not {request.id}")
        self.originals.append(response.original)

    def _take_response(self, seg):
        if not self.reads or isinstance(self.reads[0][0], atomic.Request):
            raise Misplaced("a Read Response that nobody asked for")
        request, got = self.reads[0]
        if got + len(seg.payload) > request.size or (
                request.size and (seg.stag, seg.to) != (request.sink_stag, request.sink_to + got)):
            raise Misplaced(f"Read Response {seg} for {request}, {got} octets there")
        if seg.payload:
            region = self._region(seg.stag)
            region.data[region.slice(seg.to, len(seg.payload))] = seg.payload
        self.reads[0][1] += len(seg.payload)
        if seg.last:
            if self.reads[0][1] != request.size:
                raise Misplaced("a short Read Response")
            self.reads.popleft()

    def wait(self, condition, seconds):
        """Receives until CONDITION() is true."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("the other end does not go on")
            self.receive()
