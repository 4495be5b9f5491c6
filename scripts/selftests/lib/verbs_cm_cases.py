# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases for verbs.py: calls of rdma_cm that come at the wrong moment. Devices have a deadline
of one second for the startup."""

import errno

from verbs import PATIENCE, expect
from verbs_cases import RAW_PORT, counted, meet
from verbs_queue_cases import ACCEPT

# A Request of revision 2: CRC, peer-to-peer, each kind of RTR, depths of 1
REQUEST_P2P = b"MPA ID Req Frame\x50\x02\x00\x04\xe0\x01\xc0\x01"
# No QP has these numbers.
NO_QPS = (0, 0xfffffe, 1 << 24, 0xffffffff)


def silent_caller(l, r, addr):
    """A peer that asks for a connection and never speaks again."""
    caller = l.tcp_connect(addr)
    l.tcp_send(caller, REQUEST_P2P)
    rc, _ = r.request()
    return caller, rc


def refuses_all(end, num, *qp_nums):
    """Neither accept nor reject can be called for this connection."""
    for qp_num in (*qp_nums, *NO_QPS):
        expect(end.accept_errno(num, qp_num), errno.EINVAL, f"accept with QP {qp_num:#x}")
    expect(end.reject_errno(num), errno.EINVAL, "reject")


def answered_twice(l, r, addr):
    """After accept the consumer cannot answer again, and the connection does not change."""
    r.listen(addr)
    other, _ = r.idle_qp()
    with counted(r, conn_requested=1, conn_timeout=1, conn_closed=1, conn_established=0,
                 conn_rejected=0, conn_failed=0):
        caller, rc = silent_caller(l, r, addr)
        r.accept(rc, {})
        refuses_all(r, rc, r.qp_num(rc), r.qp_num(other))
        r.child_event("ESTABLISHED")
        refuses_all(r, rc, r.qp_num(rc), r.qp_num(other))
        expect(r.state(rc), "RTS", "state of the QP")
        r.child_event("DISCONNECTED")
        refuses_all(r, rc, r.qp_num(rc))
        l.tcp_closed(caller)
    # An answer behind the deadline
    caller, late = silent_caller(l, r, addr)
    l.tcp_closed(caller)
    expect(r.accept_errno(late, r.qp_num(other)), errno.ECONNABORTED, "too late")
    refuses_all(r, late, r.qp_num(other))
    r.close(late)
    r.close(rc)
    r.close(other)
    r.listen_end()


def accepted_in_vain(l, r, addr):
    """Accept with a number that is no QP's rejects the peer, once, and no more can be said."""
    r.listen(addr)
    for qp_num in NO_QPS:
        caller, rc = silent_caller(l, r, addr)
        expect(r.accept_errno(rc, qp_num), errno.EINVAL, f"accept with QP {qp_num:#x}")
        refuses_all(r, rc)
        expect(l.tcp_closed(caller) < PATIENCE / 2, True, "the peer is told")
        r.close(rc)
    r.listen_end()


def qp_in_use(l, r, addr):
    """Destroying a QP ends all startups for it, also when it has a connection."""
    r.tcp_listen(addr, RAW_PORT)
    lc, there = meet(l, r, addr)
    second = l.connect_with(addr, l.qp_num(lc), RAW_PORT)
    there_too = r.tcp_accept()
    r.tcp_send(there, ACCEPT)
    l.event(lc, "ESTABLISHED")
    expect(l.connect_errno(addr, l.qp_num(lc), RAW_PORT), errno.EINVAL, "a connected QP")
    with counted(l, conn_timeout=0, conn_closed=1):
        l.destroy_qp(lc)
        l.event(lc, "DISCONNECTED")
        l.event(second, "CONNECT_ERROR")
    r.tcp_closed(there)
    r.tcp_closed(there_too)
    l.close(lc)
    l.close(second)
    r.tcp_listen_end()
