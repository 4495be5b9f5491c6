#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: type of service of rdma_set_option, in the IP headers of both directions
# TIMEOUT: 90
# KERNELS: uml 6.12
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

PORT=7701	# of verbs_base.py
# Bits of the type of service that are TCP's, and that nobody can ask for
ECN=3

# tos.py listen|connect DEVICE ADDRESS TOS: one connection with a few octets each way; TOS is
# decimal, -1: not set.
cat >"$T_DIR/tos.py" <<'END'
import ctypes
import sys

import rdmacm
import verbs
from verbs_pairs import wr

OPTION_ID, OPTION_ID_TOS = 0, 0
SIZE = 3000


def set_tos(cmid, tos):
    value = ctypes.c_uint8(tos)
    if rdmacm._LIB.rdma_set_option(ctypes.c_void_p(cmid.ptr), OPTION_ID, OPTION_ID_TOS,
                                   ctypes.byref(value), ctypes.c_size_t(1)):
        raise OSError(ctypes.get_errno(), "rdma_set_option")


def before(name, tos):
    """An Id gets its type of service before what is called NAME."""
    then = getattr(rdmacm.Id, name)

    def now(self, *args):
        set_tos(self, tos)
        then(self, *args)
    setattr(rdmacm.Id, name, now)


def main(role, device, addr, tos):
    if tos >= 0:
        before(role if role == "listen" else "resolve_addr", tos)
    end = verbs.End(device)
    out, into = end.mr(SIZE), end.mr(SIZE)
    if role == "listen":
        end.listen(addr)
        num, _ = end.request()
        end.accept(num, {})
        end.child_event("ESTABLISHED")
        end.post_recv(num, 2, (into[1], SIZE, into[2]))
        end.post_send(num, wr("SEND", [(out[1], SIZE, out[2])]))
        end.complete(num, "recv")
        end.child_event("DISCONNECTED")
    else:
        num = end.connect(addr, {})
        end.post_recv(num, 2, (into[1], SIZE, into[2]))
        end.event(num, "ESTABLISHED")
        end.complete(num, "recv")
        end.post_send(num, wr("SEND", [(out[1], SIZE, out[2])]))
        end.complete(num, "send")
        end.disconnect(num)
        end.event(num, "DISCONNECTED")


main(*sys.argv[1:4], int(sys.argv[4]))
END

seen() { tcpdump -n -v -r "$PCAP" "$1" 2>/dev/null; }

# all_have ADDRESS TOS: all packets from there (but resets, which no socket sends), from the
# SYN or its answer on.
all_have() {
	local from="tcp port $PORT and src host $1" field rst syn n
	case $1 in
	*:*) field="(ip6[0:2] & 0xff0)" rst="ip6[53] & 4 = 0" syn="ip6[53] & 2 != 0"
		set -- "$1" $(($2 << 4)) ;;
	*) field="ip[1]" rst="tcp[13] & 4 = 0" syn="tcp[13] & 2 != 0" ;;
	esac
	n=$(seen "$from and $field = $2" | grep -c 'Flags')
	echo "$1: $n packets with it; without:"
	[ "$n" -ge 5 ] && seen "$from and $field = $2 and $syn" | grep -q Flags &&
		! seen "$from and $rst and $field != $2" | grep .
}

# connection A B ASKED-A ASKED-B [LISTEN]: from host a to host b, of the addresses A and B; what
# is asked for is decimal, -1: nothing. LISTEN is where b listens, B unless given.
connection() {
	local a=$1 b=$2 ours=$3 theirs=$4 at=${5:-$2} status=0
	local -a run=(env "PYTHONPATH=$SELFTESTS" timeout 60 python3 "$T_DIR/tos.py")
	capture || return 1
	spawn listener b "${run[@]}" listen "$DEV_B" "$at" "$theirs"
	wait_listen b "$PORT" || { spawn_log listener; spawn_stop listener; return 1; }
	on_a "${run[@]}" connect "$DEV_A" "$b" "$ours" || status=1
	spawn_wait listener 10 || { spawn_log listener; status=1; }
	capture_end && [ "$status" = 0 ] &&
		all_have "$a" $((ours < 0 ? 0 : ours & ~ECN)) &&
		all_have "$b" $((theirs < 0 ? 0 : theirs & ~ECN))
}

command -v tcpdump >/dev/null || bail "the root image has no tcpdump"
{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "nothing is asked for" connection "$A4" "$B4" -1 -1
t_run "the caller asks" connection "$A4" "$B4" 104 -1
t_run "the listener asks" connection "$A4" "$B4" -1 184
t_run "both ask" connection "$A4" "$B4" 104 184
t_run "the bits of ECN are not set" connection "$A4" "$B4" 107 187
t_run "nothing is asked for, IPv6" connection "$A6" "$B6" -1 -1
t_run "the caller asks, IPv6" connection "$A6" "$B6" 104 -1
t_run "the listener asks, IPv6" connection "$A6" "$B6" -1 184
t_run "both ask, IPv6" connection "$A6" "$B6" 104 184
t_run "the bits of ECN are not set, IPv6" connection "$A6" "$B6" 107 187
t_run "the listener asks at ::, IPv4" connection "$A4" "$B4" -1 184 ::
t_run "the listener asks at ::, IPv6" connection "$A6" "$B6" -1 184 ::
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
