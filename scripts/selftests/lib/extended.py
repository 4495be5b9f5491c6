#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""extended.py NETNS_A ADDRESS_A NETNS_B ADDRESS_B GROUP...

Immediate data and atomic operations (RFC 7306) between a kernel consumer on host a and the wire
peer on host b. Prints a line for each case, as scripts/peer, and in the end how many there were.
Groups:
    captured  both ask what is right
    right     the same with every framing, and as the responder of MPA
    wrong     the peer asks what is wrong, or asks wrongly
    answers   the peer answers wrongly, or with a Terminate
    memory    kinds of memory, and memory that goes
    off       the policy rfc7306 is off
    changed   valid sessions with random modifications
"""

import contextlib
import ctypes
import itertools
import mmap
import os
import random
import struct
import sys
import time
import traceback

import single
from peer import atomic, ddp, mpa, mutate, rdmap
from single import Failed, expect, finished, terminated

WORD = 2 * 4096 + 64            # offset of the word to operate on
OLD = 0x0123456789abcdef
SEED = int(os.environ.get("KIW_SEED", "5040"))
SESSIONS = int(os.environ.get("SESSIONS", "150"))
SINK = 0x5eed1e01               # of Reads of the peer
SERVED, BASE = 0x1a2b3c01, 0x7f00_0000_1000
FRAMINGS = ("", "--markers both", "--crc off", "--markers rx --crc off --segments 1-90",
            "--rev 1", "--p2p --rtr read", "--p2p --rtr send")
EDGES = (0, 1, 0x8000000000000000, 0x7fffffffffffffff, 0xffffffffffffffff, 0x00000000ffffffff,
         0x8000000080000000, 0x8080808080808080, 0x5555555555555555)
RIGHTS = single.ALL

CASES = {}


def case(group, name, *args, **kwargs):
    """Decorator: a case of GROUP, which is called with the place and ARGS."""
    def note(function):
        CASES.setdefault(group, []).append((name, function, args, kwargs))
        return function
    return note


def opened(place, role="listen", words="", access=RIGHTS, **how):
    """A connection, and memory that the consumer grants."""
    end, conn = place.pair(role, words, **how)
    end.command("access", single.RREAD | single.RWRITE)
    end.expose("expose", access)
    return end, conn


def request(end, at=WORD, **fields):
    return atomic.Request(fields.pop("stag", end.stag), end.to + at, **fields)


# --- what is right -----------------------------------------------------------


def any_request(end, rand):
    def value():
        return rand.choice((rand.choice(EDGES), rand.getrandbits(64)))
    old = value()
    fields = {"data": value(), "mask": value(), "code": rand.choice((0, 2)),
              "compare": rand.choice((old, old ^ 1 << rand.randrange(64), value())),
              "compare_mask": rand.choice((atomic.ALL, 0, value())),
              "id": rand.getrandbits(32), "reserved": rand.getrandbits(28)}
    return old, request(end, **fields)


def the_peer_asks(place, role, words):
    """Each operation with each kind of mask: the original value comes back, and memory has what the
    RFC's pseudocode makes of it."""
    end, conn = opened(place, role, words)
    rand = random.Random(SEED)
    for _ in range(40):
        old, ask = any_request(end, rand)
        end.poke(WORD, old)
        segments = conn.ask(ask)
        segments[0].stag = rand.getrandbits(32)     # 4.1: is ignored
        conn.stream.send(conn.encode(segments))
        conn.wait(lambda: not conn.reads, single.PATIENCE)
        expect(conn.originals[-1], old, "original value")
        expect(end.peek(WORD), ask.result(old), f"value after {ask}")
    end.unchanged(WORD, WORD + 8)
    return end, conn


def in_one_batch(place, role, words):
    """As many requests as were agreed on, Reads among them, in one piece: each sees the others."""
    end, conn = opened(place, role, words)
    sink = conn.regions[SINK] = rdmap.Region(SINK, BASE, 64)
    end.poke(WORD, 0)
    segments = []
    for n in range(8):
        if n % 3 == 2:
            read = rdmap.ReadRequest(SINK, BASE + 8 * n, 8, end.stag, end.to + WORD)
            conn.reads.append([read, 0])
            segments += conn.untagged(rdmap.READ_REQUEST, rdmap.encode_read(read))
        else:
            segments += conn.ask(request(end, id=7))
    conn.stream.send(conn.encode(segments))
    conn.wait(lambda: not conn.reads, single.PATIENCE)
    expect(conn.originals, [0, 1, 2, 3, 4, 5], "original values")
    expect([struct.unpack_from("<Q", sink.data, 8 * n)[0] for n in (2, 5)], [2, 4], "what was read")
    expect(end.peek(WORD), 6)
    return end, conn


def the_peer_tells(place, role, words):
    """Immediate Data with and without a Write, and with a solicited event."""
    end, conn = opened(place, role, words)
    at = 16 * 4096
    for n, size in enumerate((0, 1, 8, 1444, 5000)):
        number = end.recv()
        if size:
            conn.write(end.stag, end.to + at, bytes([n]) * size)
        conn.immediate(struct.pack(">II", 0x01020304 + n, 0xffffffff), n % 2 == 1)
        status, opcode, octets, flags, imm = end.completion(number)
        expect((status, opcode, flags, imm), (0, 129, 2, 0x01020304 + n), "completion")
        if size:
            expect(octets, size, "octets of the Write")
    end.unchanged(at, at + 5000)
    return end, conn


def consumer_word(end, n):
    return end.peek(8192 + 8 * n)


# Opcode: arguments; fields of the request, RFC 7306 5.2.1; opcode of the completion, if it has one
POSTED = {
    single.FETCH_ADD: ((5, 6, 7, 8), {"code": 0, "data": 5, "mask": 0, "compare": 0,
                                      "compare_mask": atomic.ALL}, 4),
    single.CMP_SWAP: ((OLD, 6, 7, 8), {"code": 2, "data": 6, "mask": atomic.ALL, "compare": OLD,
                                       "compare_mask": atomic.ALL}, 3),
    single.MASKED_FETCH_ADD: ((5, 6, 0x80, 8), {"code": 0, "data": 5, "mask": 0x80, "compare": 0,
                                                "compare_mask": atomic.ALL}, None),
    single.MASKED_CMP_SWAP: ((0xef, 0x77, 0xff, 0xf0),
                             {"code": 2, "data": 0x77, "mask": 0xf0, "compare": 0xef,
                              "compare_mask": 0xff}, None),
}


def served(conn):
    region = conn.regions[SERVED] = rdmap.Region(SERVED, BASE, 8192)
    return region


def the_consumer_asks(place, role, words):
    """Each operation: its request has the right fields, and its result is where it should be."""
    end, conn = opened(place, role, words)
    region = served(conn)
    for n, (opcode, (args, wanted, completed)) in enumerate(POSTED.items()):
        region.data[64:72] = struct.pack("<Q", OLD)
        number = end.post(opcode, BASE + 64, SERVED, args, 8192 + 8 * n)
        conn.wait(lambda n=n: len(conn.atomics) > n, single.PATIENCE)
        asked = conn.atomics[-1]
        expect({name: getattr(asked, name) for name in wanted}, wanted, "request")
        expect((asked.stag, asked.to), (SERVED, BASE + 64), "target")
        status, opcode, octets, _, _ = end.completion(number)
        expect((status, octets), (0, 8), "completion")
        if completed:
            expect(opcode, completed, "opcode of the completion")
        expect(consumer_word(end, n), OLD, "original value")
        expect(struct.unpack_from("<Q", region.data, 64)[0], asked.result(OLD), "value")
    ids = [asked.id for asked in conn.atomics]
    expect(len(set(ids)), len(ids), "different identifiers")
    end.unchanged(8192, 8192 + 32)
    return end, conn


def the_consumer_tells(place, role, words):
    """Write with immediate: the Write and then the Immediate Data, both whole."""
    end, conn = opened(place, role, words)
    region = served(conn)
    for n, (size, flags) in enumerate(((0, 0), (1, 4), (8, 0), (1500, 4), (8000, 0))):
        region.data[:] = bytes(8192)
        number = end.post(single.WRITE_IMM, BASE, SERVED, (0xa1b2c3d4 + n, 0, 0, 0), 0, size, flags)
        conn.wait(lambda n=n: len(conn.immediates) > n, single.PATIENCE)
        data, solicited = conn.immediates[-1]
        expect((data, solicited), (struct.pack(">II", 0xa1b2c3d4 + n, 0), flags == 4), "immediate")
        expect(region.data, bytes([single.CANARY]) * size + bytes(8192 - size), "the Write")
        expect(end.completion(number)[:2], [0, 1], "completion")
    return end, conn


def orderly(place, function, role, words):
    end, conn = function(place, role, words)
    conn.stream.finish()
    finished(conn)
    end.ended()
    end.close()


for asks, text in ((the_peer_asks, "the peer operates"), (in_one_batch, "in one batch"),
                   (the_peer_tells, "immediates of the peer"),
                   (the_consumer_asks, "the consumer operates"),
                   (the_consumer_tells, "immediates of the consumer")):
    case("captured", f"captured: {text}", asks, "connect", "")(orderly)
    for side, framing in itertools.product(("listen", "connect"), FRAMINGS):
        if side == "connect" and framing in FRAMINGS[-3:]:
            continue
        case("right", f"{text}; {side} {framing}".rstrip(), asks, side, framing)(orderly)


@case("right", "no more than the peer allows", "listen")
@case("right", "no more than the peer allows; connect", "connect")
def limited(place, role):
    """Reads and operations share the ORD: never more than two are outstanding."""
    end, conn = opened(place, role, ord_=2, ird=4)
    served(conn)
    conn.answer_reads = False
    numbers = [end.post(single.READ if n % 3 == 1 else single.FETCH_ADD, BASE, SERVED,
                        (1, 0, 0, 0), 8192 + 8 * n) for n in range(9)]
    came = 0
    for n in range(9):
        for _ in range(min(9, n + 2) - came):
            conn.receive()
            came += 1
        expect((len(conn.rx.buf), conn.stream.waiting()), (0, 0), "octets of a third request")
        answer_oldest(conn, n)
    expect(end.statuses(numbers), [0] * 9, "completions")
    expect([consumer_word(end, n) for n in range(9)], list(range(100, 109)), "values")
    end.close()


def answer_oldest(conn, n):
    """Answers request N, in the order of the limited case."""
    if n % 3 == 1:
        asked = conn.asked
        conn.stream.send(conn.encode(conn.tagged(rdmap.READ_RESPONSE, asked.sink_stag,
                                                 asked.sink_to, struct.pack("<Q", 100 + n))))
    else:
        asked = conn.atomics[n - n // 3 - (n % 3 == 2)]
        conn.stream.send(conn.encode(conn.answer(asked, 100 + n)))


# --- what is wrong -----------------------------------------------------------


def one(conn, seg, **wrong):
    ulpdu = seg.encode()
    return conn.tx.encode(ulpdu, **wrong), [ulpdu]


def atomic_seg(conn, payload, **fields):
    fields.setdefault("msn", conn.msn[1])
    return conn.segment(rdmap.ATOMIC_REQUEST, payload=payload, **fields)


def target(end, conn, **fields):
    at = fields.pop("at", WORD)
    stag = end.stag ^ fields.pop("stag", 0)
    to = fields.pop("to", end.to + at)
    return one(conn, atomic_seg(conn, atomic.Request(stag, to % (1 << 64), **fields).encode()))


def size_of(end, conn, size):
    whole = request(end).encode() + bytes(8)
    return one(conn, atomic_seg(conn, whole[:size]))


def in_two(end, conn):
    whole = request(end).encode()
    first, blame = one(conn, atomic_seg(conn, whole[:40], last=False))
    return first + one(conn, atomic_seg(conn, whole[40:], mo=40))[0], blame


def header(end, conn, **fields):
    return one(conn, atomic_seg(conn, request(end).encode(), **fields))


def bad_crc(end, conn):
    octets, _ = one(conn, atomic_seg(conn, request(end).encode()), flip=(-30, 0x10))
    return octets, []


def replayed(end, conn):
    """The same request again."""
    seg = atomic_seg(conn, request(end).encode())
    first, blame = one(conn, seg)
    return first + conn.tx.encode(seg.encode()), blame


def flood(end, conn, kinds, number=24):
    """More than were agreed on, in one piece."""
    segments = []
    for n in range(number):
        if kinds[n % len(kinds)] == "atomic":
            payload = request(end).encode()
            opcode = rdmap.ATOMIC_REQUEST
        else:
            payload = rdmap.encode_read((SINK, 0, 8, end.stag, end.to + WORD))
            opcode = rdmap.READ_REQUEST
        segments.append(conn.segment(opcode, msn=conn.msn[1] + n, payload=payload))
    conn.regions[SINK] = rdmap.Region(SINK, 0, 8)
    for seg in segments[:8]:
        asks = seg.opcode == rdmap.ATOMIC_REQUEST
        conn.reads.append([atomic.Request.decode(seg.payload) if asks else
                           rdmap.ReadRequest(*rdmap.decode_read(seg.payload)), 0])
    return conn.encode(segments), [seg.encode() for seg in segments]


def immediate(end, conn, size=8, opcode=rdmap.IMMEDIATE, **fields):
    fields.setdefault("msn", conn.msn[0])
    return one(conn, conn.segment(opcode, payload=bytes(size), **fields))


def immediate_in_two(end, conn):
    first, blame = one(conn, conn.segment(rdmap.IMMEDIATE, payload=bytes(4), last=False))
    return first + one(conn, conn.segment(rdmap.IMMEDIATE, payload=bytes(4), mo=4))[0], blame


def inside(end, conn, opcode, begun):
    """A message of RFC 7306 in the middle of another one."""
    first, _ = one(conn, begun(end, conn))
    payload = request(end).encode() if opcode == rdmap.ATOMIC_REQUEST else bytes(8)
    second, blame = one(conn, conn.segment(opcode, payload=payload, msn=1))
    return first + second, blame


def a_send(_, conn):
    return conn.segment(rdmap.SEND, payload=bytes(8), last=False)


def a_write(end, conn):
    return conn.segment(rdmap.WRITE, stag=end.stag, to=end.to, last=False)


def response(end, conn, size=12, **fields):
    fields.setdefault("msn", 1)
    return one(conn, conn.segment(rdmap.ATOMIC_RESPONSE, payload=bytes(size), **fields))


FATAL, REQ, ACC = single.QP_FATAL, single.REQ_ERR, single.ACCESS_ERR
IN = rdmap.IMMEDIATE
# Name, how, its arguments; the Terminate; the event of the QP; options of opened()
WRONG = [
    *((f"{n} octets off the alignment", target, {"at": WORD + n}, "0/2/07", FATAL, {})
      for n in range(1, 8)),
    ("CmpSwap that is misaligned", target, {"at": WORD + 4, "code": 2}, "0/2/07", FATAL, {}),
    ("the wrong key", target, {"stag": 1}, "0/1/00", ACC, {}),
    ("the wrong index", target, {"stag": 0x100}, "0/1/00", ACC, {}),
    ("STag 0", target, {"stag": "zero"}, "0/1/00", ACC, {}),
    ("before the memory", target, {"at": -8}, "0/1/01", ACC, {}),
    ("across its end", target, {"at": single.MEMORY - 4}, "0/1/01", ACC, {}),
    ("behind it", target, {"at": single.MEMORY}, "0/1/01", ACC, {}),
    ("far away", target, {"at": 1 << 40}, "0/1/01", ACC, {}),
    ("across 2^64", target, {"to": (1 << 64) - 4}, "0/1/04", ACC, {}),
    ("at the end of 2^64", target, {"to": (1 << 64) - 8}, "0/1/01", ACC, {}),
    ("a region without the right", target, {}, "0/1/02", ACC,
     {"access": single.LOCAL | single.RREAD | single.RWRITE}),
    ("a region without any right", target, {}, "0/1/02", ACC, {"access": single.LOCAL}),
    *((f"operation {code}", target, {"code": code}, "0/2/06", REQ, {}) for code in (1, 3, 8, 15)),
    ("an empty request", size_of, {"size": 0}, "0/2/ff", FATAL, {}),
    ("a request of 28 octets", size_of, {"size": 28}, "0/2/ff", FATAL, {}),
    ("a request of 51 octets", size_of, {"size": 51}, "0/2/ff", FATAL, {}),
    ("a request of 53 octets", size_of, {"size": 53}, "1/2/05", REQ, {}),
    ("a request in two segments", in_two, {}, "0/2/ff", FATAL, {}),
    ("a request that is not the last segment", header, {"last": False}, "0/2/ff", FATAL, {}),
    ("a request with an offset", header, {"mo": 4}, "1/2/04", REQ, {}),
    *((f"a request on queue {qn}", header, {"qn": qn}, "0/2/06", REQ, {}) for qn in (0, 2, 3)),
    ("a request on queue 4", header, {"qn": 4}, "1/2/01", REQ, {}),
    ("a request with the number of the next", header, {"msn": 2}, "1/2/03", REQ, {}),
    ("a request with number 0", header, {"msn": 0}, "1/2/03", REQ, {}),
    ("a request that is tagged", header, {"tagged": True}, "0/2/06", REQ, {}),
    ("a request of RDMAP 2", header, {"rdmap_version": 2}, "0/2/05", REQ, {}),
    ("a request of RDMAP 0", header, {"rdmap_version": 0}, "0/2/05", REQ, {}),
    ("a request of DDP 2", header, {"ddp_version": 2}, "1/2/06", REQ, {}),
    ("a request with a wrong CRC", bad_crc, {}, "2/0/02", FATAL, {}),
    ("a request in the middle of a Send", inside, {"opcode": rdmap.ATOMIC_REQUEST, "begun": a_send},
     "0/2/06", REQ, {}),
    ("a request in the middle of a Write", inside,
     {"opcode": rdmap.ATOMIC_REQUEST, "begun": a_write}, "0/2/06", REQ, {}),
    ("an immediate in the middle of a Send", inside, {"opcode": IN, "begun": a_send}, "0/2/06", REQ,
     {}),
    ("an immediate in the middle of a Write", inside, {"opcode": IN, "begun": a_write}, "0/2/06",
     REQ, {}),
    *((f"an immediate of {size} octets", immediate, {"size": size}, "0/2/ff", FATAL, {})
      for size in (0, 4, 7)),
    *((f"an immediate of {size} octets", immediate, {"size": size}, "1/2/05", REQ, {})
      for size in (9, 16, 1000)),
    ("a solicited immediate of 9 octets", immediate,
     {"size": 9, "opcode": rdmap.IMMEDIATE_SOLICITED}, "1/2/05", REQ, {}),
    ("an immediate in two segments", immediate_in_two, {}, "0/2/ff", FATAL, {}),
    ("an immediate with an offset", immediate, {"mo": 8}, "1/2/04", REQ, {}),
    ("an immediate with the number of the next", immediate, {"msn": 2}, "1/2/03", REQ, {}),
    *((f"an immediate on queue {qn}", immediate, {"qn": qn}, "0/2/06", REQ, {})
      for qn in (1, 2, 3)),
    ("an immediate on queue 4", immediate, {"qn": 4}, "1/2/01", REQ, {}),
    ("an immediate that is tagged", immediate, {"tagged": True}, "0/2/06", REQ, {}),
    ("a response that nobody asked for", response, {}, "0/2/06", FATAL, {}),
    ("the same with the number of the next", response, {"msn": 2}, "1/2/03", FATAL, {}),
    ("the same on queue 1", response, {"qn": 1}, "0/2/06", FATAL, {}),
    ("a Send on queue 3", immediate, {"opcode": rdmap.SEND, "qn": 3}, "0/2/06", REQ, {}),
    ("opcode 12", immediate, {"opcode": 12}, "0/2/06", REQ, {}),
]


def refused(place, how, args, code, event, options, role="listen"):
    """What the peer sends is refused as the RFC says, and has no effect."""
    end, conn = opened(place, role, **options)
    if args.get("stag") == "zero":
        args = {**args, "stag": end.stag}
    number = end.recv()
    octets, blame = how(end, conn, **args)
    conn.stream.send(octets)
    terminated(conn, code, blame)
    end.ended(event)
    expect(end.completion(number)[0], single.FLUSH, "the receive")
    end.unchanged(0, 8 if args.get("begun") is a_send else 0)
    end.close()


for entry in WRONG:
    case("wrong", entry[0], *entry[1:])(refused)
    case("wrong", f"{entry[0]}; connect", *entry[1:], role="connect")(refused)


def refuses(end, conn, octets, code, blame, event):
    """OCTETS end the connection by a Terminate with CODE, and END's memory is unchanged."""
    conn.stream.send(octets)
    terminated(conn, code, blame)
    end.ended(event)
    end.unchanged()
    end.close()


@case("wrong", "no receive for an immediate", rdmap.IMMEDIATE)
@case("wrong", "no receive for a solicited immediate", rdmap.IMMEDIATE_SOLICITED)
def no_receive(place, opcode):
    end, conn = opened(place)
    octets, blame = immediate(end, conn, opcode=opcode)
    refuses(end, conn, octets, "1/2/02", blame, FATAL)


@case("wrong", "more immediates than receives")
def too_many(place):
    end, conn = opened(place)
    numbers = [end.recv() for _ in range(3)]
    segments = [conn.segment(rdmap.IMMEDIATE, msn=n + 1, payload=struct.pack(">II", n, 0))
                for n in range(4)]
    conn.stream.send(conn.encode(segments))
    terminated(conn, "1/2/02", [segments[3].encode()])
    expect([end.completion(n)[4] for n in numbers], [0, 1, 2], "immediates")
    end.ended(FATAL)
    end.close()


@case("wrong", "a request again", replayed, {}, "1/2/03", 1)
@case("wrong", "more operations than agreed on", flood, {"kinds": ("atomic",)}, "1/2/02", 8)
@case("wrong", "more operations and Reads than agreed on", flood, {"kinds": ("atomic", "read")},
      "1/2/02", 4)
@case("wrong", "more Reads and operations than agreed on", flood, {"kinds": ("read", "atomic")},
      "1/2/02", 4)
def at_most(place, how, args, code, most):
    """The first is right, so it may have been executed; but nothing twice, nor too much."""
    end, conn = opened(place)
    end.poke(WORD, 0)
    octets, blame = how(end, conn, **args)
    if how is replayed:
        conn.reads.append([request(end), 0])
    conn.stream.send(octets)
    terminated(conn, code, blame)
    executed = end.peek(WORD)
    if executed > most:
        raise Failed(f"{executed} were executed, not {most}")
    expect(conn.originals, list(range(len(conn.originals))), "original values")
    end.ended(FATAL if code == "1/2/02" else REQ)
    end.close()


@case("wrong", "no right of the QP", single.RREAD)
@case("wrong", "no right of the QP to read", single.RWRITE)
@case("wrong", "no right of the QP at all", 0)
def qp_rights(place, rights):
    end, conn = opened(place)
    end.command("access", rights)
    octets, blame = target(end, conn)
    refuses(end, conn, octets, "0/1/02", blame, ACC)


@case("wrong", "the QP's right for atomics is enough")
def qp_right(place):
    end, conn = opened(place)
    end.command("access", single.ATOMIC)
    end.poke(WORD, 7)
    conn.operate(request(end))
    conn.wait(lambda: not conn.reads, single.PATIENCE)
    expect((conn.originals, end.peek(WORD)), ([7], 8), "values")
    end.close()


@case("wrong", "memory of another protection domain")
def other_pd(place):
    other, _ = opened(place)
    end, conn = opened(place, "connect")
    octets, blame = target(other, conn)
    conn.stream.send(octets)
    terminated(conn, "0/1/03", blame)
    end.ended(ACC)
    other.unchanged()
    end.close()
    other.close()


# --- answers -----------------------------------------------------------------


def asked(place, *opcodes, role="listen", **how):
    """The consumer has asked with these opcodes, and the peer has not answered."""
    end, conn = opened(place, role, **how)
    served(conn)
    conn.answer_reads = False
    numbers = [end.post(opcode, BASE, SERVED, (1, 0, 0, 0), 8192 + 8 * n)
               for n, opcode in enumerate(opcodes)]
    for _ in numbers:
        conn.receive()
    return end, conn, numbers


def answer(conn, n=0, size=12, **fields):
    """A Response to operation N, with faults."""
    wrong_id = fields.pop("id", 0)
    payload = atomic.Response(conn.atomics[n].id ^ wrong_id, OLD).encode() + bytes(20)
    fields.setdefault("msn", conn.msn[3])
    return conn.segment(rdmap.ATOMIC_RESPONSE, payload=payload[:size], **fields)


def read_answer(conn):
    return conn.segment(rdmap.READ_RESPONSE, stag=SINK, to=0, payload=bytes(8))


ADD, RD = single.FETCH_ADD, single.READ
BAD, FLUSHED = single.BAD_RESP, single.FLUSH
# Name, what the consumer has asked, the answers, Terminate, statuses
ANSWERS = [
    ("another identifier", (ADD,), lambda c: [answer(c, id=1)], "0/2/07", (BAD,), FATAL),
    ("the second before the first", (ADD, ADD), lambda c: [answer(c, 1)], "0/2/07", (BAD, FLUSHED),
     FATAL),
    ("the second before the first, by its number", (ADD, ADD), lambda c: [answer(c, 1, msn=2)],
     "1/2/03", (BAD, FLUSHED), FATAL),
    ("number 0", (ADD,), lambda c: [answer(c, msn=0)], "1/2/03", (BAD,), FATAL),
    ("the answer twice", (ADD,), lambda c: [answer(c), answer(c, msn=2)], "0/2/06", (0,), FATAL),
    ("the answer twice, with one number", (ADD, ADD), lambda c: [answer(c), answer(c)], "1/2/03",
     (0, BAD), FATAL),
    ("the answer twice, as that to the next", (ADD, ADD), lambda c: [answer(c), answer(c, msn=2)],
     "0/2/07", (0, BAD), FATAL),
    ("an answer before that to a Read", (RD, ADD), lambda c: [answer(c)], "0/2/06", (BAD, FLUSHED),
     FATAL),
    ("a Read's answer to an operation", (ADD,), lambda c: [read_answer(c)], "0/2/06", (BAD,),
     FATAL),
    ("an answer to a Read", (RD,), lambda c: [c.segment(rdmap.ATOMIC_RESPONSE, payload=bytes(12))],
     "0/2/06", (BAD,), FATAL),
    ("an answer of 11 octets", (ADD,), lambda c: [answer(c, size=11)], "0/2/ff", (FLUSHED,), FATAL),
    ("an empty answer", (ADD,), lambda c: [answer(c, size=0)], "0/2/ff", (FLUSHED,), FATAL),
    ("an answer with more to come", (ADD,), lambda c: [answer(c, last=False)], "0/2/ff", (FLUSHED,),
     FATAL),
    ("an answer with an offset", (ADD,), lambda c: [answer(c, mo=4)], "1/2/04", (FLUSHED,), FATAL),
    *((f"an answer on queue {qn}", (ADD,), lambda c, qn=qn: [answer(c, qn=qn)], "0/2/06",
       (FLUSHED,), FATAL) for qn in (0, 1, 2)),
    ("an answer on queue 4", (ADD,), lambda c: [answer(c, qn=4)], "1/2/01", (FLUSHED,), FATAL),
    ("an answer that is tagged", (ADD,), lambda c: [answer(c, tagged=True)], "0/2/06", (FLUSHED,),
     FATAL),
    ("an answer of RDMAP 2", (ADD,), lambda c: [answer(c, rdmap_version=2)], "0/2/05", (FLUSHED,),
     FATAL),
]


def answered(place, opcodes, how, code, statuses, event, role):
    end, conn, numbers = asked(place, *opcodes, role=role)
    segments = how(conn)
    conn.stream.send(conn.encode(segments))
    terminated(conn, code, [segments[-1].encode()])
    end.ended(event)
    expect(end.statuses(numbers), list(statuses), "statuses")
    right = statuses.count(0)
    if right:
        expect(consumer_word(end, 0), OLD, "original value")
    end.unchanged(8192, 8192 + 8 * right)
    end.close()


for name, *entry in ANSWERS:
    case("answers", name, *entry, "listen")(answered)
    case("answers", f"{name}; connect", *entry, "connect")(answered)


@case("answers", "an answer of 32 octets", 32)
@case("answers", "an answer of 13 octets", 13)
def longer(place, size):
    """Section 4 of the RFC and its figure 6 differ."""
    end, conn, numbers = asked(place, ADD)
    conn.stream.send(conn.encode([answer(conn, size=size)]))
    expect(end.statuses(numbers), [0])
    expect(consumer_word(end, 0), OLD, "original value")
    end.unchanged(8192, 8200)
    end.close()


def quote(asked_of, n=0, opcode=rdmap.ATOMIC_REQUEST, qn=1, msn=None):
    seg = asked_of.segment(opcode, qn=qn, msn=n + 1 if msn is None else msn)
    return struct.pack(">H", 70) + seg.encode()


INV, GEN, ACCESS = single.INVALID, single.REM_OP, single.ACCESS
# Name, what was asked, how many of it are answered, the Terminate, what it quotes, statuses
TERMINATES = [
    ("the second of three", (ADD, ADD, ADD), 0, (0, 1, 2), {"n": 1}, (FLUSHED, ACCESS, FLUSHED)),
    ("the first of two", (ADD, ADD), 0, (0, 1, 0), {"n": 0}, (ACCESS, FLUSHED)),
    ("behind one that is answered", (ADD, ADD), 1, (0, 2, 7), {"n": 1}, (0, GEN)),
    ("one that has been answered", (ADD, ADD), 1, (0, 2, 7), {"n": 0}, (0, GEN)),
    ("between Reads", (RD, ADD, RD), 0, (0, 1, 3), {"n": 1}, (FLUSHED, ACCESS, FLUSHED)),
    ("a Read behind it", (ADD, RD), 0, (0, 1, 1), {"n": 1, "opcode": rdmap.READ_REQUEST},
     (FLUSHED, ACCESS)),
    ("one that there is not", (ADD, ADD), 0, (0, 1, 2), {"n": 76}, (ACCESS, FLUSHED)),
    ("an Atomic Response", (ADD,), 0, (0, 2, 6), {"opcode": rdmap.ATOMIC_RESPONSE, "qn": 3},
     (INV,)),
    ("unknown opcode", (ADD,), 0, (0, 2, 6), {}, (INV,)),
    ("unknown opcode, as siw says it", (ADD,), 0, (2, 0, 6), None, (single.GENERAL,)),
    ("misaligned", (ADD,), 0, (0, 2, 7), {}, (GEN,)),
    ("no buffer", (ADD,), 0, (1, 2, 2), {}, (GEN,)),
    ("nothing", (ADD, ADD), 0, (0, 1, 2), None, (ACCESS, FLUSHED)),
]


@case("answers", "an immediate that the peer does not know", 0)
@case("answers", "a Write with immediate that the peer does not know", 8)
def immediate_refused(place, size):
    """It has completed. The Terminate is about it, so what comes later gets the status."""
    end, conn = opened(place)
    served(conn)
    conn.answer_reads = False
    told = end.post(single.WRITE_IMM, BASE, SERVED, (1, 0, 0, 0), 0, size)
    conn.wait(lambda: conn.immediates, single.PATIENCE)
    expect(end.completion(told)[0], 0, "completion")
    number = end.post(ADD, BASE, SERVED, (1, 0, 0, 0))
    conn.receive()
    said = conn.segment(rdmap.TERMINATE, payload=bytes((2, 6, 0xc0, 0)) +
                        quote(conn, opcode=IN, qn=0, msn=1))
    conn.stream.send(conn.encode([said]))
    finished(conn)
    conn.stream.close()
    end.ended(FATAL)
    expect(end.completion(number)[0], INV, "the operation behind it")
    end.close()


def told(place, opcodes, done, code, quoted, statuses):
    """The peer ends the connection, and quotes a request: this one has the status, others none."""
    end, conn, numbers = asked(place, *opcodes)
    for n in range(done):
        conn.stream.send(conn.encode(conn.answer(conn.atomics[n], OLD)))
    head = b"" if quoted is None else quote(conn, **quoted)
    control = bytes((code[0] << 4 | code[1], code[2], 0 if quoted is None else 0xc0, 0))
    conn.stream.send(conn.encode([conn.segment(rdmap.TERMINATE, payload=control + head)]))
    finished(conn)
    conn.stream.close()
    end.ended(FATAL)
    expect(end.statuses(numbers), list(statuses), "statuses")
    end.close()


for name, *entry in TERMINATES:
    case("answers", f"a Terminate: {name}", *entry)(told)


@case("answers", "no ORD", ADD)
@case("answers", "no ORD; CmpSwap", single.CMP_SWAP)
def no_depth(place, opcode):
    """RFC 7306 8.1 (1): a Terminate instead of the message, without headers."""
    end, conn = opened(place, ord_=0)
    number = end.post(opcode, BASE, SERVED)
    terminated(conn, "0/0/00", [])
    end.ended(FATAL)
    expect(end.completion(number)[0], single.QP_OP, "status")
    end.close()


@case("answers", "the peer closes instead of answering")
def closes(place):
    end, conn, numbers = asked(place, ADD, RD, ADD)
    conn.stream.finish()
    finished(conn)
    conn.stream.close()
    end.ended()
    expect(end.statuses(numbers), [FLUSHED] * 3, "statuses")
    end.unchanged()
    end.close()


# --- memory ------------------------------------------------------------------


class Mine:
    """Memory of this process, and the region."""

    def __init__(self, end, access, skip=0, prot=mmap.PROT_READ | mmap.PROT_WRITE):
        self.room = mmap.mmap(-1, 3 * mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.room))
        if prot != mmap.PROT_READ | mmap.PROT_WRITE:
            expect(ctypes.CDLL(None).mprotect(ctypes.c_void_p(self.address), len(self.room), prot),
                   0, "mprotect")
        end.expose("user", self.address + skip, len(self.room) - 2 * skip, access)

    def word(self, at):
        return struct.unpack_from("<Q", self.room, at)[0]


@case("memory", "of a process")
def of_a_process(place):
    """The word is aligned in memory, although the region is not."""
    end, conn = place.pair()
    end.command("access", single.RREAD | single.RWRITE)
    mine = Mine(end, RIGHTS, skip=5)
    last = mmap.PAGESIZE - 8
    for at in (8, last, mmap.PAGESIZE, 3 * mmap.PAGESIZE - 16):
        for _ in range(5):
            conn.operate(atomic.Request(end.stag, end.to + at - 5))
        conn.wait(lambda: not conn.reads, single.PATIENCE)
        expect(mine.word(at), 5, f"word at {at}")
    expect(sum(mine.room[:]), 4 * 5, "all octets")
    octets, blame = target(end, conn, at=8 - 5 + 4)
    conn.stream.send(octets)
    terminated(conn, "0/2/07", blame)
    expect(sum(mine.room[:]), 4 * 5, "all octets")
    end.close()


@case("memory", "of a process that may not write it")
def read_only(place):
    end, _ = place.pair()
    try:
        Mine(end, RIGHTS, prot=mmap.PROT_READ)
    except OSError:
        end.close()
        return
    raise Failed("the region was registered")


@case("memory", "no right to write it locally", single.ATOMIC)
@case("memory", "no right to write it locally, but to read", single.ATOMIC | single.RREAD)
def no_local_right(place, access):
    end, _ = place.pair()
    for how in (lambda: Mine(end, access), lambda: end.expose("expose", access)):
        try:
            how()
        except OSError:
            continue
        raise Failed("the region was registered")
    end.close()


@case("memory", "all memory of the kernel")
def all_memory(place):
    """The core gives its global rkey no right for atomics."""
    end, conn = place.pair(unsafe=True)
    end.command("access", single.RREAD | single.RWRITE | single.ATOMIC)
    end.expose("unsafe")
    octets, blame = target(end, conn)
    refuses(end, conn, octets, "0/1/02", blame, ACC)


@case("memory", "deregistered before", "dereg")
@case("memory", "invalidated before", "inv")
def gone(place, how):
    end, conn = opened(place)
    if how == "inv":
        end.command(how, 900)
        expect(end.completion(900)[0], 0, "invalidation")
    else:
        end.command(how)
    octets, blame = target(end, conn)
    refuses(end, conn, octets, "0/1/00", blame, ACC)


def stream_of(conn, end, seconds, window=8):
    """Operates with WINDOW requests outstanding, until the connection ends."""
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        while len(conn.reads) < window:
            conn.operate(request(end))
        conn.receive()


@case("memory", "deregistered meanwhile", "dereg")
@case("memory", "invalidated meanwhile", "inv")
def going(place, how):
    """Each Response counts: what the word has is their number, and that of the requests at most."""
    for n in range(15):
        end, conn = opened(place)
        end.poke(WORD, 0)
        stream_of(conn, end, 0.01 + 0.003 * n)
        end.command(*((how, 900) if how == "inv" else (how,)))
        before = end.peek(WORD)
        try:
            stream_of(conn, end, single.PATIENCE)
            raise Failed("no end")
        except rdmap.Terminated as term:
            expect("{layer}/{etype}/{code}".format(**term.args[0]), "0/1/00", "Terminate")
        except OSError:
            pass        # what was sent after the end of the stream resets it
        expect(conn.originals, list(range(len(conn.originals))), "original values")
        word = end.peek(WORD)
        if how == "dereg":
            expect(word, before, "the word after the region was gone")
        if not len(conn.originals) <= word <= len(conn.originals) + 8:
            raise Failed(f"{word} executed, {len(conn.originals)} answered")
        end.unchanged(WORD, WORD + 8)
        end.close()


def sink(place, kind):
    """A connection, and a region for what the consumer asks for: of a process, or a fast one."""
    end, conn = place.pair()
    mine = Mine(end, single.LOCAL) if kind == "process" else None
    if not mine:
        end.expose("expose", single.LOCAL)
    end.command("through")
    served(conn)
    conn.answer_reads = False
    return end, conn, mine


def withdrawn(end, conn, how):
    """The region is gone. An invalidation completes behind what is outstanding, and has been executed
    when a Send after it arrives."""
    if how == "inv":
        end.command("inv", 900)
        end.post(single.SEND, size=0)
        expect(conn.receive().opcode, rdmap.SEND, "opcode")
    else:
        end.command(how)


SINKS = (("fast", "dereg", "deregistered"), ("fast", "inv", "invalidated"),
         ("process", "dereg", "deregistered, of a process"))


def read_sink(place, kind, how):
    """The middle of the Response has been placed; nothing of the rest is."""
    end, conn, mine = sink(place, kind)
    numbers = [end.post(RD, BASE, SERVED, at=WORD, size=size) for size in (200, 8)]
    asked = [conn.receive() and conn.asked for _ in numbers]
    octets = bytes(range(1, 201))
    parts = [conn.segment(rdmap.READ_RESPONSE, stag=asked[0].sink_stag, to=asked[0].sink_to + at,
                          payload=octets[at:at + 50], last=at == 150) for at in range(0, 200, 50)]
    conn.stream.send(conn.encode(parts[:2]))
    placed = struct.unpack("<Q", octets[92:100])[0]
    end.until(lambda: (mine.word(WORD + 92) if mine else end.peek(WORD + 92)) == placed,
              "the first half is not there")
    withdrawn(end, conn, how)
    conn.stream.send(conn.encode(parts[2:]))
    terminated(conn, "0/0/00", [])
    end.ended(FATAL)
    expect(end.statuses(numbers), [single.PROT, FLUSHED], "statuses")
    if mine:
        expect(mine.room[WORD:WORD + 200], octets[:100] + bytes(100), "memory of the process")
    else:
        end.unchanged(WORD, WORD + 100)
    end.close()


def operation_sink(place, kind, how):
    """The region for the original value goes before the Response arrives."""
    end, conn, mine = sink(place, kind)
    number = end.post(ADD, BASE, SERVED, (1, 0, 0, 0), WORD)
    conn.receive()
    withdrawn(end, conn, how)
    conn.stream.send(conn.encode([answer(conn)]))
    terminated(conn, "0/0/00", [])
    end.ended(FATAL)
    expect(end.completion(number)[0], single.PROT, "status")
    if mine:
        expect(sum(mine.room[:]), 0, "memory of the process")
    else:
        end.unchanged()
    end.close()


for kind, how, text in SINKS:
    case("memory", f"the sink of a Read meanwhile: {text}", kind, how)(read_sink)
    case("memory", f"the sink of an operation meanwhile: {text}", kind, how)(operation_sink)


@case("memory", "the QP goes meanwhile", "kernel")
@case("memory", "the QP and a process's memory go meanwhile", "process")
def qp_goes(place, memory):
    for n in range(15):
        end, conn = place.pair()
        end.command("access", single.RREAD | single.RWRITE)
        mine = Mine(end, RIGHTS) if memory == "process" else None
        if not mine:
            end.expose("expose", RIGHTS)
        stream_of(conn, end, 0.005 + 0.002 * n)
        end.close()
        after = mine.word(WORD) if mine else 0
        try:
            stream_of(conn, end, single.PATIENCE)
            raise Failed("no end")
        except (EOFError, OSError, rdmap.Terminated):
            pass
        expect(mine.word(WORD) if mine else 0, after, "the word after the QP was gone")
        conn.stream.close()


# --- without RFC 7306 --------------------------------------------------------


OFF = [
    ("a request", target, {}, "0/2/06", REQ),
    ("a response", response, {}, "0/2/06", FATAL),
    ("an immediate", immediate, {}, "0/2/06", REQ),
    ("a solicited immediate", immediate, {"opcode": rdmap.IMMEDIATE_SOLICITED}, "0/2/06", REQ),
    ("a Send on queue 3", immediate, {"opcode": rdmap.SEND, "qn": 3}, "1/2/01", REQ),
]
for name, *entry in OFF:
    for side in ("listen", "connect"):
        case("off", f"without RFC 7306: {name}; {side}", *entry, {}, side)(refused)


@case("off", "without RFC 7306: what the consumer posts")
def cannot_post(place):
    end, conn = opened(place)
    for opcode in (single.WRITE_IMM, *POSTED):
        try:
            end.post(opcode, BASE, SERVED)
        except OSError as error:
            expect(error.errno, 95, "errno")
            continue
        raise Failed(f"opcode {opcode} was posted")
    number = end.recv()
    conn.send(b"and on")
    expect(end.completion(number)[0], 0, "a Send")
    end.close()


# --- modified sessions -------------------------------------------------------


def session(conn, end):
    """The FPDUs of a valid session: each message of RFC 7306, and others."""
    size = 1000
    segments = conn.untagged(rdmap.IMMEDIATE, b"i" * 8)
    segments += conn.ask(request(end))
    segments += conn.tagged(rdmap.WRITE, end.stag, end.to + WORD + 8, b"w" * size)
    segments += conn.untagged(rdmap.IMMEDIATE_SOLICITED, b"e" * 8)
    read = rdmap.ReadRequest(SINK, BASE, size, end.stag, end.to + WORD + 8)
    conn.reads.append([read, 0])
    segments += conn.untagged(rdmap.READ_REQUEST, rdmap.encode_read(read))
    segments += conn.ask(request(end, code=atomic.CMP_SWAP, compare=1, data=5, mask=atomic.ALL))
    for number in conn.atomics:
        segments += conn.answer(number, OLD)
    segments += conn.untagged(rdmap.SEND, b"s" * 40)
    return [mutate.Fpdu(seg.encode()) for seg in segments]


def one_session(place, number):
    """Nobody may write outside of the memory that is granted, whatever comes."""
    rand = random.Random(SEED * 1000003 + number)
    valid = number % 10 == 0
    role = rand.choice(("listen", "connect"))
    end, conn = place.pair(role, rand.choice(FRAMINGS[:4]))
    conn.stream.extend(single.PATIENCE)
    end.command("access", single.RREAD | single.RWRITE)
    end.expose("expose", RIGHTS)
    conn.regions[SINK] = rdmap.Region(SINK, BASE, 1000)
    conn.answer_reads = False
    receives = [end.recv(64 * n) for n in range(4)]
    end.poke(WORD, 0)
    posted = [end.post(opcode, BASE, SERVED, (1, 0, 0, 0), 4096 + 8 * n)
              for n, opcode in enumerate((ADD, single.CMP_SWAP))]
    conn.wait(lambda: len(conn.atomics) == 2, single.PATIENCE)
    fpdus = session(conn, end)
    if not valid:
        mutate.change(fpdus, rand)
    conn.stream.send(b"".join(conn.tx.encode(bytes(f.ulpdu), **f.wrong) for f in fpdus))
    if valid:
        conn.wait(lambda: not conn.reads, single.PATIENCE)
        expect(conn.originals, [0, 1], "original values")
        expect(end.statuses(posted), [0, 0], "operations")
        expect(end.statuses(receives[:3]), [0, 0, 0], "receives")
        expect(end.peek(WORD), 5, "the word")
    conn.stream.finish()
    with contextlib.suppress(EOFError, OSError, rdmap.Terminated, rdmap.RdmapError, ddp.DdpError,
                             atomic.AtomicError):
        while True:
            conn.receive()
    conn.stream.close()
    end.until(lambda: single.DISCONNECTED in end.events()[0], "not disconnected")
    end.statuses(posted)
    end.close()


@case("changed", "sessions with modifications")
def sessions(place):
    for number in range(SESSIONS):
        try:
            one_session(place, number)
        except Exception as error:
            raise Failed(f"session {number} of seed {SEED}") from error


def main(netns_a, a4, netns_b, b4, *groups):
    place, count = single.Place(netns_a, a4, netns_b, b4), 0
    for group in groups:
        for name, function, args, how in CASES[group]:
            count += 1
            try:
                function(place, *args, **how)
                print(f"ok {name}", flush=True)
            except (Failed, OSError, EOFError, mpa.MpaError, ddp.DdpError, rdmap.RdmapError,
                    rdmap.Terminated, atomic.AtomicError):
                traceback.print_exc(file=sys.stdout)
                print(f"not ok {name}", flush=True)
            place.close()
    print(count)


main(*sys.argv[1:])
