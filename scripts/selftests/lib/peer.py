#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""peer.py ADDRESS PORT WHAT

An iWARP peer made of a plain TCP socket, which does WHAT wrong once it is
connected to a listener (see the functions below). Prints the Terminate it gets
as "terminate LAYER ETYPE CODE", or "closed" when there is none.
"""

import socket
import struct
import sys

TIMEOUT = 10
MPA_CRC = 0x40
TAGGED, LAST, VERSION = 0x80, 0x40, 1
RDMAP = 1 << 6
WRITE, READ_REQUEST, SEND, TERMINATE = 0, 1, 3, 7
RESERVED_OPCODE = 0xf


def crc32c(data):
    crc = 0xffffffff
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return struct.pack("<I", crc ^ 0xffffffff)


def fpdu(ulpdu):
    frame = struct.pack(">H", len(ulpdu)) + ulpdu
    frame += bytes(-len(frame) % 4)
    return frame + crc32c(frame)


def untagged(opcode, qn, msn=1, payload=b"", version=VERSION, rdmap=RDMAP):
    head = struct.pack(">BBIIII", LAST | version, rdmap | opcode, 0, qn, msn, 0)
    return fpdu(head + payload)


def tagged(opcode, stag, offset, payload, version=VERSION):
    head = struct.pack(">BBIQ", TAGGED | LAST | version, RDMAP | opcode, stag, offset)
    return fpdu(head + payload)


# --- what can be done wrong: octets to send ------------------------------------


def crc():
    good = untagged(SEND, 0, payload=bytes(16))
    return good[:-1] + bytes([good[-1] ^ 1])


def ddp_version():
    return untagged(SEND, 0, payload=bytes(16), version=2)


def opcode():
    return untagged(RESERVED_OPCODE, 0, payload=bytes(16))


def queue():
    return untagged(SEND, 4, payload=bytes(16))


def msn():
    return untagged(SEND, 0, msn=7, payload=bytes(16))


def write_stag():
    return tagged(WRITE, 0x12345678, 0x1000, bytes(64))


def read_stag():
    request = struct.pack(">IQIIQ", 1, 0, 64, 0x12345678, 0x1000)
    return untagged(READ_REQUEST, 1, payload=request)


def too_long():
    return untagged(SEND, 0, payload=bytes(1000))


def length():
    """Too short to be a DDP segment, and then a good one."""
    return fpdu(b"\x41") + untagged(SEND, 0, payload=bytes(16))


def terminate():
    """Blames the other end for an invalid STag."""
    return untagged(TERMINATE, 2, payload=struct.pack(">BBBB", 0x01, 0, 0, 0))


def garbage_request():
    """Not even a Request; see main()."""
    return bytes(range(64))


# ------------------------------------------------------------------------------


def receive(sock, n):
    data = b""
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def startup(sock):
    sock.sendall(b"MPA ID Req Frame" + struct.pack(">BBH", MPA_CRC, 1, 0))
    key, flags, rev, pd_length = struct.unpack(">16sBBH", receive(sock, 20))
    receive(sock, pd_length)
    if key != b"MPA ID Rep Frame" or rev != 1 or flags != MPA_CRC:
        sys.exit("bad Reply: %r flags 0x%02x revision %d" % (key, flags, rev))


def next_fpdu(sock):
    head = receive(sock, 2)
    size = struct.unpack(">H", head)[0]
    data = head + receive(sock, size + (-(2 + size) % 4))
    if receive(sock, 4) != crc32c(data):
        sys.exit("CRC error in what came")
    return data[2:2 + size]


def report(sock):
    """Of the Terminate, or that there was none."""
    try:
        while True:
            ulpdu = next_fpdu(sock)
            if ulpdu[1] & 0xf == TERMINATE:
                print("terminate %d %d 0x%02x" % (ulpdu[18] >> 4, ulpdu[18] & 0xf, ulpdu[19]))
                return
    except (EOFError, ConnectionResetError):
        print("closed")


def main():
    address, port, what = sys.argv[1:]
    with socket.create_connection((address, int(port)), TIMEOUT) as sock:
        wrong = globals()[what]()
        if what != "garbage_request":
            startup(sock)
        sock.sendall(wrong)
        report(sock)


main()
