# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""MPA: RFC 5044 and RFC 6581. Startup frames, and FPDUs in both directions."""

import struct
from dataclasses import dataclass

from peer import crc32c

KEY_REQUEST = b"MPA ID Req Frame"
KEY_REPLY = b"MPA ID Rep Frame"
HEAD = struct.Struct(">16sBBH")
PD_MAX = 512

M, C, R, S = 0x80, 0x40, 0x20, 0x10         # RFC 5044 7.1.1, RFC 6581 6
RESERVED = 0x0f

A, B = 0x8000, 0x4000                       # RFC 6581 9, with IRD
W, D = 0x8000, 0x4000                       # with ORD; the RFC's name of W is C
DEPTH = 0x3fff
RTR_BITS = {"send": (B, 0), "write": (0, W), "read": (0, D)}

INTERVAL = 512                              # of markers, RFC 5044 4.3
MARKER = struct.Struct(">HH")


class MpaError(Exception):
    """The received octets violate RFC 5044."""


@dataclass
class Frame:
    """A Request or Reply. RTR is a set of names of RTR_BITS. Without S, IRD is None."""

    key: bytes = KEY_REQUEST
    rev: int = 2
    markers: bool = False
    crc: bool = True
    reject: bool = False
    ird: int = None
    ord: int = None
    p2p: bool = False
    rtr: frozenset = frozenset()
    pdata: bytes = b""
    reserved: int = 0

    @property
    def enhanced(self):
        return self.ird is not None

    def flags(self):
        return ((M if self.markers else 0) | (C if self.crc else 0) |
                (R if self.reject else 0) | (S if self.enhanced else 0) | self.reserved)

    def encode(self, pd_length=None):
        """The octets of the frame, with PD_LENGTH instead of the correct length if it is given."""
        body = self.pdata
        if self.enhanced:
            ird = self.ird | (A if self.p2p else 0)
            ord_ = self.ord
            for kind in self.rtr:
                ird |= RTR_BITS[kind][0]
                ord_ |= RTR_BITS[kind][1]
            body = struct.pack(">HH", ird, ord_) + body
        length = len(body) if pd_length is None else pd_length
        return HEAD.pack(self.key, self.flags(), self.rev, length) + body

    def describe(self):
        return {"key": self.key.decode("latin-1"), "rev": self.rev, "markers": self.markers,
                "crc": self.crc, "reject": self.reject, "enhanced": self.enhanced,
                "ird": self.ird, "ord": self.ord, "p2p": self.p2p, "rtr": sorted(self.rtr),
                "pdata": self.pdata.hex()}


def decode_head(head):
    """Decodes the fixed part of 20 octets: returns a Frame and PD_Length."""
    key, flags, rev, length = HEAD.unpack(head)
    if key not in (KEY_REQUEST, KEY_REPLY):
        raise MpaError(f"key {key!r}")
    if length > PD_MAX:
        raise MpaError(f"PD_Length {length}")
    if flags & RESERVED or (flags & S and rev < 2):
        raise MpaError(f"flags 0x{flags:02x} with revision {rev}")
    frame = Frame(key=key, rev=rev, markers=bool(flags & M), crc=bool(flags & C),
                  reject=bool(flags & R))
    if flags & S:
        if length < 4:
            raise MpaError(f"PD_Length {length} with S")
        frame.ird = 0
    return frame, length


def decode_body(frame, body):
    """Completes FRAME with the octets after its fixed part."""
    if frame.enhanced:
        ird, ord_ = struct.unpack_from(">HH", body)
        frame.ird, frame.ord, frame.p2p = ird & DEPTH, ord_ & DEPTH, bool(ird & A)
        frame.rtr = frozenset(k for k, (b, w) in RTR_BITS.items() if ird & b or ord_ & w)
        if frame.rtr and not frame.p2p:
            raise MpaError("a kind of RTR without A")
        body = body[4:]
    frame.pdata = bytes(body)
    return frame


def layout(pos, size, markers):
    """The layout of SIZE octets of an FPDU in the stream from POS on: a sequence of True, for a
    marker, and of numbers of octets of the FPDU. A marker precedes the octet at its position, so
    none follows the last octet."""
    if not markers:
        return [size]
    parts = []
    while size:
        if pos % INTERVAL == 0:
            parts.append(True)
            pos += MARKER.size
        run = min(size, INTERVAL - pos % INTERVAL)
        parts.append(run)
        pos += run
        size -= run
    return parts


def padded(ulpdu_len):
    """Length of length field, ULPDU and PAD together, in octets."""
    return (2 + ulpdu_len + 3) & ~3


class Writer:
    """Encodes FPDUs to send. Its stream begins with full operation."""

    def __init__(self, crc=True, markers=False):
        self.crc, self.markers, self.pos = crc, markers, 0

    def encode(self, ulpdu, length=None, flip=None, marker=None):
        """The FPDU of ULPDU. Deliberate errors: LENGTH replaces the length; FLIP is (octet of the
        body, counted from the end if negative; mask) of bits that are inverted after the CRC was
        computed; MARKER(ptr) returns the octets that replace a marker."""
        body = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
        body += bytes(-len(body) % 4)
        out, used, begin = bytearray(), 0, self.pos
        for part in layout(begin, len(body) + 4, self.markers):
            if part is True:
                # The pointer counts from the length field, not from a marker before it
                ptr = len(out) - (4 if begin % INTERVAL == 0 and out else 0)
                out += marker(ptr) if marker else MARKER.pack(0, ptr)
            else:
                out += body[used:used + part]
                used += part
        out += crc32c.field(out) if self.crc else bytes(4)
        self.pos += len(out)
        if flip:
            out[flip[0]] ^= flip[1]
        return bytes(out)


class Reader:
    """Decodes received FPDUs: feed() it octets, then take ULPDUs until next() returns None."""

    def __init__(self, crc=True, markers=False):
        self.crc, self.markers, self.pos, self.count = crc, markers, 0, 0
        self.buf = bytearray()

    def feed(self, data):
        self.buf += data

    def next(self):
        first = 4 if self.markers and self.pos % INTERVAL == 0 else 0
        if len(self.buf) < first + 2:
            return None
        length, = struct.unpack_from(">H", self.buf, first)
        parts = layout(self.pos, padded(length) + 4, self.markers)
        total = sum(4 if part is True else part for part in parts)
        if len(self.buf) < total:
            return None
        fpdu = bytes(self.buf[:total])
        del self.buf[:total]
        if self.crc and crc32c.field(fpdu[:-4]) != fpdu[-4:]:
            raise MpaError(f"CRC of the FPDU at {self.pos}: {fpdu[:64].hex()}")
        body = self._strip(fpdu, parts, first)
        self.pos += total
        self.count += 1
        if any(body[2 + length:padded(length)]):
            raise MpaError("PAD is not zero")
        return body[2:2 + length]

    def _strip(self, fpdu, parts, first):
        body, at = bytearray(), 0
        for part in parts:
            if part is True:
                reserved, ptr = MARKER.unpack_from(fpdu, at)
                wanted = at - first if at else 0
                if reserved or ptr != wanted:
                    raise MpaError(f"marker at {self.pos + at}: {reserved} {ptr}, not {wanted}")
                at += 4
            else:
                body += fpdu[at:at + part]
                at += part
        return bytes(body)
