# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""python3 -m peer ip ADDRESS OWN-ADDRESS PACKETS-TO PACKETS-FROM

A node that talks to kiwarp_ip on host a over plain TCP and UDP sockets and breaks its rules.
Prints "ok NAME" or "not ok NAME" for each case. After each case, the counters of kip0 that it
names must have increased by at least the given amounts.
"""

import contextlib
import re
import socket
import struct
import subprocess
import time

from peer import cli, mpa, rdmap, startup, stream

PORT = 64755
ON_A = ["ip", "netns", "exec", "a"]
CONTROL, GRANT, PROBE, ANSWER = 0x88b5, 1, 2, 3
IPV4, ARP = 0x0800, 0x0806
PKEY, QKEY = 0xffff, 0x80000b1b
REASONS = {"crossed": 1, "P_Key": 2, "MTU": 3, "full": 4, "busy": 5, "format": 6}
DEPTH = 4
CASES = []
ADDRESS = OWN = TO = FROM = None


class Wrong(Exception):
    """The other end did not behave as expected."""


def case(name, **moves):
    """Decorator of a case; MOVES are the minimum increments of kip0's counters."""
    def add(run):
        CASES.append((name, run, moves))
        return run
    return add


# --- host a ----------------------------------------------------------------------------


def on_a(*command, check=True):
    done = subprocess.run([*ON_A, *command], capture_output=True, text=True, check=False,
                          timeout=30)
    if check and done.returncode:
        raise Wrong(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def counters():
    return {name: int(value) for name, value in
            re.findall(r"(\w+): (\d+)", on_a("ethtool", "-S", "kip0"))}


def moved(before, moves):
    now = counters()
    return {name: now[name] - before[name] for name in moves}


def wait_moves(before, moves):
    end = time.monotonic() + 10
    while any(moved(before, moves)[name] < least for name, least in moves.items()):
        if time.monotonic() > end:
            raise Wrong(f"counters moved by {moved(before, moves)}, not {moves}")
        time.sleep(0.02)


def renew():
    """Makes kip0 start anew, without peers, connections and backoff."""
    on_a("bash", "-c", f"echo {DEPTH} >/sys/class/net/kip0/kiwarp_ip/rx_depth")
    end = time.monotonic() + 10
    while not on_a("ss", "-Hltn", f"sport = :{PORT}"):
        if time.monotonic() > end:
            raise Wrong("it does not listen")
        time.sleep(0.02)


# --- octets ----------------------------------------------------------------------------


def pdata(qpn=PORT, mtu=65524, magic=0x4b495031, version=1, reason=0, pkey=PKEY, data=32,
          control=4, instance=7, serial=1):
    return struct.pack(">IIIBBHHHII", qpn, mtu, magic, version, reason, pkey, data, control,
                       instance, serial)


def control(op, value=0):
    return struct.pack(">HHBxxxI", CONTROL, 0, op, value)


def checksum(octets):
    octets += bytes(len(octets) % 2)
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def echo(number, damage=0):
    """The 4-octet header, and an echo request of IPv4; DAMAGE inverts bits of its checksum."""
    body = struct.pack(">BBHHH", 8, 0, 0, 99, number) + b"x" * 20
    body = body[:2] + struct.pack(">H", checksum(body) ^ damage) + body[4:]
    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), number, 0, 64, 1, 0,
                       socket.inet_aton(FROM), socket.inet_aton(TO))
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    return struct.pack(">HH", IPV4, 0) + head + body


def is_answer(message, number):
    return message[:2] == b"\x08\x00" and message[24:26] == b"\x00\x00" and \
        message[30:32] == struct.pack(">H", number)


# --- connections -----------------------------------------------------------------------


def options(role, **changes):
    opt = cli.parser().parse_args([role, ADDRESS])
    for name, value in changes.items():
        setattr(opt, name, value)
    return opt


def quiet(*_args, **_fields):
    pass


@contextlib.contextmanager
def request(octets):
    """Requests a connection with that private data; returns it if it is accepted."""
    sock = stream.connect(ADDRESS, PORT, 5)
    try:
        yield startup.initiator(stream.Stream(sock), options("client", pdata=octets), quiet)
    finally:
        sock.close()


def rejected(octets, reason):
    try:
        with request(octets):
            raise Wrong("accepted")
    except startup.Rejected as told:
        said = told.args[0].pdata
    qpn, mtu, magic, version, why = struct.unpack_from(">IIIBB", said)
    if (qpn, magic, version, why) != (PORT, 0x4b495031, 1, REASONS[reason]) or mtu != 65524:
        raise Wrong(f"the reject says {said.hex()}")


def wait_send(conn, good):
    """Waits for a message for which GOOD() is true; ignores others."""
    while True:
        conn.wait(lambda: conn.sends, 5)
        message = conn.sends.popleft()
        if good(message):
            return message


def burst(conn, *messages):
    """Sends messages in one piece, so that they are received together."""
    conn.stream.send(b"".join(conn.encode(conn.untagged(rdmap.SEND, m)) for m in messages))


def ends(conn):
    try:
        while True:
            conn.receive()
    except (EOFError, ConnectionError, rdmap.Terminated):
        pass


def is_alive(conn, number=1):
    burst(conn, echo(number))
    wait_send(conn, lambda m: is_answer(m, number))


def starts(conn):
    burst(conn, control(PROBE))
    wait_send(conn, lambda m: m[:5] == struct.pack(">HHB", CONTROL, 0, ANSWER))


@contextlib.contextmanager
def called(octets, **changes):
    """Makes kip0 request a connection, and answers with that private data."""
    listener = stream.listen(OWN, PORT)
    ping = subprocess.Popen([*ON_A, "ping", "-q", "-c", "3", "-i", "0.3", "-W", "1", FROM],
                            stdout=subprocess.DEVNULL)
    try:
        listener.settimeout(5)
        sock, _ = listener.accept()
        listener.close()
        with sock:
            conn = None
            try:
                conn = startup.responder(stream.Stream(sock),
                                         options("server", pdata=octets, **changes), quiet)
            except startup.Stopped:
                pass
            yield conn
    finally:
        listener.close()
        ping.kill()
        ping.wait()


# --- Requests --------------------------------------------------------------------------


@case("a Request of RFC 4755's 8 octets is rejected, and so is one with less, or nothing",
      conn_rejected=3, bad_private_data=3)
def rfc_only():
    for size in (8, 4, 0):
        rejected(pdata()[:size], "format")


@case("Requests that say what cannot be are rejected", conn_rejected=7, bad_private_data=7)
def bad_requests():
    for octets in (pdata(magic=1), pdata(version=2), pdata(qpn=0), pdata(qpn=65536),
                   pdata(data=0), pdata(control=3), pdata()[:-1]):
        rejected(octets, "format")


@case("a Request of another partition", conn_rejected=1, bad_pkey=1)
def other_pkey():
    rejected(pdata(pkey=0x8001), "P_Key")


@case("a Request with too small a Receive MTU", conn_rejected=2, bad_mtu=2)
def small_mtu():
    rejected(pdata(mtu=1283), "MTU")
    rejected(pdata(mtu=0), "MTU")


@case("one node that claims to be hundreds leaves room for others", conn_accepted=32,
      conn_no_room=20)
def many_qpns():
    """Connections from many QPNs, which are kept open."""
    with contextlib.ExitStack() as held:
        refused = 0
        for qpn in range(1, 61):
            try:
                held.enter_context(request(pdata(qpn=qpn, data=1)))
            except startup.Rejected:
                refused += 1
        if refused < 20:
            raise Wrong(f"{refused} refused")


# --- messages --------------------------------------------------------------------------


@case("what is used in the cases below works", conn_accepted=1, rx_messages=3)
def good():
    with request(pdata()) as conn:
        starts(conn)
        for number in range(3):
            is_alive(conn, number)


@case("messages that are no packets are dropped, and the connection stays", rx_short=2,
      rx_bad_type=2, rx_too_long=1)
def bad_messages():
    with request(pdata()) as conn:
        starts(conn)
        for message in (b"\x08", b"\x08\0\0\0", struct.pack(">HH", ARP, 0) + bytes(28),
                        struct.pack(">HH", 0x1234, 0) + bytes(28),
                        struct.pack(">HH", IPV4, 0) + bytes(65600)):
            burst(conn, message)
            is_alive(conn)


@case("a packet that was damaged before the peer forwarded it is not taken for good",
      rx_messages=2)
def damaged():
    with request(pdata()) as conn:
        starts(conn)
        burst(conn, echo(1, damage=1))
        burst(conn, echo(2))
        message = wait_send(conn, lambda m: m[:2] == struct.pack(">H", IPV4))
        if not is_answer(message, 2):
            raise Wrong("the damaged request was answered")


@case("a Send without credit ends the connection", rx_overrun=1)
def overrun():
    with request(pdata()) as conn:
        starts(conn)
        burst(conn, *[echo(n) for n in range(DEPTH + 1)])
        ends(conn)


@case("Immediate Data ends the connection", rx_immediate=2)
def immediate():
    for opcode in (rdmap.IMMEDIATE, rdmap.IMMEDIATE_SOLICITED):
        renew()
        with request(pdata()) as conn:
            starts(conn)
            conn.stream.send(conn.encode(conn.untagged(opcode, bytes(8))))
            ends(conn)


@case("false control messages end the connection", rx_bad_control=7)
def bad_control():
    for messages in ([control(GRANT, 33)], [control(GRANT, 0xffffffff)], [control(GRANT, 31)],
                     [control(ANSWER, 32)], [control(0)], [control(4)],
                     [control(PROBE), control(PROBE)]):
        renew()
        with request(pdata()) as conn:
            starts(conn)
            burst(conn, *messages)
            ends(conn)


@case("credit that is not renewed: the connection ends, the packets leave as datagrams",
      conn_stalled=1, tx_no_credit=1, tx_datagrams=1, tx_queue_full=1)
def no_credit():
    with request(pdata(data=1)) as conn:
        starts(conn)
        burst(conn, echo(1))
        wait_send(conn, lambda m: is_answer(m, 1))
        # More packets than may wait, from several sockets, because each has a limit of its own. Until
        # the connection ends there are some seconds, so the program has to be there already.
        with subprocess.Popen([*ON_A, "python3", "-c", "import socket\n"
                               "print(flush=True), input()\n"
                               "for _ in range(8):\n"
                               "    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                               "    for n in range(50):\n"
                               f"        s.sendto(b'x', socket.MSG_DONTWAIT, ('{FROM}', 9))\n"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sender:
            sender.stdout.readline()
            burst(conn, echo(2))
            sender.communicate(b"\n")
        conn.stream.extend(15)
        ends(conn)


@case("credit for one message at a time, for longer than a peer without credit is waited for: every "
      "packet arrives, in order", tx_no_credit=19)
def slow_credit():
    count = 20
    before = counters()
    with request(pdata(data=1)) as conn:
        starts(conn)
        on_a("python3", "-c", "import socket\n"
             "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
             f"for n in range({count}): s.sendto(b'number%03d' % n, ('{FROM}', 9))\n")
        conn.stream.extend(60)
        for number in range(count):
            message = wait_send(conn, lambda m: b"number" in m)
            if not message.endswith(b"number%03d" % number):
                raise Wrong(f"{message[-9:]} instead of number {number}")
            time.sleep(0.35)
            burst(conn, control(GRANT, number + 2))
        is_alive(conn)
    if moved(before, ["conn_stalled"])["conn_stalled"]:
        raise Wrong("it was taken for stalled")


@case("no answer to a PROBE: the connection ends", conn_silent=1)
def no_answer():
    with request(pdata()) as conn:
        starts(conn)
        is_alive(conn)
        ping = subprocess.Popen([*ON_A, "ping", "-q", "-i", "0.5", "-c", "20", FROM],
                                stdout=subprocess.DEVNULL)
        conn.stream.extend(20)
        try:
            ends(conn)
        finally:
            ping.kill()
            ping.wait()


@case("a peer that requests a connection and then says nothing: the connection ends, the packets "
      "leave as datagrams", conn_silent=1, tx_datagrams=1)
def mute():
    before = counters()
    with request(pdata()) as conn:
        on_a("ping", "-q", "-c", "1", "-W", "1", FROM, check=False)
        conn.stream.extend(15)
        ends(conn)
    if moved(before, ["tx_messages"])["tx_messages"]:
        raise Wrong("it has sent a packet before it has heard anything")


@case("a peer that grants credit, but takes nothing any more: the connection ends",
      conn_stalled=1)
def takes_nothing():
    with request(pdata(data=60000)) as conn:
        conn.stream.extend(60)
        starts(conn)
        # The GRANTs keep kip0 from sending a PROBE, which would not be answered.
        sender = subprocess.Popen([*ON_A, "python3", "-c", "import socket\n"
                                   "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                                   f"while True: s.sendto(bytes(60000), ('{FROM}', 9))\n"])
        try:
            while True:
                burst(conn, control(GRANT, 60000))
                time.sleep(0.1)
        except ConnectionError:
            pass
        finally:
            sender.kill()
            sender.wait()


@case("a Request that is older than the connection is rejected, a newer one replaces it",
      conn_stale_request=1, conn_replaced=2)
def older_and_newer():
    with request(pdata(serial=5)) as first:
        starts(first)
        rejected(pdata(serial=5), "busy")
        rejected(pdata(serial=4), "busy")
        is_alive(first)
        with request(pdata(serial=6)) as second:
            ends(first)
            starts(second)
            is_alive(second)
            with request(pdata(serial=1, instance=8)) as third:
                ends(second)
                starts(third)
                is_alive(third)


def expect_end(before, name, other):
    """Checks that the end of the connection was counted by NAME and not by OTHER."""
    wait_moves(before, {name: 1})
    if moved(before, [other])[other]:
        raise Wrong(f"{other} moved, too")


@case("a peer that ends the connection in order", conn_ended=1)
def orderly_end():
    before = counters()
    with request(pdata()) as conn:
        starts(conn)
        is_alive(conn)
    expect_end(before, "conn_ended", "conn_failed")


@case("a stream that is no sequence of FPDUs", conn_failed=1)
def broken_stream():
    before = counters()
    with request(pdata()) as conn:
        starts(conn)
        conn.stream.send(b"\x00\x10" + b"x" * 100)
        ends(conn)
        expect_end(before, "conn_failed", "conn_ended")


# --- Replies ---------------------------------------------------------------------------


@case("rejects with each reason, a false one, the RFC's octets only, and nothing",
      conn_refused_by_peer=10)
def rejects():
    for octets in [pdata(reason=r) for r in (0, 1, 2, 3, 4, 5, 6, 255)] + [pdata()[:8], b""]:
        renew()
        before = counters()
        with called(octets, reject=True):
            wait_moves(before, {"conn_refused_by_peer": 1})


@case("a reject in favour of a Request that does not come", conn_refused_by_peer=1)
def crossed_alone():
    renew()
    before = counters()
    with called(pdata(reason=REASONS["crossed"]), reject=True):
        # What has waited for that Request
        wait_moves(before, {"tx_datagrams": 1})
    if moved(before, ["conn_failed"])["conn_failed"]:
        raise Wrong("it was counted twice")


@case("Replies that lie", bad_qpn=2, bad_mtu=1, bad_pkey=1, bad_private_data=3)
def lies():
    for octets in (pdata(qpn=PORT + 1), pdata(qpn=1), pdata(mtu=1000), pdata(pkey=0x8002),
                   pdata()[:8], b"", pdata(data=0)):
        renew()
        with called(octets) as conn:
            ends(conn)


@case("a Reply, and data before anything was asked for", conn_established=1)
def speaks_first():
    with called(pdata()) as conn:
        wait_send(conn, lambda m: m[:5] == struct.pack(">HHB", CONTROL, 0, PROBE))
        burst(conn, control(ANSWER, 32))
        is_alive(conn)


# --- datagrams -------------------------------------------------------------------------


def dgram(body, version=0, pkey=PKEY, qkey=QKEY):
    return struct.pack(">BBHI", version, 0, pkey, qkey) + body


FALSE = {"rx_udp_short": 100, "rx_udp_version": 100, "rx_udp_pkey": 100, "rx_udp_qkey": 100,
         "rx_udp_type": 100, "rx_udp_too_long": 1}


@case("a flood of false datagrams", **FALSE)
def flood():
    false = (b"", b"x", dgram(b"")[:12], dgram(echo(1), version=0x10),
             dgram(echo(1), pkey=0x7fff), dgram(echo(1), qkey=0), dgram(b"\x12\x34" + bytes(30)),
             dgram(echo(1) + bytes(20000)))
    before = counters()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((OWN, PORT))
        # The receiver's socket drops what comes faster than it is read.
        for _ in range(10):
            for _ in range(400):
                for octets in false:
                    sock.sendto(octets, (ADDRESS, PORT))
            if all(now >= FALSE[name] for name, now in moved(before, FALSE).items()):
                break
        sock.settimeout(0.5)
        for _ in range(20):
            sock.sendto(dgram(echo(5)), (ADDRESS, PORT))
            with contextlib.suppress(TimeoutError, socket.timeout):
                while not is_answer(sock.recv(4096)[8:], 5):
                    pass
                return
    raise Wrong("a good datagram is not answered")


def udp_from(source, octets):
    """An IPv4 packet with a UDP datagram to kip0's port, as if it came from SOURCE."""
    length = 8 + len(octets)
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0, 64, socket.IPPROTO_UDP, 0,
                       socket.inet_aton(source), socket.inet_aton(ADDRESS)) + \
        struct.pack(">HHHH", PORT, PORT, length, 0) + octets


def write_setting(name, value):
    on_a("bash", "-c", f"echo {value} >/sys/class/net/kip0/kiwarp_ip/{name}")


@case("false senders fill the list of peers, but do not keep the administrator from adding one",
      peers_learned=1000)
def false_senders():
    group = on_a("cat", "/sys/class/net/kip0/kiwarp_ip/group").strip()
    before = counters()
    write_setting("group", "none")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
            for number in range(1100):
                source = f"10.78.{number // 200}.{number % 200 + 1}"
                sock.sendto(udp_from(source, dgram(echo(1))), (ADDRESS, 0))
                if number % 50 == 49:
                    wait_moves(before, {"rx_datagrams": number + 1})
        write_setting("peers", "+10.79.0.1")
        peers = on_a("cat", "/sys/class/net/kip0/kiwarp_ip/peers").splitlines()
        if len(peers) != 1024 or peers[-1] != "10.79.0.1":
            raise Wrong(f"{len(peers)} peers, the last is {peers[-1:]}")
        write_setting("peers", "-10.79.0.1")
    finally:
        write_setting("learn", 0)
        on_a("cat", "/sys/class/net/kip0/kiwarp_ip/peers")
        write_setting("learn", 300)
        write_setting("group", group)


# ---------------------------------------------------------------------------------------


def run_case(name, run, moves):
    try:
        renew()
        before = counters()
        run()
        wait_moves(before, moves)
    except (Wrong, OSError, EOFError, subprocess.TimeoutExpired, *cli.FAILURES,
            rdmap.Terminated, startup.Rejected, mpa.MpaError) as err:
        print(f"{type(err).__name__}: {err}\n{moved(before, counters())}")
        print("not ok", name, flush=True)
        return
    print("ok", name, flush=True)


def main(argv):
    global ADDRESS, OWN, TO, FROM
    ADDRESS, OWN, TO, FROM = argv
    for entry in CASES:
        run_case(*entry)
    print(f"{len(CASES)} cases")
    return 0
