# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""RFC 7306 5: Atomic Operations. The headers of their messages, and what they do to a value."""

import struct
from dataclasses import dataclass

FETCH_ADD, CMP_SWAP = 0, 2              # figure 5
WORD = 8                                # octets that an operation changes
ALL = (1 << 64) - 1
IMMEDIATE_SIZE = 8                      # of Immediate Data, 6.2
_REQUEST = struct.Struct(">IIIQQQQQ")
_RESPONSE = struct.Struct(">IQ")
REQUEST_SIZE, RESPONSE_SIZE = _REQUEST.size, _RESPONSE.size


class AtomicError(Exception):
    """The other end has violated RFC 7306."""


def _fetch_add(old, data, mask):
    """5.1.1: octet by octet is bit by bit here. A bit of MASK drops the carry out of that bit."""
    carry = result = 0
    for bit in range(64):
        total = (old >> bit & 1) + (data >> bit & 1) + carry
        result |= (total & 1) << bit
        carry = 0 if mask >> bit & 1 else total >> 1
    return result


def _cmp_swap(old, compare, compare_mask, swap, swap_mask):
    """5.1.2"""
    if (compare ^ old) & compare_mask:
        return old
    return old & (ALL ^ swap_mask) | swap & swap_mask


@dataclass
class Request:
    """Figure 4. DATA and MASK: Add or Swap; TO and STAG: of the other end's memory."""

    stag: int
    to: int
    data: int = 1
    mask: int = 0
    compare: int = 0
    compare_mask: int = ALL
    code: int = FETCH_ADD
    id: int = 0
    reserved: int = 0

    def encode(self):
        return _REQUEST.pack(self.reserved << 4 | self.code, self.id, self.stag, self.to, self.data,
                             self.mask, self.compare, self.compare_mask)

    @classmethod
    def decode(cls, octets):
        if len(octets) != REQUEST_SIZE:
            raise AtomicError(f"an Atomic Request of {len(octets)} octets")
        first, id_, stag, to, data, mask, compare, compare_mask = _REQUEST.unpack(octets)
        if first not in (FETCH_ADD, CMP_SWAP):
            raise AtomicError(f"Atomic Operation Code {first}")
        return cls(stag, to, data, mask, compare, compare_mask, first, id_)

    def result(self, old):
        """What the operation makes of OLD."""
        if self.code == FETCH_ADD:
            return _fetch_add(old, self.data, self.mask)
        return _cmp_swap(old, self.compare, self.compare_mask, self.data, self.mask)


@dataclass
class Response:
    """Figure 6."""

    id: int
    original: int

    def encode(self):
        return _RESPONSE.pack(self.id, self.original)

    @classmethod
    def decode(cls, octets):
        if len(octets) != RESPONSE_SIZE:
            raise AtomicError(f"an Atomic Response of {len(octets)} octets")
        return cls(*_RESPONSE.unpack(octets))
