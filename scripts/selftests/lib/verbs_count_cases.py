# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cases of verbs.py: what the counters say about failures."""

import errno

from verbs_base import IS_EXT, expect
from verbs_pairs import ACCEPT, PAGE, RAW_PORT, buffers, connect, counted, ended, finish, meet, wr


# Counters, and what they count

def counts_refusals(l, r, addr):
    """A connection that the consumer there rejects."""
    r.listen(addr)
    with counted(r, conn_requested=1, conn_rejected=1, conn_established=0, conn_failed=0), \
            counted(l, conn_initiated=1, conn_refused_by_peer=1, conn_failed=0):
        lc = l.connect(addr, {})
        rc, _ = r.request()
        r.reject(rc)
        l.event(lc, "REJECTED")
        l.close(lc)
        r.close(rc)
    r.listen_end()


def counts_udata(l, _r, _addr):
    """Requests for a response of an unsupported size, or with unknown fields, are counted."""
    with counted(l, udata_invalid=3, cq_created=0):
        expect(l.cq_raw(answer=8), errno.EINVAL, "no room for the driver's answer")
        expect(l.cq_raw(answer=20), errno.EINVAL, "room for a part of it")
        expect(l.cq_raw(part=b"\0\0\0\0\0\0\0\1"), errno.EINVAL, "an unknown request")
    with counted(l, udata_invalid=1):
        expect(l.query_raw(part=b"\0\0\0\0\0\0\0\1"), errno.EINVAL, "an unknown query")
    with counted(l, udata_invalid=0):
        expect(l.query_raw(), 0, "a good query")
        expect(l.query_raw(part=bytes(16)), 0, "a query of a later provider")
    with counted(l, udata_invalid=0, cq_created=2):
        expect(l.cq_raw(), 0, "a good one")
        expect(l.cq_raw(answer=64, part=bytes(16)), 0, "one of a later provider")


def counts_blocked(l, r, addr):
    """While a peer does not read, sending stops; it continues when the peer reads."""
    count, size = 12, 1 << 20
    r.tcp_listen(addr, RAW_PORT)
    with buffers(l, r, size) as (lmr, _):
        lc, there = meet(l, r, addr)
        before = l.counter("tx_blocked")
        sent = {name: l.counter(name) for name in ("tx_batches", "tx_fpdus")}
        r.tcp_send(there, ACCEPT)
        l.event(lc, "ESTABLISHED")
        l.post_send(lc, *[wr("SEND", [(lmr[1], size, lmr[2])], i) for i in range(count)])
        l.counter_above("tx_blocked", before)
        expect(len(l.completions(lc, "send")) < count, True, "sends that wait")
        r.tcp_drain(there)
        l.complete(lc, "send", count)
        l.disconnect(lc)
        r.tcp_drained(there)
        l.event(lc, "DISCONNECTED")
        l.close(lc)
        l.counter_above("tx_batches", sent["tx_batches"])
        batches, fpdus = (l.counter(name) - sent[name] for name in ("tx_batches", "tx_fpdus"))
        expect(0 < batches <= fpdus, True, f"{fpdus} FPDUs in {batches} batches")
    r.tcp_listen_end()


COUNTER = {"LOC_LEN_ERR": "wc_loc_len", "LOC_PROT_ERR": "wc_loc_prot",
           "LOC_QP_OP_ERR": "wc_loc_qp_op", "WR_FLUSH_ERR": "wc_flushed",
           "REM_ACCESS_ERR": "wc_rem_access", "REM_INV_REQ_ERR": "wc_rem_inv_req",
           "REM_OP_ERR": "wc_rem_op"}


def failing(l, r, addr, wrs, general, there=None, **also):
    """
    A connection on which the last of WRS fails, with the status that is returned: each
    completion is in the counter of its status. GENERAL: which of the two it is here.
    THERE: the status of the receive on the other side; ALSO: counters there.
    """
    with buffers(l, r, PAGE) as (lmr, rmr):
        r.listen(addr)
        p = connect(l, r, addr, {}, {})
        if there:
            r.post_recv(p.rc, 1, (rmr[1], 10, rmr[2]))
        before = {n: l.counter(n) for n in (*COUNTER.values(), "wc_rem_op", "wc_general")}
        with counted(r, **also):
            l.post_send(p.lc, *wrs(lmr, rmr))
            found = l.complete(p.lc, "send", len(wrs(lmr, rmr)))
            ended(p)
            if there:
                expect([c[1] for c in r.complete(p.rc, "recv")], [there], "there")
        counters = {**COUNTER, "GENERAL_ERR": general}
        wanted = dict(before)
        for _, status, _ in found:
            if status != "SUCCESS":
                wanted[counters[status]] += 1
        l.counters_become(wanted)
        l.async_wait(1)
        r.async_events()
        finish(p)
    return found[-1][1]


def counts_failures(l, r, addr):
    """Work requests that fail, by their status."""
    def read(lmr, rmr, rkey=0):
        return wr("RDMA_READ", [(lmr[1], 10, lmr[2])], 2, raddr=rmr[1], rkey=rmr[3] ^ rkey)

    def to_send(lmr, *sges):
        return wr("SEND", sges or [(lmr[1], 20, lmr[2])])

    cases = (
        # A Send has gone when the peer refuses it: the Read behind it has the status.
        (lambda m, n: [to_send(m), read(m, n)], "wc_rem_op", None,
         "REM_OP_ERR" if IS_EXT else "GENERAL_ERR",
         {"rx_no_buffer": 1, "tx_terminates": 1}),
        (lambda m, n: [to_send(m), read(m, n)], None, "LOC_LEN_ERR", "REM_INV_REQ_ERR",
         {"rx_too_long": 1, "wc_loc_len": 1}),
        (lambda m, n: [read(m, n, 0xff00)], None, None, "REM_ACCESS_ERR", {"rx_stag": 1}),
        (lambda m, n: [to_send(m, (m[1], 4, m[2] ^ 0xff00))], None, None, "LOC_PROT_ERR",
         {"rx_terminates": 1}),
        (lambda m, n: [to_send(m, *[(m[1], 0x7fffffff, m[2])] * 2)], None, None,
         "LOC_QP_OP_ERR", {"rx_terminates": 1}),
        (lambda m, n: [wr("SEND_WITH_INV", [(m[1], 4, m[2])], raddr=0, rkey=n[3])], None,
         "GENERAL_ERR", "SUCCESS", {"rx_invalidate": 1, "wc_general": 1}),
    )
    for wrs, general, there, status, also in cases:
        sent = int(status == "SUCCESS")
        local = int(status.startswith("LOC_"))
        with counted(l, tx_sends_inv=sent, wr_invalid=local):
            expect(failing(l, r, addr, wrs, general, there, **also), status, "status")
