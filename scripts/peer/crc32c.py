# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""CRC32c (RFC 3720 12.1), eight octets at a time."""

import struct

_POLYNOMIAL = 0x82f63b78


def _tables():
    first = []
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (_POLYNOMIAL if octet & 1 else 0)
        first.append(octet)
    tables = [first]
    for _ in range(7):
        tables.append([crc >> 8 ^ first[crc & 0xff] for crc in tables[-1]])
    return tables


_T0, _T1, _T2, _T3, _T4, _T5, _T6, _T7 = _tables()


def crc32c(data):
    """The CRC of DATA as a number."""
    crc = 0xffffffff
    whole = len(data) & ~7
    for low, high in struct.iter_unpack("<II", memoryview(data)[:whole]):
        low ^= crc
        crc = (_T7[low & 0xff] ^ _T6[low >> 8 & 0xff] ^ _T5[low >> 16 & 0xff] ^ _T4[low >> 24]
               ^ _T3[high & 0xff] ^ _T2[high >> 8 & 0xff] ^ _T1[high >> 16 & 0xff]
               ^ _T0[high >> 24])
    for octet in data[whole:]:
        crc = crc >> 8 ^ _T0[(crc ^ octet) & 0xff]
    return crc ^ 0xffffffff


def field(data):
    """The CRC of DATA as it is sent: in the order of iSCSI, RFC 3720 B.4."""
    return struct.pack("<I", crc32c(data))
