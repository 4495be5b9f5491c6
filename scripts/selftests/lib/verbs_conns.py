# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Listening, connecting, answering, and closing. Part of End in verbs.py."""

from pyverbs import enums
from pyverbs.cq import CQ, CompChannel
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr

import rdmacm
from verbs_base import ALL, PATIENCE, RDMA_PORT, Conn, Failed, Watched, errno_of


class Connections:
    """Listening, connecting, answering, and closing."""

    def listen(self, addr, backlog=16, port=RDMA_PORT):
        self.chan, self.kept = rdmacm.Channel(), []
        self.listener = rdmacm.Id(self.chan)
        self.listener.listen(addr, port, backlog)

    def listen_end(self):
        self.listener.close()
        self.chan.close()
        self.listener = self.chan = None

    @staticmethod
    def _any_event(chan, wanted, seconds):
        if not chan.ready(seconds):
            raise Failed(f"no event {wanted} within {seconds} s")
        return chan.event()

    @staticmethod
    def _must_be(event, wanted):
        if event.name not in wanted.split():
            raise Failed(f"CM event {event.name} ({event.status}) instead of {wanted}")
        return event

    def _event(self, chan, wanted, seconds=PATIENCE):
        """The next event, which must be WANTED ("A", or "A B": either)."""
        return self._must_be(self._any_event(chan, wanted, seconds), wanted)

    def _listener_event(self, wanted, seconds=PATIENCE):
        """
        The next request, or the next event of the connections that were requested. These
        have no order among each other, as they are of different connections: those that
        are not asked for are kept.
        """
        def fits(event):
            return (event.name == "CONNECT_REQUEST") == (wanted == "CONNECT_REQUEST")

        event = next(filter(fits, self.kept), None)
        if event:
            self.kept.remove(event)
        while not event:
            event = self._any_event(self.chan, wanted, seconds)
            if not fits(event):
                self.kept.append(event)
                event = None
        return self._must_be(event, wanted)

    def _resources(self, conn, opts):
        depth = opts.get("depth", 64)
        ctx = self.ctx.obj
        if "qp_of" in opts:
            old = self.conns[opts["qp_of"]]
            conn.qp, conn.scq, conn.rcq = old.qp, old.scq, old.rcq
            old.qp = old.scq = old.rcq = None
            return
        if opts.get("comp"):
            conn.comp = Watched(lambda: CompChannel(ctx))
        if "cq_of" in opts:
            conn.scq = conn.rcq = self.conns[opts["cq_of"]].rcq
            conn.borrowed = True
        else:
            cqe = opts.get("cqe", 2 * depth)
            conn.rcq = CQ(ctx, opts.get("rcqe", cqe), None, conn.comp and conn.comp.obj, 0)
            conn.scq = conn.rcq if opts.get("one_cq") else CQ(ctx, opts.get("scqe", cqe))
        if "srq" in opts:
            conn.srq = self.srqs[opts["srq"]]
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=6, max_recv_sge=6,
                    max_inline_data=80)
        conn.qp = QP(self.pd, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=conn.scq, rcq=conn.rcq,
                                         srq=conn.srq, cap=cap, sq_sig_all=0))
        attr = QPAttr(qp_state=enums.IBV_QPS_INIT)
        attr.qp_access_flags = ALL
        conn.qp.modify(attr, enums.IBV_QP_STATE | enums.IBV_QP_ACCESS_FLAGS)

    @staticmethod
    def _param(conn, opts):
        return (conn.qp.qp_num, opts.get("ird", 16), opts.get("ord", 16),
                opts.get("pdata", b""))

    def _resolved(self, addr, port, own=None):
        """A connection that can be connected: its number, and the connection."""
        conn = Conn()
        num = self._number()
        self.conns[num] = conn
        conn.chan = rdmacm.Channel()
        conn.cmid = rdmacm.Id(conn.chan)
        if own:
            conn.cmid.bind_shared(*own)
        conn.cmid.resolve_addr(addr, port)
        self._event(conn.chan, "ADDR_RESOLVED")
        conn.cmid.resolve_route()
        self._event(conn.chan, "ROUTE_RESOLVED")
        return num, conn

    def connect_with(self, addr, qp_num, port):
        """Like connect(), with a QP given by its number; the connection has no QP of its own."""
        num, conn = self._resolved(addr, port)
        conn.cmid.connect(qp_num, 1, 1)
        return num

    def connect_errno(self, addr, qp_num, port, before=lambda: None):
        """The error of connecting in this way. BEFORE() is called when the route is resolved."""
        num, conn = self._resolved(addr, port)
        before()
        error = errno_of(lambda: conn.cmid.connect(qp_num, 1, 1))
        self.close(num)
        return error

    def destroy_qp(self, num):
        """Like close(), of the QP alone."""
        self.conns[num].qp.close()

    def connect(self, addr, opts, port=RDMA_PORT):
        """Begin to connect; an event is to follow. Return a number."""
        num, conn = self._resolved(addr, port, opts.get("own"))
        self._resources(conn, opts)
        conn.cmid.connect(*self._param(conn, opts))
        return num

    def event(self, num, wanted, seconds=PATIENCE):
        """The next event of a connection that began here."""
        return self._event(self.conns[num].chan, wanted, seconds)

    def has_event(self, num):
        return self.conns[num].chan.ready()

    def has_child_event(self):
        return any(e.name != "CONNECT_REQUEST" for e in self.kept) or self.chan.ready()

    def child_event(self, wanted, seconds=PATIENCE):
        """The next event of the listener's connections."""
        return self._listener_event(wanted, seconds)

    def request(self):
        """A connection that is asked for: its number and the event."""
        event = self._listener_event("CONNECT_REQUEST")
        conn = Conn()
        conn.cmid = rdmacm.Id(self.chan, event.id)
        num = self._number()
        self.conns[num] = conn
        return num, event

    def accept(self, num, opts):
        conn = self.conns[num]
        self._resources(conn, opts)
        conn.cmid.accept(*self._param(conn, opts))

    def reject(self, num, data=b""):
        self.conns[num].cmid.reject(data)

    def accept_errno(self, num, qp_num=None):
        """The error of accepting with that QP number, or with the connection's own QP."""
        conn = self.conns[num]
        if qp_num is None:
            qp_num = conn.qp.qp_num
        return errno_of(lambda: conn.cmid.accept(qp_num, 1, 1))

    def reject_errno(self, num):
        return errno_of(self.conns[num].cmid.reject)

    def disconnect(self, num):
        self.conns[num].cmid.disconnect()

    def close(self, num):
        """Also forgets its events that were kept: another connection may be at the same address."""
        conn = self.conns.pop(num)
        if conn.cmid:
            self.kept = [event for event in self.kept if event.id != conn.cmid.ptr]
        conn.close()
