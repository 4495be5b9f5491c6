#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What kiwarp_ip has put on the wire, against kiwarp_ip.rst, On the wire.

    ip_wire.py PCAP REASONS tx_messages=N tx_control=N tx_datagrams=N

The private data of Requests, Replies and rejects, and the datagrams, are as tshark reads them; it
knows nothing of kiwarp_ip. Messages are put together from the FPDUs that wire_check.py finds, which
has compared them with tshark's. REASONS are those that rejects had, such as 2,4, or none. The
counters are those of both interfaces, summed."""

import collections
import ipaddress
import struct
import subprocess
import sys

import wire_check
from wire_check import Bad

FIELDS = ("ip.src", "ip.dst", "iwarp_mpa.req", "iwarp_mpa.rej_flag", "iwarp_mpa.rev",
          "iwarp_mpa.privatedata", "udp.payload")
PORT = 64755
RFC_4755, EXTENSION = struct.Struct(">II"), struct.Struct(">4sBBHHHII")
CONTROL = struct.Struct(">HHB3sI")
DGRAM = struct.Struct(">BBHIHH")
IPV4, ARP, IPV6, EXPERIMENT = 0x0800, 0x0806, 0x86dd, 0x88b5
ICMPV6, ROUTER_SOLICITATION, SOLICITATION, ADVERTISEMENT = 58, 133, 135, 136
SOURCE_ADDRESS, TARGET_ADDRESS = 1, 2
Startup = collections.namedtuple("Startup", "qpn mtu magic version reason pkey data control "
                                 "instance serial")


def tshark(path):
    """The fields of each packet that has private data or is a datagram."""
    names = [word for name in FIELDS for word in ("-e", name)]
    done = subprocess.run(wire_check.TSHARK[:-2] + [
        "-r", path, "-T", "fields", "-E", "separator=|", *names,
        "-Y", f"iwarp_mpa.privatedata or udp.port == {PORT}"],
        capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise Bad(f"tshark: {done.returncode}: {done.stderr}")
    for line in done.stdout.splitlines():
        values = dict(zip(FIELDS, line.split("|")))
        for name in FIELDS[-2:]:
            values[name] = bytes.fromhex(values[name].replace(":", ""))
        yield values


def expect(what, have, want):
    if have != want:
        raise Bad(f"{what}: {have}, not {want}")


def check_startup(packet, serials):
    """Of a Request, a Reply or a reject; the reason of the latter, or 0."""
    # RFC 6581 puts 4 octets first.
    data = packet["iwarp_mpa.privatedata"][4 if packet["iwarp_mpa.rev"] == "2" else 0:]
    expect("octets of private data", len(data), RFC_4755.size + EXTENSION.size)
    said = Startup(*RFC_4755.unpack_from(data), *EXTENSION.unpack_from(data, RFC_4755.size))
    print(packet["ip.src"], "Request" if packet["iwarp_mpa.req"] else "Reply",
          "rejected" if packet["iwarp_mpa.rej_flag"] == "1" else "", said)
    expect("private data", said[:4] + said[5:8], (PORT, 65524, b"KIP1", 1, 0xffff, 32, 4))
    expect("a reason", said.reason != 0, packet["iwarp_mpa.rej_flag"] == "1")
    if packet["iwarp_mpa.req"]:
        if said.serial <= serials[packet["ip.src"], said.instance]:
            raise Bad(f"serial number {said.serial} again")
        serials[packet["ip.src"], said.instance] = said.serial
    return said.reason


def check_packet(kind, reserved, packet):
    """An IP packet, of the length that it says."""
    expect("reserved octets", reserved, 0)
    if kind == IPV4:
        expect("version", packet[0] >> 4, 4)
        size, = struct.unpack_from(">H", packet, 2)
    elif kind == IPV6:
        expect("version", packet[0] >> 4, 6)
        size = 40 + struct.unpack_from(">H", packet, 4)[0]
    else:
        raise Bad(f"a message of type {kind:04x}")
    expect("octets of a packet", len(packet), size)


def check_datagram(packet):
    """The number of link-layer addresses that it tells by neighbour discovery."""
    data = packet["udp.payload"]
    flags, zero, pkey, qkey, kind, reserved = DGRAM.unpack_from(data)
    expect("datagram", (zero, pkey, qkey), (0, 0xffff, 0x80000b1b))
    expect("flags to " + packet["ip.dst"], flags,
           int(ipaddress.ip_address(packet["ip.dst"]).is_multicast))
    if kind == ARP:
        # RFC 4391 9: hardware type 32, addresses of 20 octets
        expect("ARP", struct.unpack_from(">HHBB", data, DGRAM.size), (32, IPV4, 20, 4))
        expect("octets of ARP", len(data) - DGRAM.size, 56)
        return 0
    check_packet(kind, reserved, data[DGRAM.size:])
    return check_discovery(data[DGRAM.size:], packet["ip.src"]) if kind == IPV6 else 0


def check_discovery(packet, sender):
    """The number of link-layer addresses in a message of neighbour discovery. RFC 4391 9.3: the
    option has 24 octets, with two zeros before the address, which is that of the sender."""
    at = {SOLICITATION: 64, ADVERTISEMENT: 64, ROUTER_SOLICITATION: 48}.get(packet[40])
    if packet[6] != ICMPV6 or not at:
        return 0
    mapped = ipaddress.ip_address("::ffff:" + sender).packed
    count = 0
    while at < len(packet):
        if packet[at] in (SOURCE_ADDRESS, TARGET_ADDRESS):
            expect("option", packet[at + 1:at + 24],
                   b"\3\0\0" + struct.pack(">I", 0x80 << 24 | PORT) + mapped)
            count += 1
        at += 8 * packet[at + 1]
    return count


def messages(stream):
    """The Sends of a direction."""
    message = b""
    for ulpdu in wire_check.ulpdus(stream):
        if ulpdu[1] & 15 != wire_check.SEND:
            continue
        message += ulpdu[18:]
        if ulpdu[0] & 0x40:
            yield message
            message = b""


def check_message(message):
    """Whether it is control."""
    kind, reserved = struct.unpack_from(">HH", message)
    if kind != EXPERIMENT:
        check_packet(kind, reserved, message[4:])
        return False
    expect("octets of control", len(message), CONTROL.size)
    _, _, operation, zeros, _ = CONTROL.unpack(message)
    expect("control", (reserved, operation in (1, 2, 3), zeros), (0, True, bytes(3)))
    return True


def check(path, reasons, counters):
    found, serials = collections.Counter(), collections.Counter()
    told, startups, discovered = [], 0, 0
    for packet in tshark(path):
        if packet["udp.payload"]:
            discovered += check_datagram(packet)
            found["tx_datagrams"] += 1
        else:
            startups += 1
            told.append(check_startup(packet, serials))
    with open(path, "rb") as file:
        data = file.read()
    for _, stream, _ in wire_check.streams(data):
        for message in messages(stream):
            found["tx_control" if check_message(message) else "tx_messages"] += 1
    expect("reasons of rejects", {reason for reason in told if reason}, reasons)
    expect("counters", dict(found), counters)
    if startups < 4 or discovered < 2:
        raise Bad(f"{startups} startups, {discovered} addresses told: nothing to check")
    print(f"{startups} Requests and Replies, {discovered} addresses told, {dict(found)}")


def main():
    path, reasons, *counters = sys.argv[1:]
    reasons = set() if reasons == "none" else {int(reason) for reason in reasons.split(",")}
    try:
        check(path, reasons, {name: int(value) for name, value in
                              (counter.split("=") for counter in counters)})
    except Bad as bad:
        print(bad)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
