# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The cases of life.py: states in which a process is killed, or its device goes."""

import contextlib
import ctypes
import errno
import functools
import mmap
import random
import signal
import struct
import subprocess
import time

from pyverbs.cq import CQ
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError

import life
import verbs
from life import A4, B4, GONE, PORT, RAW_PORT, Actor, attempt
from verbs_base import ASYNC_EVENT, PATIENCE, Conn, Failed, expect

CASES = {}


def case(name, *args):
    def add(function):
        CASES[name] = functools.partial(function, *args)
        return function
    return add


# --- states: each function puts actors in place and returns the victim --------------------

def objects(say):
    """Objects of all kinds; the QP is not connected and has receives."""
    end = verbs.End("kiwa")
    mr = end.mr(4096)
    srq = end.srq(16)
    end.srq_recv(srq, 1, (mr[1], 64, mr[2]))
    for opts in ({}, {"srq": srq}, {"comp": True}):
        conn = Conn()
        end._resources(conn, opts)
        num = end._number()
        end.conns[num] = conn
        if "srq" not in opts:
            end.post_recv(num, 7, (mr[1], 64, mr[2]))
    say("ready")
    stay(end)


def stay(*_):
    """Wait to be killed; the arguments stay alive meanwhile."""
    while True:
        signal.pause()


def in_error(say):
    end = verbs.End("kiwa")
    conn = Conn()
    end._resources(conn, {})
    end.conns[1] = conn
    mr = end.mr(64)
    end.to_error(1)
    end.post_recv(1, 7, (mr[1], 64, mr[2]))
    expect([c[1] for c in end.complete(1, "recv")], ["WR_FLUSH_ERR"], "completion")
    say("ready")
    stay(end)


def connecting(say, addr):
    """The SYN or the Request has been sent, and the peer does not answer."""
    end = verbs.End("kiwa")
    end.connect(addr, {}, RAW_PORT)
    say("ready")
    stay(end)


def listening(say, requests=0):
    """A listener with REQUESTS that were delivered and not answered."""
    end = verbs.End("kiwa")
    end.listen(A4, 16, PORT)
    say("listening")
    for _ in range(requests):
        end.request()
    say("ready")
    stay(end)


def unread(say):
    """Requests wait in the event channel, which nobody reads."""
    end = verbs.End("kiwa")
    end.listen(A4, 16, PORT)
    say("listening")
    if not end.chan.ready(PATIENCE):
        raise Failed("no request")
    say("ready")
    stay(end)


def accepting(say):
    """Accepted; the peer has yet to speak."""
    end = verbs.End("kiwa")
    end.listen(A4, 16, PORT)
    say("listening")
    life.accept(end)
    say("ready")
    stay(end)


def established(say, host, role):
    end = verbs.End(life.DEVICES[host])
    if role == "client":
        num = life.client(end, A4 if host == "b" else B4)
    else:
        num = life.server(end, A4 if host == "a" else B4, say)
    say("ready")
    chan = end.conns[num].chan or end.chan
    end._event(chan, "DISCONNECTED DEVICE_REMOVAL", 10 * PATIENCE)
    say("disconnected")


def closing(say):
    """This end has closed the connection, the peer has not."""
    end = verbs.End("kiwa")
    num = life.client(end, B4, RAW_PORT)
    end.disconnect(num)
    life.wait_until("CLOSING", lambda: end.state(num) != "RTS")
    say("ready")
    stay(end)


def nobody():
    life.run("ip", "-n", "a", "neigh", "replace", life.NOBODY, "lladdr", "02:00:00:00:00:99",
             "dev", "eth0")


def start_connecting():
    nobody()
    return Actor("a", connecting, life.NOBODY).said("ready")


def start_request_sent():
    peer = Actor("b", life.mute_server).said("ready")
    victim = Actor("a", connecting, B4).said("ready")
    peer.said("taken")
    return victim


def start_closing():
    Actor("b", life.mute_server, True).said("ready")
    return Actor("a", closing).said("ready")


def start_listening(part, *args, data=b"", count=1, answered=False):
    victim = Actor("a", part, *args).said("listening")
    peer = Actor("b", life.callers, A4, data, count, answered)
    victim.said("ready")
    if not answered:
        peer.said("ready")
    return victim


def start_established(role):
    server_host, client_host = ("a", "b") if role == "server" else ("b", "a")
    one = Actor(server_host, established, server_host, "server").said("listening")
    other = Actor(client_host, established, client_host, "client").said("ready")
    one.said("ready")
    return one if role == "server" else other


def start_load():
    one = Actor("a", life.load_server).said("listening")
    other = Actor("b", life.load_client).said("flows")
    one.said("flows")
    one.peer = other
    return one


REQUEST, ENHANCED = life._request(1), life._request(2)
STATES = {
    "objects": lambda: Actor("a", objects).said("ready"),
    "error": lambda: Actor("a", in_error).said("ready"),
    "connecting": start_connecting,
    "request sent": start_request_sent,
    "silent backlog": lambda: start_listening(listening, count=20),
    "half a request": lambda: start_listening(listening, data=REQUEST[:11], count=3),
    "requests unread": lambda: start_listening(unread, data=REQUEST, count=4),
    "requests pending": lambda: start_listening(listening, 3, data=REQUEST, count=3),
    "waiting for RTR": lambda: start_listening(accepting, data=ENHANCED, answered=True),
    "established, server": lambda: start_established("server"),
    "established, client": lambda: start_established("client"),
    "load": start_load,
    "closing": start_closing,
}


# A process that dies in these can wait for the deadline: iw_cm does not call a provider off.
SHORT = ("connecting", "request sent", "waiting for RTR")


def chosen(names):
    short = [f"{how}, {state}" for state in SHORT for how in ("kill", "remove")]
    if names == ["short"]:
        return short
    return [n for n in CASES if n not in short + ["churn"]] if names == ["long"] else names


def killed(state):
    victim = STATES[state]()
    victim.kill(3 * PATIENCE)
    life.nothing_left("a")


def removed(state):
    """The device is removed while the process lives; the process ends later."""
    victim = STATES[state]()
    life.link_delete("a")
    expect(life.exists("kiwa"), False, "kiwa")
    life.link_add("a")
    victim.kill()


for _state in STATES:
    CASES["kill, " + _state] = functools.partial(killed, _state)
    CASES["remove, " + _state] = functools.partial(removed, _state)


# --- the peers notice ---------------------------------------------------------------------

@case("peer, established", "established, server")
@case("peer, load", "load")
def peer_notices(state):
    victim = STATES[state]()
    others = [actor for actor in Actor.living if actor is not victim]
    victim.kill()
    for actor in others:
        actor.ends()


# --- what a process sees when its device goes ----------------------------------------------

def cannot(what, call, *args):
    error = attempt(call, *args)
    if error not in GONE:
        raise Failed(f"{what}: {errno.errorcode.get(error, error)}")


def use_it_all(say):
    """After the device has gone: every call fails in order, the rings can be touched."""
    end = verbs.End("kiwa")
    mr = end.mr(4096)
    srq = end.srq(16)
    end.conns[1], end.conns[2] = Conn(), Conn()
    end._resources(end.conns[1], {"comp": True})
    end._resources(end.conns[2], {"srq": srq})
    say("ready")
    life.wait_until("DEVICE_FATAL", lambda: "DEVICE_FATAL" in end.async_events())
    sge = (mr[1], 64, mr[2])
    for _ in range(40):
        attempt(end.post_recv, 1, 5, sge)
        attempt(end.srq_recv, srq, 5, sge)
        attempt(end.post_send, 1, {"op": "SEND", "sge": [sge], "id": 1, "flags": ["SIGNALED"]})
        end.completions(1, "recv")
        end.completions(1, "send")
        attempt(end.arm, 1, False)
    cannot("query a QP", end.state, 1)
    cannot("query the device", end.ctx.obj.query_device)
    cannot("make a PD", PD, end.ctx.obj)
    cannot("make a CQ", CQ, end.ctx.obj, 10)
    cannot("register memory", end.mr, 64)
    cannot("make a QP", end._resources, Conn(), {})
    cannot("wait for completions", end.conns[1].comp.obj.get_cq_event, end.conns[1].rcq)
    say("done")
    stay(end)


def blocked_in_cq(say):
    end = verbs.End("kiwa")
    end.conns[1] = Conn()
    end._resources(end.conns[1], {"comp": True})
    end.arm(1, False)
    say("ready")
    cannot("wait for completions", end.conns[1].comp.obj.get_cq_event, end.conns[1].rcq)


def blocked_in_async(say):
    end = verbs.End("kiwa")
    say("ready")
    event = end.ctx.obj.get_async_event()
    expect(ASYNC_EVENT[event.event_type], "DEVICE_FATAL", "event")


def blocked_in_cm(say):
    end = verbs.End("kiwa")
    end.listen(A4, 16, PORT)
    say("ready")
    expect(end.chan.event().name, "DEVICE_REMOVAL", "event")


def asleep(actor):
    with open(f"/proc/{actor.pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


@case("blocked, completions", blocked_in_cq)
@case("blocked, async events", blocked_in_async)
@case("blocked, CM events", blocked_in_cm)
def wakes_up(part):
    actor = Actor("a", part).said("ready")
    life.wait_until("asleep", lambda: asleep(actor))
    life.link_delete("a")
    actor.ends()
    life.link_add("a")


def is_loaded():
    with open("/proc/modules", encoding="ascii") as file:
        return any(line.startswith("kiwarp ") for line in file)


@case("orphans")
def orphans():
    """Processes outlive their device, and the module."""
    actors = [Actor("a", use_it_all).said("ready"), Actor("a", objects).said("ready"),
              STATES["established, client"](), STATES["requests pending"]()]
    life.link_delete("a")
    actors[0].said("done")
    life.link_delete("b")
    life.wait_until("unloaded", lambda: attempt_unload() and not is_loaded())
    life.run("modprobe", "kiwarp")
    for host in life.DEVICES:
        life.link_add(host)
    fresh = Actor("a", use_it_all).said("ready")
    life.link_delete("a")
    fresh.said("done")


def attempt_unload():
    try:
        life.run("rmmod", "kiwarp")
    except Failed:
        return False
    return True


@case("removed under load")
def removed_under_load():
    for host in "ab":
        victim = start_load()
        life.link_delete(host)
        victim.ends()
        victim.peer.ends()
        life.link_add(host)


# --- the netdev ---------------------------------------------------------------------------

def ip_a(*words):
    life.run("ip", "-n", "a", *words)


def more_comes(device):
    before = life.counters(device)["rx_fpdus"]
    life.wait_until("traffic", lambda: life.counters(device)["rx_fpdus"] > before + 50)


def rename_netdev(old, new):
    """The interface is down during the change, as Linux 6.1 requires."""
    ip_a("link", "set", old, "down")
    ip_a("link", "set", old, "name", new)
    ip_a("link", "set", new, "up")


@case("renamed under load")
def renamed():
    """Renaming the device and its netdev disturbs nothing."""
    victim = start_load()
    life.run("rdma", "dev", "set", "kiwa", "name", "other")
    try:
        more_comes("other")
    finally:
        life.run("rdma", "dev", "set", "other", "name", "kiwa")
    more_comes("kiwa")
    rename_netdev("eth0", "wire0")
    try:
        more_comes("kiwa")
    finally:
        rename_netdev("wire0", "eth0")
    more_comes("kiwa")
    victim.kill()
    victim.peer.ends()


@case("netdev moved under load")
def netdev_moves():
    """A netdev that moves to another namespace loses its device; back again, it can have one."""
    victim = start_load()
    life.run("ip", "netns", "add", "c")
    try:
        ip_a("link", "set", "eth0", "netns", "c")
        life.wait_until("the device goes", lambda: not life.exists("kiwa"))
        victim.ends()
        life.link_delete("b")
        victim.peer.ends()
        life.run("ip", "-n", "c", "link", "set", "eth0", "netns", "a")
    finally:
        life.run("ip", "netns", "del", "c")
    ip_a("addr", "add", A4 + "/24", "dev", "eth0")
    ip_a("link", "set", "eth0", "up")
    for host in "ab":
        life.link_add(host)
    peer_notices("established, server")


# --- order and load -----------------------------------------------------------------------

ROUNDS = 8


def destroyer(say):
    """Destroys QPs that send and receive, without disconnecting them first."""
    end = verbs.End("kiwb")
    for _ in range(ROUNDS):
        load = life.loaded_client(end, life.client(end, A4, opts=life.BOTH_WAYS))
        load.run(say, random.randrange(100))
        conn = end.conns.pop(load.num)
        conn.qp.close()
        for cq in (conn.scq, conn.rcq):
            cq.close()
        conn.cmid.close()
        conn.chan.close()
        load.close()


def survivor(say):
    end = verbs.End("kiwa")
    end.listen(A4, 16, PORT)
    say("listening")
    for _ in range(ROUNDS):
        load = life.loaded_server(end)
        load.run(say)
        end.child_event("DISCONNECTED")
        end.close(load.num)
        load.close()


@case("destroy under load")
def destroy_under_load():
    one = Actor("a", survivor).said("listening")
    other = Actor("b", destroyer)
    other.ends(3 * PATIENCE)
    one.ends()


def impatient(say):
    """Destroys QPs while they connect: nobody waits for the deadline of the startup."""
    end = verbs.End("kiwa")
    for addr in (life.NOBODY, B4):
        num = end.connect(addr, {}, RAW_PORT)
        end.conns[num].qp.close()
        end.event(num, "REJECTED UNREACHABLE CONNECT_ERROR")
        end.close(num)
    say("done")


@case("destroy while connecting")
def destroy_connecting():
    before = life.counters("kiwa")["conn_timeout"]
    nobody()
    peer = Actor("b", life.mute_server).said("ready")
    one = Actor("a", impatient).said("done")
    one.ends()
    peer.kill()
    expect(life.counters("kiwa")["conn_timeout"], before, "startups that took all their time")


DEALLOC_PD, DESTROY_CQ, DESTROY_SRQ = 4, 20, 35     # ib_user_verbs.h


def wrong_order(say):
    """Objects that are in use cannot be destroyed, and continue to work."""
    end = verbs.End("kiwa")
    busy = set()
    mr = end.mr(64)
    srq = end.srq(4)
    end.conns[1] = Conn()
    end._resources(end.conns[1], {"srq": srq})
    answer = ctypes.create_string_buffer(64)
    for handle in range(8):
        with_answer = struct.pack("=QII", ctypes.addressof(answer), handle, 0)
        for number, body, words in ((DEALLOC_PD, struct.pack("=I", handle), 0),
                                    (DESTROY_CQ, with_answer, 2),
                                    (DESTROY_SRQ, with_answer, 1)):
            error = attempt(life.raw_command, end, number, body, words)
            if error == errno.EBUSY:
                busy.add(number)
            elif not error:
                raise Failed(f"command {number} destroyed {handle}")
    expect(busy, {DEALLOC_PD, DESTROY_CQ, DESTROY_SRQ}, "refused as busy")
    end.srq_recv(srq, 1, (mr[1], 64, mr[2]))
    end.close(1)
    end.srq_close(srq)
    end.close_mr(mr[0])
    end.pd.close()
    say("done")


@case("destroy in the wrong order")
def order():
    Actor("a", wrong_order).said("done").ends()


# --- sudden death at random ----------------------------------------------------------------

SECONDS = 5


def random_end(say, host):
    """Serves or connects, works, closes, over and over."""
    end = verbs.End(life.DEVICES[host])
    while True:
        if host == "a":
            end.listen(A4, 16, PORT)
            load = life.loaded_server(end)
        else:
            load = life.loaded_client(end, connect_patiently(end))
        load.run(say, random.randrange(60))
        end.disconnect(load.num)
        end.close(load.num)
        if host == "a":
            end.listen_end()
        load.close()


def connect_patiently(end):
    while True:
        num = end.connect(A4, life.BOTH_WAYS, PORT)
        event = end.event(num, "ESTABLISHED REJECTED UNREACHABLE CONNECT_ERROR")
        if event.name == "ESTABLISHED":
            return num
        end.close(num)
        time.sleep(0.01)


@case("random")
def at_random():
    """Many rounds; most of them find a connection in some state."""
    rng = random.Random(life.SEED)
    actors = {host: Actor(host, random_end, host) for host in "ab"}
    before = life.counters("kiwa")["conn_established"]
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or life.counters("kiwa")["conn_established"] == before:
        time.sleep(rng.random() ** 2 * 0.8)
        actors[rng.choice("ab")].kill(3 * PATIENCE)
        for host, actor in actors.items():
            if actor.is_over():
                actors[host] = Actor(host, random_end, host)
        if time.monotonic() > end + 6 * PATIENCE:
            raise Failed("no connection was made")


# --- everything at once ---------------------------------------------------------------------

CHURN_SECONDS = 8
ENDS = (OSError, PyverbsError, Failed, subprocess.TimeoutExpired)


class Tally:
    """Successes and failures of each of SIZE parts; processes share it."""

    COUNTS = struct.Struct("=II")

    def __init__(self, size):
        self.room = mmap.mmap(-1, size * self.COUNTS.size)

    def __getitem__(self, at):
        return self.COUNTS.unpack_from(self.room, at * self.COUNTS.size)

    def add(self, at, went_well):
        well, badly = self[at]
        begin = at * self.COUNTS.size
        # Not pack_into(), which clears the place first: the process may be killed then.
        self.room[begin:begin + self.COUNTS.size] = self.COUNTS.pack(well + went_well,
                                                                     badly + (not went_well))


def again_and_again(say, tally, at, part, *args):
    """Operations may fail here; what matters is that they fail cleanly."""
    while True:
        try:
            part(say, *args)
            tally.add(at, True)
        except ENDS:
            tally.add(at, False)
            time.sleep(0.02)


def comes_and_goes(_, host):
    attempt_run(life.link_delete, host)
    time.sleep(random.random() * 0.2)
    life.link_add(host)
    time.sleep(random.random() * 0.6)


def attempt_run(command, *args):
    with contextlib.suppress(Failed):
        command(*args)


def netdev_goes(_):
    life.run("ip", "link", "add", "d0", "type", "dummy")
    try:
        life.run("ip", "link", "set", "d0", "up")
        life.run("rdma", "link", "add", "kiw0", "type", "kiwarp", "netdev", "d0")
    finally:
        life.run("ip", "link", "del", "d0")


def opens(_):
    end = verbs.End("kiwa")
    mr = end.mr(4096)
    end.conns[1] = Conn()
    end._resources(end.conns[1], {})
    end.post_recv(1, 1, (mr[1], 16, mr[2]))
    end.to_error(1)
    end.complete(1, "recv", seconds=1)
    end.leftovers()
    end.pd.close()
    end.ctx.obj.close()


def looks(_):
    for kind in ("qp", "cq", "mr", "pd", "cm_id", "ctx", "srq"):
        attempt_run(life.run, "rdma", "-dd", "res", "show", kind)
    attempt_run(life.run, "rdma", "statistic", "show")
    attempt_run(life.run, "ibv_devinfo", "-v")


CHURN = ((comes_and_goes, "a"), (comes_and_goes, "b"), (netdev_goes,), (opens,), (looks,),
         (random_end, "a"), (random_end, "b"))


def never_well(tally):
    """Names of parts; that of connections never ends by itself."""
    return [part.__name__ for at, (part, *_) in enumerate(CHURN)
            if part is not random_end and not tally[at][0]]


@case("churn")
def churn():
    """Devices, netdevs and the module are removed and added while they are in use."""
    tally = Tally(len(CHURN))
    for at, (part, *args) in enumerate(CHURN):
        Actor(args[0] if args else "a", again_and_again, tally, at, part, *args)
    end = time.monotonic() + CHURN_SECONDS
    late = end + 3 * PATIENCE
    while time.monotonic() < end:
        attempt_unload()
        time.sleep(0.1)
    # Where the devices are slow to come, the unloading leaves no part the time to succeed.
    while never_well(tally) and time.monotonic() < late:
        time.sleep(0.1)
    life.kill_all()
    for at, (part, *args) in enumerate(CHURN):
        well, badly = tally[at]
        print("#", part.__name__, *args, f"{well} times well, {badly} times not")
    expect(never_well(tally), [], "what never went well")
    life.run("modprobe", "kiwarp")
    for host in life.DEVICES:
        if not life.exists(life.DEVICES[host]):
            life.link_add(host)
    peer_notices("established, server")
