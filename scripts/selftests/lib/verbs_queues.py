# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""QPs and their states, posting, completions, and SRQs. Part of End in verbs.py."""

import ctypes
import os
import struct
import threading
import time

from pyverbs import enums
from pyverbs.cq import CQ
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from verbs_base import CMD_CREATE_CQ, CMD_EX_QUERY_DEVICE, PATIENCE, STATE, STATUS, Conn, Failed


class Queues:
    """QPs and their states, posting, completions, and SRQs."""

    def state(self, num):
        return STATE[self.conns[num].qp.query(enums.IBV_QP_STATE)[0].qp_state]

    def read_limits(self, num):
        """Return what may be outstanding toward the peer, and from it."""
        mask = enums.IBV_QP_MAX_QP_RD_ATOMIC | enums.IBV_QP_MAX_DEST_RD_ATOMIC
        attr = self.conns[num].qp.query(mask)[0]
        return attr.max_rd_atomic, attr.max_dest_rd_atomic

    def to_error(self, num):
        self.conns[num].qp.modify(QPAttr(qp_state=enums.IBV_QPS_ERR), enums.IBV_QP_STATE)

    def modify(self, num, state):
        """To another state; return 0 or errno."""
        try:
            attr = QPAttr(qp_state=getattr(enums, "IBV_QPS_" + state))
            self.conns[num].qp.modify(attr, enums.IBV_QP_STATE)
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def modifies(self, num, *states):
        """To each of STATES in turn; return what came of it, and the state then."""
        return [(self.modify(num, to), self.state(num)) for to in states]

    def modify_attr(self, num, *attrs, cur="RESET", to="RESET"):
        """Modify only these, to harmless values, and the states as given; 0 or errno."""
        attr, mask = QPAttr(qp_state=getattr(enums, "IBV_QPS_" + to), port_num=1), 0
        attr.cur_qp_state = getattr(enums, "IBV_QPS_" + cur)
        attr.path_mtu = enums.IBV_MTU_1024
        for name in attrs:
            mask |= getattr(enums, "IBV_QP_" + name)
        try:
            self.conns[num].qp.modify(attr, mask)
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def qp_access(self, num):
        return self.conns[num].qp.query(enums.IBV_QP_ACCESS_FLAGS)[0].qp_access_flags

    def idle_qp(self, max_send_wr=4, max_send_sge=1, max_inline_data=0, max_recv_wr=1,
                max_recv_sge=1, cq_of=None):
        """A QP without a connection: (its number or None, errno)."""
        conn = Conn()
        cap = QPCap(max_send_wr=max_send_wr, max_recv_wr=max_recv_wr,
                    max_send_sge=max_send_sge, max_recv_sge=max_recv_sge,
                    max_inline_data=max_inline_data)
        conn.borrowed = cq_of is not None
        conn.scq = conn.rcq = self.conns[cq_of].rcq if conn.borrowed else CQ(self.ctx.obj, 4)
        try:
            conn.qp = QP(self.pd, QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=conn.scq,
                                             rcq=conn.rcq, cap=cap, sq_sig_all=0))
        except PyverbsRDMAError as exc:
            conn.close()
            return None, exc.error_code
        num = self._number()
        self.conns[num] = conn
        return num, 0

    def cq_errno(self, cqe):
        """What making a CQ of CQE entries gives."""
        try:
            CQ(self.ctx.obj, cqe).close()
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def cq_raw(self, answer=32, part=b""):
        """
        Make a CQ as a provider that has room for ANSWER octets, and sends PART. 0 or errno;
        the CQ stays, to the end of the program.
        """
        room = (ctypes.c_uint8 * 64)()
        cmd = struct.pack("=IHHQQIIiI", CMD_CREATE_CQ, 10 + len(part) // 4, answer // 4,
                          ctypes.addressof(room), 0, 4, 0, -1, 0) + part
        try:
            os.write(self.ctx.obj.cmd_fd, cmd)
        except OSError as exc:
            return exc.errno
        return 0

    def query_raw(self, part=b""):
        """Query the device as a provider that sends PART, a multiple of 8 octets. 0 or errno."""
        room = (ctypes.c_uint8 * 512)()
        cmd = struct.pack("=IHHQHHIII", CMD_EX_QUERY_DEVICE, 1, len(room) // 8,
                          ctypes.addressof(room), len(part) // 8, 0, 0, 0, 0) + part
        try:
            os.write(self.ctx.obj.cmd_fd, cmd)
        except OSError as exc:
            return exc.errno
        return 0

    def post_recv(self, num, wr_id, *sges):
        wr = RecvWR(wr_id=wr_id, num_sge=len(sges), sg=[SGE(*s) for s in sges])
        self.conns[num].qp.post_recv(wr)

    def post_send(self, num, *wrs):
        """A list of WRs, each a dictionary: see wr() of verbs_pairs.py."""
        head = prev = None
        for w in wrs:
            flags = 0
            for f in w["flags"]:
                flags |= getattr(enums, "IBV_SEND_" + f)
            wr = SendWR(wr_id=w["id"], opcode=getattr(enums, "IBV_WR_" + w["op"]),
                        num_sge=len(w["sge"]), sg=[SGE(*s) for s in w["sge"]],
                        send_flags=flags)
            if "raddr" in w:
                wr.set_wr_rdma(w["rkey"], w["raddr"])
            if prev:
                prev.next_wr = wr
            head, prev = head or wr, wr
            w["keep"] = wr
        self.conns[num].qp.post_send(head)

    def _cq(self, num, queue):
        conn = self.conns[num]
        return conn.scq if queue == "send" else conn.rcq

    def qp_num(self, num):
        return self.conns[num].qp.qp_num

    def qp_nums(self, num, count, seconds=PATIENCE):
        """Of COUNT receive completions: (QP, wr_id), in their order."""
        found = []
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            wcs = self.conns[num].rcq.poll(count - len(found))[1]
            found += [(w.qp_num, w.wr_id) for w in wcs if STATUS[w.status] == "SUCCESS"]
        return found

    def caps(self, num):
        """Return what the queues of a QP hold: send WRs, receive WRs."""
        cap = self.conns[num].qp.query(enums.IBV_QP_CAP)[1].cap
        return cap.max_send_wr, cap.max_recv_wr

    def completions(self, num, queue):
        """Those that are there: (wr_id, status, octets)."""
        found = []
        while True:
            n, wcs = self._cq(num, queue).poll(32)
            found += [(w.wr_id, STATUS[w.status], w.byte_len) for w in wcs]
            if n < 32:
                return found

    def complete(self, num, queue, count=1, seconds=PATIENCE):
        """COUNT completions."""
        found = []
        end = time.monotonic() + seconds
        while len(found) < count:
            is_late = time.monotonic() > end
            found += self.completions(num, queue)
            if is_late and len(found) < count:
                raise Failed(f"{len(found)} of {count} {queue} completions "
                             f"within {seconds} s: {found}")
            if len(found) < count:
                time.sleep(0)
        if len(found) > count:
            raise Failed(f"more than {count} completions: {found}")
        return found

    def arm(self, num, solicited):
        self.conns[num].rcq.req_notify(solicited)

    def notified(self, num, seconds=0.0):
        """Whether the completion channel has an event; takes it."""
        conn = self.conns[num]
        if not conn.comp.ready(seconds):
            return False
        conn.comp.obj.get_cq_event(conn.rcq)
        conn.rcq.ack_events(1)
        return True

    def consume(self, num, count, solicited, sge):
        """
        In a thread, until consumed(): take COUNT receives, sleeping whenever the CQ was found
        empty after it had been armed; post each again.
        """
        seen = []

        def work():
            conn = self.conns[num]
            while len(seen) < count:
                conn.rcq.req_notify(solicited)
                found = self.completions(num, "recv")
                for wr_id, _, _ in found:
                    conn.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1, sg=[SGE(*sge)]))
                seen.extend(found)
                if not found and not self.notified(num, PATIENCE):
                    return

        thread = threading.Thread(target=work)
        thread.start()
        self.consumer = (thread, seen)

    def wait_consumed(self, count):
        """Until the thread has taken COUNT, or given up."""
        thread, seen = self.consumer
        while len(seen) < count and thread.is_alive():
            time.sleep(0.001)

    def consumed(self):
        """Their statuses."""
        self.consumer[0].join()
        return [c[1] for c in self.consumer[1]]

    def srq_errno(self, max_wr=1, max_sge=1):
        """What making an SRQ gives."""
        try:
            SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=max_wr, max_sge=max_sge))).close()
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def srq_shown(self):
        """Size and limit of the only SRQ of all devices: the stock provider has no query."""
        (size, limit), = self.shown("srq", r"drv_size (\d+) drv_limit (\d+)")
        return int(size), int(limit)

    def srq_modify(self, num, mask, max_wr, limit):
        try:
            self.srqs[num].modify(SrqAttr(max_wr=max_wr, srq_limit=limit), mask)
        except PyverbsRDMAError as exc:
            return exc.error_code
        return 0

    def srq(self, max_wr):
        num = self._number()
        self.srqs[num] = SRQ(self.pd, SrqInitAttr(SrqAttr(max_wr=max_wr, max_sge=6)))
        return num

    def srq_recv(self, num, wr_id, *sges):
        wr = RecvWR(wr_id=wr_id, num_sge=len(sges), sg=[SGE(*s) for s in sges])
        self.srqs[num].post_recv(wr)

    def srq_limit(self, num, limit):
        attr = SrqAttr()
        attr.srq_limit = limit
        self.srqs[num].modify(attr, enums.IBV_SRQ_LIMIT)

    def srq_close(self, num):
        self.srqs.pop(num).close()
