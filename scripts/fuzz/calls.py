# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Sequences of system calls against a model: guide.py calls-TYPE DEVICE_A ADDRESS_A DEVICE_B
ADDRESS_B TYPE.

The model knows which call must succeed, with which errors others fail, what each queue pair's state
is, and which events follow. It is compared with the driver after each call, and with what `rdma
resource show` counts at "count" and at the end. When all processes have ended nothing may be left.

Lines. N is an object: the Nth of those of its kind that were made so far, modulo their number, and
it may be destroyed. P is a process that lives. A line that has no object to act on does nothing.

    context P SIDE          opens the device of side 0 or 1
    close P N               closes it, in one process
    pd N | mr N SIZE RIGHTS | cq N COUNT | srq N COUNT | mw N KIND | ah N
    qp PD SCQ RCQ SRQ COUNT SHARED KIND
    free KIND N             destroys it
    state N STATE           modifies a QP
    query N                 compares a QP's state
    limit N COUNT           modifies an SRQ, and queries it
    size KIND N COUNT       resizes a CQ or an SRQ
    arm N                   arms a CQ
    channel P               opens rdma_cm
    id N SIDE               makes an identifier on a channel
    bind N PORT | listen N | resolve N PORT | route N | connect N QP | accept N QP | reject N
    disconnect N | migrate N CHANNEL | destroy N
    fork P | exit P | kill P | exec P
    unplug SIDE             deletes the device of a side, and adds one
    count
"""

import contextlib
import errno
import glob
import subprocess

import calls_abi
import guide
from calls_world import PATIENCE, Process

SIDES = "ab"
COUNTED = ("pd", "mr", "cq", "srq", "qp")     # by ib_core
KINDS = (*COUNTED, "mw")
GONE = {errno.EINVAL, errno.ENOENT}
# The core keeps the handles of objects of a deleted device until they are destroyed.
ENDED = GONE | {0, errno.EIO}
NO_SUCH = GONE | {errno.EOPNOTSUPP, errno.EIO}
MAX_CQE, MAX_SRQ_WR, MAX_SEND_WR = 1 << 20, 32768, 32768
LOCAL_WRITE, WRITING = 1, 2 | 8     # access flags: REMOTE_WRITE, REMOTE_ATOMIC
PORTS = 3
FIRST_PORT, LAST_PORT = 20000, 30000
MAX_PROCESSES = 3
LOST = ("REJECTED", "UNREACHABLE", "CONNECT_ERROR")


class Thing:
    """An object of uverbs. USERS: objects that keep it from being destroyed."""

    def __init__(self, kind, context, handle, uses=()):
        self.kind, self.context, self.handle = kind, context, handle
        self.uses, self.users = uses, 0
        self.state, self.number, self.end = "INIT", None, None      # of a QP
        self.size, self.limit = 0, 0                                # of a CQ or an SRQ
        for other in uses:
            other.users += 1


class File:
    """An open file. Only the process that has opened it may write to it, which all calls do; others
    that inherit it keep what is in it."""

    def __init__(self, name, opener):
        self.name, self.opener, self.holders = name, opener, {opener}

    def is_usable(self):
        return self.opener in self.holders


class Context(File):
    """An open file of uverbs."""

    def __init__(self, name, opener, side):
        super().__init__(name, opener)
        self.side, self.is_dead, self.things = side, False, {}      # by handle


class End:
    """An identifier of rdma_cm. LOOSE: anything may happen to it from now on."""

    def __init__(self, channel, side, number):
        self.channel, self.side, self.number = channel, side, number
        self.state, self.is_loose = "idle", False
        self.port, self.peer, self.qp = None, None, None
        self.events = []


class World:
    """The model, and the processes. One for each input."""

    def __init__(self, hosts, first_port):
        self.hosts, self.first_port = hosts, first_port
        # A slot of each ring stays empty
        self.is_ext = self.spare = hosts["a"][2] == "kiwarp-ext"
        self.processes = [Process.first({s: f"/run/netns/{s}" for s in SIDES})]
        self.contexts, self.channels, self.ends = [], [], []
        self.made = {kind: [] for kind in KINDS}

    # Choosing

    @staticmethod
    def _nth(some, number):
        return some[number % len(some)] if some else None

    def _thing(self, kind, number):
        thing = self._nth(self.made[kind], number)
        return thing if thing and thing.context.holders else None

    def _context(self, number):
        context = self._nth(self.contexts, number)
        return context if context and context.holders else None

    def _end(self, number):
        end = self._nth(self.ends, number)
        if end and end.state == "gone":
            # The number may have been given to another one
            end = next((e for e in reversed(self.ends) if e.number == end.number and
                        e.channel is end.channel), end)
        return end if end and end.channel.holders else None

    @staticmethod
    def _holder(file):
        """The process that makes calls on a file."""
        return file.opener if file.is_usable() else min(file.holders, key=lambda one: one.pid)

    # Calling

    def _expect(self, what, error, wanted):
        """WANTED: errors, 0 for success; None: anything."""
        if wanted is not None and error not in wanted:
            names = "/".join(errno.errorcode.get(e, "success") for e in sorted(wanted))
            raise guide.Failed(f"{what}: {errno.errorcode.get(error, 'success')} instead of "
                               f"{names}")
        return not error

    def _call(self, file, wanted, function, *args):
        """A call on a file: whether it succeeded, and its result."""
        if not file.is_usable():
            wanted = {errno.EACCES}
        error, result = self._holder(file).tell("call", function, file.name, *args)
        return self._expect(function, error, wanted), result

    def _on(self, context, wanted, function, *args):
        if context.is_dead:
            # The core looks the handle up before it finds that the device is gone.
            wanted = {errno.EIO} | (GONE & (wanted or set()))
        return self._call(context, wanted, function, *args)

    @staticmethod
    def _found(context, *handles):
        """Things by kind and handle in a context; None for one that is not there."""
        found = []
        for kind, handle in handles:
            thing = context.things.get(handle)
            found.append(thing if thing and thing.kind == kind else None)
        return found

    def _add(self, kind, context, made, uses=()):
        handle = made[0] if isinstance(made, tuple) else made
        thing = Thing(kind, context, handle, uses)
        context.things[handle] = thing
        self.made[kind].append(thing)
        return thing

    # uverbs

    def do_context(self, process, side):
        process, side = self._nth(self.processes, process), SIDES[side % 2]
        context = Context(f"context {len(self.contexts)}", process, side)
        error, _ = process.tell("open", context.name, self._device(side))
        self._expect("open", error, {0})
        self.contexts.append(context)
        self._call(context, {0}, "get_context")

    def _device(self, side):
        for path in glob.glob("/sys/class/infiniband_verbs/uverbs*/ibdev"):
            with open(path, encoding="ascii") as file:
                if file.read().strip() == self.hosts[side][0]:
                    return f"/dev/infiniband/{path.split('/')[-2]}"
        raise guide.Failed(f"no device {self.hosts[side][0]}")

    def do_close(self, process, number):
        process, context = self._nth(self.processes, process), self._context(number)
        if context and process in context.holders:
            process.tell("close", context.name)
            self._release(context, process)

    def _release(self, context, process):
        """PROCESS has closed a file."""
        context.holders.discard(process)
        if not context.holders:
            self._end_all(context)

    def _end_all(self, context):
        """All of a context is destroyed."""
        things = list(context.things.values())
        context.things.clear()
        for qp in (thing for thing in things if thing.kind == "qp"):
            self._lose(qp)

    def _make(self, kind, parent, wanted, function, *args):
        """Makes an object in a PD."""
        context = parent.context
        pd, = self._found(context, ("pd", parent.handle))
        good, made = self._on(context, wanted if pd else GONE, function, parent.handle, *args)
        return self._add(kind, context, made, (pd,)) if good else None

    def do_pd(self, number):
        context = self._context(number)
        if context:
            good, made = self._on(context, {0}, "alloc_pd")
            if good:
                self._add("pd", context, made)

    def do_mr(self, number, size, rights):
        pd, size, rights = self._thing("pd", number), size % 8192, rights % 32
        if pd:
            is_good = size and (rights & LOCAL_WRITE or not rights & WRITING)
            self._make("mr", pd, {0} if is_good else {errno.EINVAL}, "reg_mr", size, rights)

    def do_mw(self, number, kind):
        pd = self._thing("pd", number)
        if pd and self.is_ext:
            self._make("mw", pd, {0}, "alloc_mw", 1 + kind % 2)
        elif pd:
            self._call(pd.context, NO_SUCH, "alloc_mw", pd.handle, 1 + kind % 2)

    def do_ah(self, number):
        pd = self._thing("pd", number)
        if pd:
            self._call(pd.context, NO_SUCH, "create_ah", pd.handle)

    def _fits(self, count, most):
        return {0} if 0 < count <= most - self.spare else {errno.EINVAL}

    def _size(self, count):
        """Of a queue for COUNT entries: rings have a power of two of slots."""
        return (1 << (count + self.spare - 1).bit_length()) - self.spare

    @staticmethod
    def _same(what, has, wants):
        if has != wants:
            raise guide.Failed(f"{what}: {has} instead of {wants}")

    def do_cq(self, number, count):
        context = self._context(number)
        if context:
            good, made = self._on(context, self._fits(count, MAX_CQE), "create_cq", count)
            if good:
                self._add("cq", context, made).size = self._size(count)
                self._same("create_cq", made[1], self._size(count))

    def do_srq(self, number, count):
        pd = self._thing("pd", number)
        made = pd and self._make("srq", pd, self._fits(count, MAX_SRQ_WR), "create_srq", count)
        if made:
            made.size = self._size(count)
            self._compare_srq(made)

    def _compare_srq(self, srq):
        _, has = self._on(srq.context, {0}, "query_srq", srq.handle)
        if has:
            self._same("query_srq", has, (srq.size, srq.limit))

    def do_size(self, kind, number, count):
        kind = ("cq", "srq")[kind % 2]
        queue = self._thing(kind, number)
        if not queue:
            return
        found, = self._found(queue.context, (kind, queue.handle))
        wanted = self._fits(count, MAX_CQE if kind == "cq" else MAX_SRQ_WR)
        size = self._size(count)
        if not found:
            wanted = GONE
        elif wanted == {0} and found.limit > size:
            wanted = {errno.EINVAL}
        elif wanted == {0} and not self.is_ext:
            wanted = {errno.EOPNOTSUPP}
        good, has = self._on(queue.context, wanted, f"resize_{kind}", queue.handle, count)
        if not good:
            return
        found.size = size
        if kind == "cq":
            self._same("resize_cq", has, size)
        else:
            self._compare_srq(found)

    def do_arm(self, number):
        cq = self._thing("cq", number)
        if cq and self.is_ext:
            found, = self._found(cq.context, ("cq", cq.handle))
            self._on(cq.context, {0} if found else GONE, "arm_cq", cq.handle)
        elif cq:
            self._call(cq.context, NO_SUCH, "arm_cq", cq.handle)

    def do_qp(self, pd, scq, rcq, srq, count, shared, kind):
        pd, scq, rcq = self._thing("pd", pd), self._thing("cq", scq), self._thing("cq", rcq)
        srq = self._thing("srq", srq) if shared % 2 else None
        if not pd or not scq or not rcq:
            return
        context, kind = pd.context, calls_abi.UD if kind % 8 == 7 else calls_abi.RC
        uses = [("pd", pd.handle), ("cq", scq.handle), ("cq", rcq.handle)]
        uses += [("srq", srq.handle)] if srq else []
        found, wanted = self._found(context, *uses), self._fits(count + 1, MAX_SEND_WR + 1)
        if kind == calls_abi.UD:
            wanted = {errno.EOPNOTSUPP}
        if None in found:
            wanted = GONE
        good, made = self._on(context, wanted, "create_qp", pd.handle, scq.handle, rcq.handle,
                              srq and srq.handle, count, kind)
        if good:
            self._add("qp", context, made, found).number = made[1]

    def do_free(self, kind, number):
        kind = KINDS[kind % len(KINDS)]
        thing = self._thing(kind, number)
        if not thing:
            return
        context = thing.context
        found, = self._found(context, (kind, thing.handle))
        wanted = GONE if not found else {errno.EBUSY} if found.users else {0}
        if context.is_dead:
            wanted = ENDED
        good, _ = self._call(context, wanted, calls_abi.DESTROY[kind].__name__, thing.handle)
        if good and found:
            del context.things[thing.handle]
            for other in found.uses:
                other.users -= 1
            if kind == "qp":
                self._lose(found)

    @staticmethod
    def _next_state(qp, state):
        """The state after a modify, or None if it has to fail."""
        now = qp.state
        idle = now in ("RESET", "INIT", "RTR")
        return {"RESET": "RESET", "ERR": "ERR",
                "INIT": "INIT" if idle else None,
                "RTR": "RTR" if idle and now != "RESET" else None,
                "RTS": "RTS" if now == "RTS" else None,
                "SQD": None if idle else "ERR"}.get(state)

    def do_state(self, number, state):
        qp, state = self._thing("qp", number), calls_abi.STATES[state % 7]
        if not qp:
            return
        found, = self._found(qp.context, ("qp", qp.handle))
        after = found and self._next_state(found, state)
        wanted = GONE if not found else {0} if after else {errno.EINVAL}
        good, _ = self._on(qp.context, wanted, "modify_qp", qp.handle, state)
        if good:
            was, found.state = found.state, after
            if was == "RTS" != after:
                self._lose(found)
                found.state = after

    def do_query(self, number):
        qp = self._thing("qp", number)
        if not qp:
            return
        found, = self._found(qp.context, ("qp", qp.handle))
        good, state = self._on(qp.context, {0} if found else GONE, "query_qp", qp.handle)
        if good and state != found.state:
            raise guide.Failed(f"query_qp: state {state} instead of {found.state}")

    def do_limit(self, number, limit):
        srq = self._thing("srq", number)
        if not srq:
            return
        found, = self._found(srq.context, ("srq", srq.handle))
        wanted = GONE if not found else {0} if limit % 64 <= found.size else {errno.EINVAL}
        good, _ = self._on(srq.context, wanted, "modify_srq", srq.handle, limit % 64)
        if good:
            found.limit = limit % 64
            self._compare_srq(found)

    # rdma_cm

    def do_channel(self, process):
        process = self._nth(self.processes, process)
        channel = File(f"channel {len(self.channels)}", process)
        error, _ = process.tell("open", channel.name, calls_abi.CM_DEVICE)
        self._expect("open", error, {0})
        self.channels.append(channel)

    def do_id(self, number, side):
        channel, side = self._nth(self.channels, number), SIDES[side % 2]
        if channel and channel.holders:
            self._expect("setns", self._holder(channel).tell("enter", side)[0], {0})
            good, made = self._call(channel, {0}, "create_id")
            if good:
                self.ends.append(End(channel, side, made))

    def _cm(self, end, wanted, function, *args):
        """A call for an identifier."""
        if end.state == "gone":
            wanted = GONE
        elif end.is_loose:
            wanted = None
        return self._call(end.channel, wanted, function, end.number, *args)[0]

    def _in(self, end, *states):
        """What a call that is possible in STATES only gives."""
        return {0} if end.state in states else {errno.EINVAL}

    def _await(self, end, *wanted):
        """The next event of an identifier; of others, events are kept."""
        if not end.channel.is_usable():
            return "none", None
        while not end.events:
            got = self._call(end.channel, {0}, "event", PATIENCE)[1]
            if not got:
                raise guide.Failed(f"no event {'/'.join(wanted)}")
            name, number, status = got
            at = next((e for e in reversed(self.ends) if e.number == number and
                       e.channel is end.channel), None)
            if name == "CONNECT_REQUEST" and end.state == "listening":
                return name, number
            if at:
                at.events.append((name, status))
        name, status = end.events.pop(0)
        if name not in wanted and not end.is_loose:
            raise guide.Failed(f"event {name} ({status}) instead of {'/'.join(wanted)}")
        return name, None

    def _address(self, side):
        return self.hosts[side][1]

    def _port(self, number):
        return self.first_port + number % PORTS

    def _has(self, side, port, *states):
        """The identifier that has a port."""
        return next((e for e in self.ends if e.side == side and e.port == port and not e.is_loose
                     and e.channel.holders and e.state in states), None)

    def do_bind(self, number, port):
        end, port = self._end(number), self._port(port)
        if not end:
            return
        wanted = self._in(end, "idle")
        if any(e.port == port and e.side == end.side and e.channel.holders and e.state != "gone"
               for e in self.ends):
            wanted = wanted & {errno.EINVAL} or {errno.EADDRINUSE}
        if any(e.port == port and e.is_loose for e in self.ends):
            wanted = None
        if self._cm(end, wanted, "bind", self._address(end.side), port) and not end.is_loose:
            end.state, end.port = "bound", port

    def do_listen(self, number):
        end = self._end(number)
        # An idle one would listen on a port of the kernel's choice.
        if end and end.state != "idle" and self._cm(end, self._in(end, "bound"), "listen") and \
                not end.is_loose:
            end.state = "listening"

    def do_resolve(self, number, port):
        end, port = self._end(number), self._port(port)
        if not end:
            return
        other = SIDES[end.side == "a"]
        for _ in range(5):
            good = self._cm(end, self._in(end, "idle", "bound"), "resolve_addr",
                            self._address(other), port)
            if not good or end.is_loose:
                return
            # ib_core can miss the answer of a neighbour
            if self._await(end, "ADDR_RESOLVED", "ADDR_ERROR")[0] == "ADDR_RESOLVED":
                end.state, end.peer = "resolved", (other, port)
                return
            end.state = "bound"

    def do_route(self, number):
        end = self._end(number)
        if end and self._cm(end, self._in(end, "resolved"), "resolve_route") and \
                not end.is_loose:
            self._await(end, "ROUTE_RESOLVED")
            end.state = "routed"

    def _usable(self, end, number):
        """A QP by the number of the Nth, and whether it can be used for a connection."""
        thing = self._nth(self.made["qp"], number)
        if not thing:
            return None, False
        side = end.side
        found = next((t for c in self.contexts if c.side == side and not c.is_dead
                      for t in c.things.values() if t.kind == "qp" and t.number == thing.number),
                     None)
        return found or thing, bool(found) and found.state in ("RESET", "INIT", "RTR")

    def do_connect(self, number, qp):
        end = self._end(number)
        if not end or end.is_loose:
            return
        qp, is_usable = self._usable(end, qp)
        if not qp or qp.end:
            return
        listener = end.state == "routed" and self._has(*end.peer, "listening")
        if listener and not listener.channel.is_usable():
            return
        wanted = self._in(end, "routed") if is_usable else {errno.EINVAL}
        if not self._cm(end, wanted, "connect", qp.number):
            return
        if not listener:
            self._await(end, *LOST)
            end.state = "failed"
            return
        _, made = self._await(listener, "CONNECT_REQUEST")
        child = End(listener.channel, listener.side, made)
        self.ends.append(child)
        end.state, end.peer, child.state, child.peer = "connecting", child, "requested", end
        end.qp, qp.end = qp, end

    def _fail(self, child):
        """The request was refused."""
        end = child.peer
        child.state = "failed"
        if not end.is_loose:
            self._await(end, *LOST)
            end.state = "failed"
        self._let_go(end)

    @staticmethod
    def _let_go(end):
        if end.qp:
            end.qp.end = end.qp = None

    def do_accept(self, number, qp):
        child = self._end(number)
        # iw_cm does not survive an answer to a connection that begins here (kernel-faults.rst)
        if not child or child.state not in ("requested", "connected", "idle", "bound"):
            return
        qp, is_usable = self._usable(child, qp)
        if not qp or qp.end or child.is_loose:
            return
        good = self._cm(child, self._in(child, "requested") if is_usable else {errno.EINVAL},
                        "accept", qp.number)
        if good:
            self._await(child, "ESTABLISHED")
            self._await(child.peer, "ESTABLISHED")
            child.state = child.peer.state = "connected"
            child.qp, qp.end = qp, child
            qp.state = child.peer.qp.state = "RTS"
        elif child.state == "requested":
            self._fail(child)

    def do_reject(self, number):
        child = self._end(number)
        if not child or child.is_loose or child.state not in ("requested", "connected") or \
                not isinstance(child.peer, End):
            return
        if self._cm(child, self._in(child, "requested"), "reject"):
            self._fail(child)

    def do_disconnect(self, number):
        end = self._end(number)
        if end and end.state == "connected" and not end.is_loose:
            self._cm(end, {0}, "disconnect")
            self._over(end)

    def _over(self, end):
        """A connection has ended. Tells both ends that are there."""
        for one in (end, end.peer):
            if one.state == "connected" and not one.is_loose:
                self._await(one, "DISCONNECTED")
            if one.state == "connected":
                one.state = "disconnected"
            if one.qp:
                one.qp.state = "ERR"
            self._let_go(one)

    def _lose(self, qp):
        """A QP is gone, or has ended its connection."""
        end = qp.end
        if not end:
            return
        if end.state == "connected":
            self._over(end)
        else:
            end.is_loose = end.peer.is_loose = True
            self._let_go(end)

    def do_migrate(self, number, channel):
        end, channel = self._end(number), self._nth(self.channels, channel)
        if not end or not channel or end.is_loose or end.state == "gone":
            return
        process = channel.opener
        if not channel.is_usable() or process not in end.channel.holders or channel is end.channel:
            return
        error, _ = process.tell("migrate", channel.name, end.channel.name, end.number)
        self._expect("migrate_id", error, {0})
        end.channel = channel

    def do_destroy(self, number):
        end = self._end(number)
        if end and self._cm(end, {0}, "destroy_id"):
            self._destroyed(end)

    def _destroyed(self, end):
        was, end.state = end.state, "gone"
        if was == "connected":
            self._over(end)
        elif isinstance(end.peer, End) and was in ("connecting", "requested"):
            end.peer.is_loose = True
            self._let_go(end.peer)
            self._let_go(end)
        elif was == "listening":
            for child in self.ends:
                if child.state == "requested" and child.channel is end.channel:
                    child.is_loose = child.peer.is_loose = True
                    self._let_go(child.peer)

    # Processes and devices

    def do_fork(self, process):
        if len(self.processes) < MAX_PROCESSES:
            parent = self._nth(self.processes, process)
            child = parent.fork()
            self.processes.append(child)
            for file in (*self.contexts, *self.channels):
                if parent in file.holders:
                    file.holders.add(child)

    def _end_process(self, how, number):
        if len(self.processes) > 1:
            self._ended(self._nth(self.processes, number), how)

    def _ended(self, process, how):
        self.processes.remove(process)
        process.end(how)
        for channel in self.channels:
            channel.holders.discard(process)
        for end in self.ends:
            if not end.channel.holders and end.state != "gone":
                self._destroyed(end)
        for context in self.contexts:
            if process in context.holders:
                self._release(context, process)

    def do_exit(self, number):
        self._end_process("exit", number)

    def do_kill(self, number):
        self._end_process("kill", number)

    def do_exec(self, number):
        self._end_process("exec", number)

    def _rdma(self, side, *words):
        done = subprocess.run(["nsenter", f"--net=/run/netns/{side}", "--", "rdma", "link", *words],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode:
            raise guide.Failed(f"rdma link {words[0]}: {done.stderr.strip()}")

    def do_unplug(self, side):
        side = SIDES[side % 2]
        name = self.hosts[side][0]
        self._rdma(side, "delete", name)
        # Identifiers first: what follows them is no event of theirs
        for end in self.ends:
            if end.side == side and end.state not in ("idle", "gone"):
                was, end.is_loose = end.state, True
                if was in ("connecting", "requested"):
                    end.peer.is_loose = True
                    self._let_go(end.peer)
                    self._let_go(end)
        for context in self.contexts:
            if context.side == side and not context.is_dead:
                context.is_dead = True
                self._end_all(context)
        self._rdma(side, "add", name, "type", self.hosts[side][2], "netdev", "eth0")

    def counted(self):
        """What `rdma resource show` must say, by side."""
        want = {side: dict.fromkeys((*COUNTED, "ctx"), 0) for side in SIDES}
        for context in self.contexts:
            if context.holders and not context.is_dead:
                want[context.side]["ctx"] += 1
                for thing in context.things.values():
                    if thing.kind in COUNTED:
                        want[context.side][thing.kind] += 1
        return want

    def do_count(self):
        said = subprocess.run(["rdma", "resource", "show"], capture_output=True, text=True,
                              check=True).stdout
        # Such as "2: kiwa: pd 1 cq 2"
        words = {line.split()[1]: line.split()[2:] for line in said.splitlines()}
        for side, want in self.counted().items():
            counts = words.get(f"{self.hosts[side][0]}:", ())
            have = dict(zip(counts[::2], map(int, counts[1::2])))
            have = {kind: have.get(kind, 0) for kind in want}
            if have != want:
                raise guide.Failed(f"count: {have} instead of {want}")

    def do(self, line):
        word, *args = line.split()
        getattr(self, f"do_{word}")(*map(int, args))

    def end(self):
        """Ends all processes; nothing may be left."""
        while self.processes:
            self._ended(self.processes[0], "exit")
        self.do_count()

    def abandon(self):
        """After a failure: ends all processes."""
        for process in list(self.processes):
            with contextlib.suppress(guide.Failed):
                process.end("kill")


# How often a line is made, and the numbers of its arguments
MAKES = {
    "context": (3, 3, 2), "pd": (3, 8), "mr": (2, 8, 9000, 32), "cq": (3, 8, "cq"),
    "srq": (1, 8, "srq"), "mw": (2, 8, 2), "ah": (1, 8), "qp": (4, 8, 8, 8, 8, "qp", 4, 8),
    "free": (5, 6, 12), "state": (3, 12, 7), "query": (2, 12), "limit": (2, 8, 64),
    "size": (2, 2, 8, "size"), "arm": (1, 8),
    "close": (1, 3, 8), "channel": (2, 3), "id": (4, 8, 2), "bind": (4, 12, 3), "listen": (4, 12),
    "resolve": (4, 12, 3), "route": (4, 12), "connect": (4, 12, 12), "accept": (4, 12, 12),
    "reject": (2, 12), "disconnect": (1, 12), "migrate": (1, 12, 8), "destroy": (2, 12),
    "fork": (1, 3), "exit": (1, 3), "kill": (1, 3), "exec": (1, 3), "unplug": (1, 2), "count": (1,),
}
COUNTS = {"size": (0, 1, 2, 5, 31, 32, 33, 32767, 32768, 1 << 20, 1 << 21),
          "cq": (1, 16, 100, 0, 1 << 21), "srq": (1, 16, 100, 0, 40000),
          "qp": (0, 1, 16, 16, 40000)}
WORDS = [word for word, (often, *_) in MAKES.items() for _ in range(often)]

# What leads to a connection: random lines alone seldom do. The first lines make the objects.
LADDER = ("context 0 0", "context 0 1", "pd 0", "pd 1", "cq 0 16", "cq 1 16",
          "qp 0 0 0 0 16 0 0", "qp 1 1 1 0 16 0 0", "srq 0 16", "channel 0", "channel 0",
          "id 0 0", "id 1 1", "bind 0 0", "listen 0", "resolve 1 0", "route 1", "connect 1 1",
          "accept 2 0")
OBJECTS = 9


class Calls(guide.Target):
    """Each input in processes of its own."""

    MAX_LINES = 40

    def __init__(self, *hosts):
        device_a, address_a, device_b, address_b, kind = hosts
        self.hosts = {"a": (device_a, address_a, kind), "b": (device_b, address_b, kind)}
        self.port = FIRST_PORT

    @staticmethod
    def _number(limit, rand):
        return rand.choice(COUNTS[limit]) if isinstance(limit, str) else rand.randrange(limit)

    def begin(self, rand):
        return list(LADDER[:rand.choice((0, *[OBJECTS] * 3, *[len(LADDER)] * 4))])

    def line(self, rand):
        word = rand.choice(WORDS)
        return " ".join((word, *(str(self._number(limit, rand)) for limit in MAKES[word][1:])))

    def change(self, line, rand):
        word, *args = line.split()
        if not args or not rand.randrange(4):
            return self.line(rand)
        at = rand.randrange(len(args))
        args[at] = str(self._number(MAKES[word][1 + at], rand))
        return " ".join((word, *args))

    def run(self, lines):
        self.port = self.port + PORTS if self.port < LAST_PORT else FIRST_PORT
        world = World(self.hosts, self.port)
        try:
            for line in lines:
                world.do(line)
            world.do_count()
            world.end()
        except Exception:
            world.abandon()
            raise


def make(_, arguments):
    return Calls(*arguments)
