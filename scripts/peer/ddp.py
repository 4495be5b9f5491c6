# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DDP segments with the RDMAP control octet: RFC 5041 4, RFC 5040 4.1."""

import struct
from dataclasses import dataclass

TAGGED, LAST = 0x80, 0x40
_TAGGED_HEAD = struct.Struct(">BBIQ")
_UNTAGGED_HEAD = struct.Struct(">BBIIII")
TAGGED_SIZE, UNTAGGED_SIZE = _TAGGED_HEAD.size, _UNTAGGED_HEAD.size


class DdpError(Exception):
    """The received octets are not a DDP segment."""


@dataclass
class Segment:
    """One segment. A tagged one has STAG and TO; an untagged one has STAG (to invalidate), QN, MSN
    and MO."""

    opcode: int
    tagged: bool = False
    last: bool = True
    stag: int = 0
    to: int = 0
    qn: int = 0
    msn: int = 1
    mo: int = 0
    payload: bytes = b""
    ddp_version: int = 1
    rdmap_version: int = 1

    def encode(self):
        """The ULPDU."""
        ddp = (TAGGED if self.tagged else 0) | (LAST if self.last else 0) | self.ddp_version
        rdmap = self.rdmap_version << 6 | self.opcode
        if self.tagged:
            return _TAGGED_HEAD.pack(ddp, rdmap, self.stag, self.to) + self.payload
        return _UNTAGGED_HEAD.pack(ddp, rdmap, self.stag, self.qn, self.msn,
                                   self.mo) + self.payload


def head_size(ulpdu):
    return TAGGED_SIZE if ulpdu[0] & TAGGED else UNTAGGED_SIZE


def decode(ulpdu):
    """The Segment that ULPDU is."""
    if len(ulpdu) < 2 or len(ulpdu) < head_size(ulpdu):
        raise DdpError(f"ULPDU of {len(ulpdu)} octets")
    ddp, rdmap = ulpdu[:2]
    if ddp & 0x3c or rdmap & 0x30:
        raise DdpError(f"reserved bits: {ulpdu[:2].hex()}")
    seg = Segment(opcode=rdmap & 0xf, tagged=bool(ddp & TAGGED), last=bool(ddp & LAST),
                  ddp_version=ddp & 3, rdmap_version=rdmap >> 6)
    if seg.tagged:
        _, _, seg.stag, seg.to = _TAGGED_HEAD.unpack_from(ulpdu)
    else:
        _, _, seg.stag, seg.qn, seg.msn, seg.mo = _UNTAGGED_HEAD.unpack_from(ulpdu)
    seg.payload = ulpdu[head_size(ulpdu):]
    return seg
