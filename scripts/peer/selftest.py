#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tests the peer against the examples in the RFCs, slower reference code, and itself:
python3 -m peer.selftest. Needs no network and no privileges."""

import itertools
import json
import random
import socket
import struct
import threading
import time
import unittest

from peer import atomic, cli, crc32c, ddp, faults, mpa, rdmap, rping, startup, stream

FIGURE_5 = bytes.fromhex("00000000002a41430000000000000000000000010000000000" + "00" * 23 +
                         "52239983")
FIGURE_6 = bytes.fromhex("002a4143000000000000000000000002" + "00000000" + "00000014" +
                         "00" * 24 + "84925898")


def slow_crc(data):
    crc = 0xffffffff
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def slow_markers(stream, fpdus):
    """Reference code: appends FPDUs (bodies without CRC) with markers, octet by octet."""
    for body in fpdus:
        whole, start = bytearray(), None
        crc_at = len(body)
        for at in range(crc_at + 1):
            if (len(stream) + len(whole)) % 512 == 0:
                here = len(stream) + len(whole)
                whole += struct.pack(">HH", 0, 0 if start is None else here - start)
            if at == 0:
                start = len(stream) + len(whole)
            if at < crc_at:
                whole.append(body[at])
        whole += struct.pack("<I", slow_crc(whole))
        stream += whole
    return stream


def send_ulpdu(msn, size):
    return ddp.Segment(rdmap.SEND, msn=msn, payload=bytes(size)).encode()


class Crc(unittest.TestCase):
    def test_rfc3720_examples(self):
        for data, wanted in ((bytes(32), "aa36918a"), (b"\xff" * 32, "43aba862"),
                             (bytes(range(32)), "4e79dd46"),
                             (bytes(range(31, -1, -1)), "5cdb3f11")):
            self.assertEqual(crc32c.field(data).hex(), wanted)

    def test_every_length(self):
        data = random.Random(1).randbytes(100)
        for size in range(len(data)):
            self.assertEqual(crc32c.crc32c(data[:size]), slow_crc(data[:size]))


class Framing(unittest.TestCase):
    def test_rfc5044_figure_5(self):
        self.assertEqual(mpa.Writer(True, True).encode(send_ulpdu(1, 24)), FIGURE_5)

    def test_rfc5044_figure_6(self):
        writer = mpa.Writer(True, True)
        first = writer.encode(send_ulpdu(1, 492 - 4 - 2 - 18 - 4))
        self.assertEqual(len(first), 492)
        self.assertEqual(writer.encode(send_ulpdu(2, 24)), FIGURE_6)
        reader = mpa.Reader(True, True)
        reader.feed(first + FIGURE_6)
        self.assertIsNotNone(reader.next())
        self.assertEqual(reader.next(), send_ulpdu(2, 24))

    def test_figure_4(self):
        """A marker in the middle of the ULPDU."""
        writer = mpa.Writer(True, True)
        writer.pos = 500
        octets = writer.encode(bytes(16))
        self.assertEqual(octets[:20].hex(), "0010" + "00" * 10 + "0000000c" + "00" * 4)
        self.assertEqual(len(octets), 28)

    def test_markers_against_the_slow_way(self):
        rand = random.Random(2)
        for _ in range(50):
            sizes = [rand.choice((rand.randint(14, 90), rand.randint(14, 2000)))
                     for _ in range(20)]
            ulpdus = [rand.randbytes(size) for size in sizes]
            writer = mpa.Writer(True, True)
            bodies = [struct.pack(">H", len(u)) + u + bytes(-(2 + len(u)) % 4) for u in ulpdus]
            fast = b"".join(map(writer.encode, ulpdus))
            self.assertEqual(fast, bytes(slow_markers(bytearray(), bodies)))
            reader, got = mpa.Reader(True, True), []
            reader.feed(fast)
            self.assertEqual(list(iter(reader.next, None)), ulpdus, got)

    def test_every_start(self):
        """An FPDU at each position between two markers, also with a marker before PAD and CRC."""
        for start, size in itertools.product(range(0, 512, 4), (14, 15, 16, 17, 500, 1100)):
            writer, reader = mpa.Writer(True, True), mpa.Reader(True, True)
            writer.pos = reader.pos = start
            ulpdu = random.Random(start).randbytes(size)
            reader.feed(writer.encode(ulpdu))
            self.assertEqual((reader.next(), reader.pos), (ulpdu, writer.pos))

    def test_octet_by_octet(self):
        for crc, markers in itertools.product((True, False), repeat=2):
            writer, reader = mpa.Writer(crc, markers), mpa.Reader(crc, markers)
            ulpdus = [bytes([n]) * (14 + 97 * n) for n in range(12)]
            got = []
            for octet in b"".join(map(writer.encode, ulpdus)):
                reader.feed(bytes([octet]))
                got += iter(reader.next, None)
            self.assertEqual(got, ulpdus)

    def test_every_bit_counts(self):
        good = mpa.Writer(True, True).encode(send_ulpdu(1, 24))
        for bit in range(6 * 8, len(good) * 8):
            bad = bytearray(good)
            bad[bit // 8] ^= 1 << bit % 8
            reader = mpa.Reader(True, True)
            reader.feed(bad)
            self.assertRaises(mpa.MpaError, reader.next)

    def test_wrong_markers_are_seen(self):
        for name in ("marker-pointer", "marker-zero", "marker-between", "marker-reserved",
                     "marker-position"):
            conn = rdmap.Connection(None, crc=True, tx_markers=True)
            octets, _ = faults.NAMES[name][0](conn, None, name)
            reader = mpa.Reader(True, True)
            reader.feed(octets + bytes(600))
            with self.assertRaises(mpa.MpaError, msg=name):
                list(iter(reader.next, None))


class Startup(unittest.TestCase):
    def round_trip(self, frame):
        octets = frame.encode()
        got, length = mpa.decode_head(octets[:20])
        self.assertEqual(length, len(octets) - 20)
        self.assertEqual(mpa.decode_body(got, octets[20:]), frame)

    def test_round_trips(self):
        rtrs = [frozenset(c) for n in range(4) for c in itertools.combinations(mpa.RTR_BITS, n)]
        for key, markers, crc, reject in itertools.product(
                (mpa.KEY_REQUEST, mpa.KEY_REPLY), *[(False, True)] * 3):
            for rev in (0, 1, 2):
                self.round_trip(mpa.Frame(key, rev, markers, crc, reject, pdata=b"private"))
            for rtr, depth in itertools.product(rtrs, (0, 1, 0x3fff)):
                self.round_trip(mpa.Frame(key, 2, markers, crc, reject, depth, 7, True, rtr))

    def test_octets(self):
        """The frames of RFC 5044 figure 8 and RFC 6581 figure 6, written out by hand."""
        frame = mpa.Frame(ird=3, ord=4, p2p=True, rtr=frozenset(("write",)), pdata=b"xy")
        self.assertEqual(frame.encode(), b"MPA ID Req Frame\x50\x02\x00\x06\x80\x03\x80\x04xy")
        frame = mpa.Frame(mpa.KEY_REPLY, rev=1, markers=True, crc=False, reject=True)
        self.assertEqual(frame.encode(), b"MPA ID Rep Frame\xa0\x01\x00\x00")

    def test_bad_frames(self):
        for head in (b"MPA ID req Frame\x40\x01\0\0", b"MPA ID Req Frame\x40\x01\x02\x01",
                     b"MPA ID Req Frame\x41\x01\0\0", b"MPA ID Req Frame\x50\x02\0\x02",
                     b"MPA ID Req Frame\x50\x01\0\x04"):
            self.assertRaises(mpa.MpaError, mpa.decode_head, head)


class Messages(unittest.TestCase):
    def test_segments(self):
        segs = [ddp.Segment(rdmap.SEND_INVALIDATE, stag=5, msn=0xffffffff, mo=9, payload=b"a"),
                ddp.Segment(rdmap.WRITE, tagged=True, last=False, stag=1, to=1 << 63),
                ddp.Segment(rdmap.READ_REQUEST, qn=1, ddp_version=0, rdmap_version=0)]
        for seg in segs:
            self.assertEqual(ddp.decode(seg.encode()), seg)
        self.assertEqual(segs[0].encode().hex(), "414400000005" + "00000000" + "ffffffff" +
                         "00000009" + "61")
        self.assertEqual(segs[1].encode().hex(), "8140" + "00000001" + "80" + "00" * 7)

    def test_terminates(self):
        """RFC 5040 figures 7 and 8: octets in which a compiler might swap bit fields."""
        head = send_ulpdu(3, 0)
        term = rdmap.decode_terminate(bytes.fromhex("1202c000") + b"\x00\x22" + head)
        self.assertEqual((term["layer"], term["etype"], term["code"]), (1, 2, "02"))
        self.assertEqual((term["m"], term["d"], term["r"]), (True, True, False))
        self.assertEqual((term["length"], term["ddp"]), (0x22, head.hex()))
        for bad in ("120200", "12020001", "12021000", "1202000000"):
            self.assertRaises(rdmap.RdmapError, rdmap.decode_terminate, bytes.fromhex(bad))

    def test_blame(self):
        conn, ulpdu = rdmap.Connection(None), send_ulpdu(3, 8)
        head = bytes.fromhex("4147" + "00000000" + "00000002" + "00000001" + "00000000")
        right = head + bytes.fromhex("1203c000") + struct.pack(">H", len(ulpdu)) + ulpdu[:18]

        def wrong(octets, code=(1, 2, 3), blame=ulpdu):
            return faults.contradiction(conn, {"ulpdu": octets.hex()}, code, [blame])

        self.assertIsNone(wrong(right))
        for bit in range(8 * len(right)):
            changed = bytearray(right)
            changed[bit // 8] ^= 1 << bit % 8
            self.assertIsNotNone(wrong(changed))
        self.assertIsNotNone(wrong(right, blame=send_ulpdu(4, 8)))
        self.assertIsNotNone(wrong(right, blame=send_ulpdu(3, 9)))
        self.assertIsNotNone(wrong(head + bytes.fromhex("12030000")))
        self.assertIsNone(wrong(head + bytes.fromhex("20020000"), (2, 0, 2)))

    def test_blame_read(self):
        """RFC 5040 4.8: with R, the Read Request is advanced by the octets that were answered."""
        conn = rdmap.Connection(None)
        seg = conn.segment(rdmap.READ_REQUEST, payload=rdmap.encode_read((1, 2, 100, 3, 4)))
        ulpdu = seg.encode()
        now = ulpdu[:18] + rdmap.encode_read((1, 42, 60, 3, 44))
        payload = bytes.fromhex("0100e000") + struct.pack(">H", len(ulpdu)) + now
        term = {"ulpdu": conn.segment(rdmap.TERMINATE, payload=payload).encode().hex()}
        self.assertIsNone(faults.contradiction(conn, term, (0, 1, 0), [ulpdu], 40))
        self.assertIsNotNone(faults.contradiction(conn, term, (0, 1, 0), [ulpdu], 41))

    def test_rfc7306_appendix_a(self):
        """The segments of A.1, A.2 and A.3, written out by hand."""
        conn = rdmap.Connection(None)
        ask = atomic.Request(0x11121314, 0x2122232425262728, 3, 4, 5, 6, atomic.CMP_SWAP, 7)
        segment, = conn.ask(ask)
        self.assertEqual(segment.encode().hex(), "414a" + "00000000" + "00000001" + "00000001" +
                         "00000000" + "00000002" + "00000007" + "11121314" + "2122232425262728" +
                         "".join(f"{n:016x}" for n in (3, 4, 5, 6)))
        self.assertEqual(atomic.Request.decode(segment.payload), ask)
        segment, = conn.answer(ask, 0x3132333435363738)
        self.assertEqual(segment.encode().hex(), "414b" + "00000000" + "00000003" + "00000001" +
                         "00000000" + "00000007" + "3132333435363738")
        segment, = conn.untagged(rdmap.IMMEDIATE_SOLICITED, b"12345678")
        self.assertEqual(segment.encode().hex(), "4149" + "00000000" + "00000000" + "00000001" +
                         "00000000" + b"12345678".hex())
        for size in (0, 51, 53):
            self.assertRaises(atomic.AtomicError, atomic.Request.decode, bytes(size))

    def test_rfc7306_operations(self):
        """Against arithmetic on whole fields, and by hand."""
        rand = random.Random(7306)
        for width in (1, 2, 8, 16, 32, 64):
            tops = sum(1 << at for at in range(width - 1, 64, width))
            for mask in (tops, 0) if width == 64 else (tops,):
                old, data = rand.getrandbits(64), rand.getrandbits(64)
                wanted = sum((((old >> at) + (data >> at)) % (1 << width)) << at
                             for at in range(0, 64, width))
                self.assertEqual(atomic.Request(0, 0, data, mask).result(old), wanted)
        swap = atomic.Request(0, 0, 0xeeee, 0x0ff0, 0xff12, 0x00ff, atomic.CMP_SWAP)
        self.assertEqual((swap.result(0x7712), swap.result(0x7713)), (0x7ee2, 0x7713))

    def test_rfc7306_messages(self):
        """Both ends speak it: operations, a Read between them, immediates, and what is wrong."""
        ends = [rdmap.Connection(stream.Stream(sock, None, 30)) for sock in socket.socketpair()]
        one, two = ends
        self.addCleanup(lambda: [end.stream.close() for end in ends])
        for end in ends:
            end.extended = True
        two.regions[1] = rdmap.Region(1, 100, 16)
        one.regions[2] = rdmap.Region(2, 0, 8)
        one.operate(atomic.Request(1, 104, 5))
        one.read(rdmap.ReadRequest(2, 0, 8, 1, 104))
        one.operate(atomic.Request(1, 104, 1))
        one.immediate(b"12345678", True)
        two.wait(lambda: two.immediates, 30)
        one.wait(lambda: not one.reads, 30)
        self.assertEqual((one.originals, one.regions[2].data[0]), ([0, 5], 5))
        self.assertEqual(two.immediates.popleft(), (b"12345678", True))
        two.stream.send(two.encode(two.answer(atomic.Request(1, 104), 6)))
        self.assertRaises(rdmap.Misplaced, one.receive)
        one.ask(atomic.Request(1, 104))
        two.stream.send(two.encode(two.answer(atomic.Request(1, 104, id=131072), 6)))
        self.assertRaises(rdmap.Misplaced, one.receive)
        one.immediate(b"1234567")
        self.assertRaises(rdmap.RdmapError, two.receive)
        two.extended = False
        one.immediate(b"12345678")
        self.assertRaises(rdmap.RdmapError, two.receive)

    def test_pattern(self):
        self.assertEqual(rping.pattern(23, 0), b"rdma-ping-0: ABCDEFGHI\0")
        self.assertEqual(rping.pattern(20, 57)[13:], b" zABCD\0")


class Itself(unittest.TestCase):
    """Both roles over a socket pair."""

    def pair(self, client, server):
        """Runs both ends; returns their results and the log lines."""
        socks = socket.socketpair()
        said, cases = [], []
        for role, sock, words in (("client", socks[0], client), ("server", socks[1], server)):
            opt = cli.parser().parse_args([role, "-", "--timeout", "60", *words.split()])
            cases.append(cli.Case(opt, said.append, sock))
        good = [None, None]

        def run(n):
            good[n] = cases[n].run()

        threads = [threading.Thread(target=run, args=(n,)) for n in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(good, [True, True], "\n".join([client, server, *said]))
        return said

    def both(self, words):
        self.pair(words, words)

    def test_revisions_markers_crc(self):
        for rev, markers, crc in itertools.product((1, 2), ("none", "tx", "rx", "both"),
                                                   ("on", "off")):
            other = {"tx": "rx", "rx": "tx"}.get(markers, markers)
            self.pair(f"--rev {rev} --markers {markers} --crc {crc}",
                      f"--rev {rev} --markers {other} --crc {crc}")

    def test_rdma_consortium(self):
        self.both("--rev 0 --size 5000")
        self.pair("--rev 0", "--rev 0 --crc off --markers tx")

    def test_plain_revision_2(self):
        self.pair("--plain", "")

    def test_one_wants_crc(self):
        self.pair("--crc on", "--crc off")
        self.pair("--crc off", "--crc on")

    def test_older_responder_of_plain(self):
        self.pair("--plain --rev 1", "--rev 2")

    def test_rtr(self):
        for kind in mpa.RTR_BITS:
            self.pair(f"--p2p --prefer {kind}", f"--want-rtr {kind} --want-p2p on")
            self.pair(f"--p2p --rtr {kind}", f"--want-rtr {kind}")
        self.pair("--p2p", "--rtr send --want-rtr send")

    def test_announcement(self):
        self.pair("--p2p --prefer write --announce --want-announced off", "--want-announced on")
        self.pair("--p2p --prefer write --want-announced off", "--want-announced off")
        self.pair("--p2p --prefer write --announce --want-announced on",
                  "--announce --want-announced on")
        with self.assertRaises(AssertionError):
            self.pair("--p2p --prefer write", "--want-announced on")

    def test_sizes_and_segments(self):
        for fpdu, segments in itertools.product((128, 1444, 64768),
                                                ("whole", "1-7", "1-700:9", "512")):
            for markers in ("none", "both"):
                self.both(f"--fpdu {fpdu} --segments {segments} --markers {markers} --size 4097")
        self.both("--segments 1 --size 300 --markers both")
        self.both("--fpdu 64768 --size 200000 --markers both --count 1")

    def test_depths(self):
        """RFC 6581 9.1: a depth of 0x3fff is answered by 0x3fff."""
        self.pair("--ird 0x3fff --ord 0x3fff", "")
        request = mpa.Frame(ird=mpa.DEPTH, ord=mpa.DEPTH)
        for ird, ord_ in ((7, mpa.DEPTH), (mpa.DEPTH, 7)):
            reply = mpa.Frame(mpa.KEY_REPLY, ird=ird, ord=ord_)
            self.assertRaises(mpa.MpaError, startup._check_reply, request, reply)

    def test_private_data_and_reject(self):
        said = self.pair("--pdata 616263 --expect reject", "--reject --pdata 646566 --expect close")
        self.assertTrue(any('"rejected", "pdata": "646566"' in line for line in said))

    def test_extra(self):
        self.pair("--fault extra", "")
        self.pair("--fault extra --markers rx", "--markers tx")

    def test_refuses_what_is_wrong(self):
        """The peer refuses wrong frames."""
        for name in ("bad-key", "wrong-role", "pd-513", "short-s", "reserved", "r-in-request"):
            with self.subTest(name), self.assertRaises(AssertionError):
                self.pair(f"--fault {name} --expect ended", "")

    def test_reset_after_terminate(self):
        """A Terminate must be followed by FIN; with a reset it could have been lost."""
        socks, said = socket.socketpair(), []
        words = ["client", "-", "--fault", "write-stag", "--expect", "term:1/1/00"]
        case = cli.Case(cli.parser().parse_args(words), said.append, socks[0])
        thread = threading.Thread(target=case.run)
        thread.start()
        there = stream.Stream(socks[1], stream.Segments("whole"), 60)
        conn = startup.responder(there, cli.parser().parse_args(["server", "-"]),
                                 lambda *_, **__: None)
        deadline = time.monotonic() + 30
        while not there.waiting():
            self.assertLess(time.monotonic(), deadline, "no FPDU of the client")
            time.sleep(0.01)
        there.send(conn.encode(conn.untagged(rdmap.TERMINATE, bytes.fromhex("11000000"))))
        # Closing with unread data sends a reset.
        there.close()
        thread.join()
        self.assertIn("after the Terminate: reset", said[-1])

    def heard(self, words, *parts, stays=False):
        """Runs a case whose other end sends PARTS, and then FIN unless it STAYS; returns why the case
        fails, or None."""
        socks, said = socket.socketpair(), []
        case = cli.Case(cli.parser().parse_args(words.split()), said.append, socks[0])
        socks[1].sendall(b"".join(parts))
        if not stays:
            socks[1].shutdown(socket.SHUT_WR)
        case.run()
        socks[1].close()
        return json.loads(said[-1])["why"]

    def test_octets_that_nobody_was_to_send(self):
        """Without a connection to decode them, octets are not ignored."""
        request = mpa.Frame(ird=1, ord=1).encode()
        reply = mpa.Frame(mpa.KEY_REPLY, ird=1, ord=1, pdata=b"xy").encode()
        fpdu = mpa.Writer(True, False).encode(send_ulpdu(1, 0))
        waits = "client - --timeout 0.3 --fault stall-after-reply --expect timeout"
        self.assertIsNone(self.heard(waits, reply, stays=True))
        self.assertIn("nobody was to send", self.heard(waits, reply, fpdu, stays=True))
        self.assertIn("nobody was to send", self.heard(waits, reply, b"M", stays=True))
        ends = "client - --fault fin-after --expect close"
        for parts in ((), (reply,)):
            self.assertIsNone(self.heard(ends, *parts))
        for parts in ((reply, fpdu), (reply[:-1],), (b"M",), (request,), (reply, reply)):
            self.assertIsNotNone(self.heard(ends, *parts), parts)
        for point in ("before", "in-frame", "in-pdata"):
            words = f"client - --pdata 00 --fault fin-{point} --expect close"
            self.assertIsNone(self.heard(words))
            self.assertIn("nobody was to send", self.heard(words, reply))
        for words in ("server - --fault fin-in-frame --expect close",
                      "server - --reject --expect close"):
            self.assertIsNone(self.heard(words, request))
            self.assertIn("nobody was to send", self.heard(words, request, fpdu))
        rejected = "client - --expect reject --timeout 0.3"
        refusal = mpa.Frame(mpa.KEY_REPLY, ird=1, ord=1, reject=True).encode()
        self.assertIsNone(self.heard(rejected, refusal))
        self.assertIn("nobody was to send", self.heard(rejected, refusal, fpdu))
        self.assertIn("no end", self.heard(rejected, refusal, stays=True))

    def test_an_initiator_may_go_on(self):
        """After a whole Reply, what the initiator sends is decoded."""
        request = mpa.Frame(ird=1, ord=1).encode()
        fpdu = mpa.Writer(True, False).encode(send_ulpdu(1, 0))
        for point in ("after", "after-reply"):
            words = f"server - --fault fin-{point} --expect close"
            self.assertIsNone(self.heard(words, request))
            self.assertIsNone(self.heard(words, request, fpdu))
            for octets in (fpdu[:-1], fpdu + b"M", fpdu[:-1] + b"M"):
                self.assertIn("MpaError", self.heard(words, request, octets))

    def test_frames_are_whole(self):
        reply = mpa.Frame(mpa.KEY_REPLY, ird=1, ord=1, pdata=b"xy").encode()
        ends = "client - --expect close"
        self.assertIsNone(self.heard(ends))
        for size in (1, 19, 20, len(reply) - 1):
            self.assertIn("the stream ends after", self.heard(ends, reply[:size]), size)

    def test_every_fault_is_made(self):
        """Each fault returns octets, and the reader decodes the ULPDU to blame from them."""
        for name, (function, _) in faults.NAMES.items():
            if name.endswith("-idle"):
                continue
            conn = rdmap.Connection(None, tx_markers=name.startswith("marker"))
            octets, blame = function(conn, faults.Target(0x1000, 0x100, 4096), name)
            self.assertTrue(octets, name)
            if name.startswith(("crc", "marker", "length", "fin", "reset")):
                continue
            reader = mpa.Reader()
            reader.feed(octets)
            ulpdus = list(iter(reader.next, None))
            self.assertTrue(set(blame) & set(ulpdus), name)
            self.assertFalse(reader.buf, name)
        self.assertFalse(set(faults.NAMES) & set(startup.NAMES))


if __name__ == "__main__":
    unittest.main()
