#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Whether a capture of iWARP connections holds what it should.

    wire_check.py crc|nocrc PCAP [COUNTER=VALUE...]
    wire_check.py corrupt PCAP NEW-PCAP
    wire_check.py aligned PCAP [markers]
    wire_check.py largest PCAP OCTETS

Two readings are compared. Here, TCP streams are put together and cut into MPA frames and
FPDUs by their length fields alone: that accounts for every octet. tshark, which knows
nothing of the driver, dissects the packets: it must find the same FPDUs, no malformed
one, and a good CRC in each (none at all with "nocrc"). Counters of both devices, summed,
must agree with what was on the wire. "corrupt" changes one octet of a payload. "aligned":
segments begin where FPDUs do, but for few, in streams without markers or with them.
"largest": the largest FPDU has so many octets, or a few less, without markers."""

import collections
import re
import struct
import subprocess
import sys

TSHARK = ["tshark", "-n", "--disable-protocol", "rpcordma",
          "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.reassemble_out_of_order:TRUE",
          "-O", "iwarp_mpa,iwarp_ddp_rdmap"]
KEYS = (b"MPA ID Req Frame", b"MPA ID Rep Frame")
WRITE, READ_REQUEST, READ_RESPONSE, SEND, TERMINATE = 0, 1, 2, 3, 7
SEND_KINDS = (3, 4, 5, 6)
COUNTERS = {"rx_sends": SEND, "rx_writes": WRITE, "rx_read_requests": READ_REQUEST,
            "rx_read_responses": READ_RESPONSE, "tx_terminates": TERMINATE}


class Bad(Exception):
    """What is wrong with the capture."""


def packets(data):
    """Offset and length of each packet in a pcap file."""
    magic, = struct.unpack_from("<I", data)
    if magic not in (0xa1b2c3d4, 0xa1b23c4d):
        raise Bad("not a pcap file")
    pos = 24
    while pos < len(data):
        size, = struct.unpack_from("<I", data, pos + 8)
        yield pos + 16, size
        pos += 16 + size


def tcp_segment(data, pos):
    """(addresses and ports, sequence number, SYN, payload offset, length) or None."""
    ethertype, = struct.unpack_from(">H", data, pos + 12)
    ip = pos + 14
    if ethertype == 0x0800 and data[ip + 9] == 6:
        tcp = ip + 4 * (data[ip] & 15)
        end = ip + struct.unpack_from(">H", data, ip + 2)[0]
        addrs = data[ip + 12:ip + 20]
    elif ethertype == 0x86dd and data[ip + 6] == 6:
        tcp = ip + 40
        end = tcp + struct.unpack_from(">H", data, ip + 4)[0]
        addrs = data[ip + 8:ip + 40]
    else:
        return None
    seq, = struct.unpack_from(">I", data, tcp + 4)
    payload = tcp + 4 * (data[tcp + 12] >> 4)
    return addrs + data[tcp:tcp + 4], seq, bool(data[tcp + 13] & 2), payload, end - payload


def pieces_of(data):
    """Of each direction of each connection the segments, by their offset in the stream."""
    first, parts = {}, collections.defaultdict(dict)
    opened = collections.Counter()
    for pos, _ in packets(data):
        segment = tcp_segment(data, pos)
        if not segment:
            continue
        key, seq, is_syn, start, size = segment
        if is_syn and first.get(key) != seq:
            opened[key] += 1
            first[key] = seq
        key = (key, opened[key])
        if size:
            offset = (seq - first[key[0]] - 1) & 0xffffffff
            old = parts[key].get(offset, b"")
            parts[key][offset] = max(old, data[start:start + size], key=len)
    return parts


def streams(data):
    """The octets of each direction of each connection, in order, and where segments begin."""
    for key, pieces in pieces_of(data).items():
        stream = bytearray()
        for offset, piece in sorted(pieces.items()):
            if offset > len(stream):
                raise Bad(f"{offset - len(stream)} octets are not in the capture")
            stream += piece[len(stream) - offset:]
        yield key, bytes(stream), sorted(pieces)


def ulpdus(stream):
    """The octets of each ULPDU."""
    if stream[:16] not in KEYS:
        raise Bad(f"a stream begins with {stream[:16]!r}")
    pos = 20 + struct.unpack_from(">H", stream, 18)[0]
    while pos < len(stream):
        size = struct.unpack_from(">H", stream, pos)[0] if pos + 4 <= len(stream) else 0
        end = pos + (2 + size + 3) // 4 * 4 + 4
        if size < 14 or end > len(stream):
            raise Bad(f"no FPDU: the last {len(stream) - pos} octets of a stream, "
                      f"{stream[pos:pos + 20].hex()}")
        yield stream[pos + 2:pos + 2 + size]
        pos = end


def fpdus(stream):
    """Lengths of the ULPDUs, with (opcode, is last)."""
    for ulpdu in ulpdus(stream):
        yield len(ulpdu), (ulpdu[1] & 15, bool(ulpdu[0] & 0x40))


def tshark_reads(path):
    """tshark's text about MPA, DDP and RDMAP."""
    done = subprocess.run(TSHARK + ["-r", path], capture_output=True, text=True, check=False,
                          timeout=120)
    if done.returncode:
        raise Bad(f"tshark: {done.returncode}: {done.stderr}")
    return done.stdout


def check_text(text, lengths, messages, with_crc):
    """tshark's reading against ours."""
    if "Malformed" in text:
        raise Bad("malformed: " + text[max(0, text.index("Malformed") - 300):][:400])
    found = collections.Counter(int(n) for n in re.findall(r"ULPDU length: (\d+) bytes", text))
    if found != lengths:
        raise Bad(f"FPDUs: tshark {dict(found - lengths)} more, {dict(lengths - found)} less")
    count = sum(lengths.values())
    bad = re.findall(r"CRC.*Bad CRC32.*", text)
    if bad:
        raise Bad(f"{len(bad)} bad CRCs (bad CRC): {bad[0]}")
    good = len(re.findall(r"\(Good CRC32\)", text))
    if good != (count if with_crc else 0):
        raise Bad(f"{good} good CRCs in {count} FPDUs")
    codes = collections.Counter(int(c, 16) for c in re.findall(r"OpCode: .*\(0x(\w+)\)", text))
    ours = collections.Counter()
    for (code, _), n in messages.items():
        ours[code] += n
    if codes != ours:
        raise Bad(f"opcodes: tshark {dict(codes)}, here {dict(ours)}")


def check_counters(counters, count, messages):
    for name, value in counters.items():
        if name == "tx_fpdus":
            seen = count
        elif name in COUNTERS:
            codes = SEND_KINDS if name == "rx_sends" else (COUNTERS[name],)
            # A Read Request and a Terminate are one FPDU each.
            seen = sum(n for (code, last), n in messages.items() if code in codes and last)
            # Every Terminate of these sessions refuses a WRITE, which then does not count.
            seen -= messages[TERMINATE, True] if name == "rx_writes" else 0
        else:
            raise Bad(f"what is {name}?")
        if seen != value:
            raise Bad(f"{name} is {value}, on the wire are {seen}")


def check(path, with_crc, counters):
    with open(path, "rb") as file:
        data = file.read()
    lengths, messages = collections.Counter(), collections.Counter()
    octets = halves = 0
    for _, stream, _ in streams(data):
        halves += 1
        octets += len(stream)
        for size, what in fpdus(stream):
            lengths[size] += 1
            messages[what] += 1
    count = sum(lengths.values())
    if halves < 2 or count < 2:
        raise Bad(f"{halves} streams, {count} FPDUs: nothing to check")
    check_text(tshark_reads(path), lengths, messages, with_crc)
    check_counters(counters, count, messages)
    print(f"{halves} halves of connections, {octets} octets, {count} FPDUs: "
          f"{dict(messages)}")


def starts_of(stream, begin, with_markers):
    """Where FPDUs start, with the marker before each; the first of them does at @begin."""
    pos = begin
    while pos < len(stream):
        yield pos
        gap = -(pos - begin) % 512 if with_markers else len(stream)
        size, = struct.unpack_from(">H", stream, pos + (0 if gap else 4))
        size = (2 + size + 3) // 4 * 4 + 4
        pos += size
        if size > gap:
            pos += 4 * (1 + (size - gap - 1) // 508)


def aligned(path, with_markers):
    """RFC 5044 5.1, in streams that are long enough to tell."""
    with open(path, "rb") as file:
        data = file.read()
    most = 0
    for _, stream, segments in streams(data):
        begin = 20 + struct.unpack_from(">H", stream, 18)[0]
        offsets = [offset for offset in segments if offset >= begin]
        most = max(most, len(offsets))
        if len(offsets) < 1000:
            continue
        starts = set(starts_of(stream, begin, with_markers))
        good = [offset in starts for offset in offsets]
        print(f"{sum(good)} of {len(good)} segments begin with an FPDU")
        for i, size in enumerate(b - a for a, b in zip(offsets, offsets[1:])):
            if good[i] != good[i + 1]:
                print(f"{size} octets, then {'an FPDU' if good[i + 1] else 'none'} begins")
        # What a full window has cut off begins anywhere; a marker's length behind is no chance.
        late = sum(offset not in starts and offset - 4 in starts for offset in offsets)
        if sum(good) < 0.9 * len(good) or late > 20:
            raise Bad(f"segments and FPDUs are not aligned, {late} are a marker late")
    if most < 1000:
        raise Bad("too few segments")


def largest(path, limit):
    with open(path, "rb") as file:
        data = file.read()
    most = max((2 + size + 3) // 4 * 4 + 4
               for _, stream, _ in streams(data) for size, _ in fpdus(stream))
    print(f"an FPDU of {most} octets")
    if not limit - 4 < most <= limit:
        raise Bad(f"not of {limit}")


def corrupt(path, new):
    """Change an octet in the middle of the largest payload."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    start, size = max((s[3:5] for s in (tcp_segment(data, p) for p, _ in packets(data)) if s),
                      key=lambda s: s[1])
    data[start + size // 2] ^= 0x10
    with open(new, "wb") as file:
        file.write(data)


def main():
    args = sys.argv[1:]
    try:
        if len(args) == 3 and args[0] == "corrupt":
            corrupt(*args[1:])
        elif len(args) == 3 and args[0] == "largest":
            largest(args[1], int(args[2]))
        elif len(args) in (2, 3) and args[0] == "aligned":
            aligned(args[1], args[2:] == ["markers"])
        elif len(args) >= 2 and args[0] in ("crc", "nocrc"):
            counters = (a.split("=") for a in args[2:])
            check(args[1], args[0] == "crc", {name: int(value) for name, value in counters})
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except Bad as bad:
        print(bad)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
