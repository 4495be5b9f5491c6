#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rdma_rxe beside devices of the type kiwarp-ext, which have its driver id
# TIMEOUT: 60
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

KIW_LINK_TYPE=kiwarp-ext
# rdma_rxe receives in the initial network namespace only, so a device there, in place of a's.
HERE=10.79.0.1
THERE=10.79.0.2

cable() {
	ip link add w0 type veth peer name w1 netns b && ip addr add "$HERE"/24 dev w0 &&
		ip -n b addr add "$THERE"/24 dev w1 && ip link set w0 up && ip -n b link set w1 up &&
		wait_for 10 ping -q -c 1 -W 1 "$THERE"
}

devices() {
	rdma link add kiww type kiwarp-ext netdev w0 && on_b rdma link add kiwx type kiwarp-ext netdev w1
}

# Packets to RoCE's port, of all opcodes. rdma_rxe looks for a device of its own on the netdev.
roce() {
	on_b python3 - "$HERE" <<-'END'
		import os, socket, sys
		sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for n in range(1024):
		    packet = bytes([n % 256, 0x40, 0xff, 0xff, 0, 0, n // 256, n % 256]) + os.urandom(60)
		    sock.sendto(packet, (sys.argv[1], 4791))
	END
}

changes() {
	ip link set w0 mtu 1280 && ip link set w0 down && ip link set w0 up && ip link set w0 mtu 1500 &&
		wait_for 10 ping -q -c 1 -W 1 "$THERE"
}

works() {
	local status=0
	timeout 50 rping -s -a "$HERE" -V -C 10 -S 4000 >"$T_DIR/server" 2>&1 &
	wait_for 10 listens && on_b timeout 50 rping -c -a "$HERE" -V -v -C 10 -S 4000 \
		>"$T_DIR/client" 2>&1 || status=$?
	wait "$!"
	cat "$T_DIR/client"
	rping_ended "$status" "$T_DIR/client"
}

listens() { rdma resource show cm_id | grep -q 'state LISTEN'; }

alone() { modprobe rdma_rxe && roce && changes && roce && link_exists kiww; }

on_one_netdev() {
	rdma link add rxe0 type rxe netdev w0 && link_exists kiww && link_exists rxe0 &&
		roce && changes && roce && rdma link delete rxe0 && link_exists kiww
}

# ib_unregister_driver() takes all devices of the driver id.
removed() {
	modprobe -r rdma_rxe && wait_gone 10 link_exists kiww && devices && link_exists kiww
}

gone() { rdma link delete kiww && rdma link delete kiwx; }

{ load_kiwarp && topo_up 1500 && cable && devices; } || bail "no two hosts"
t_run "rdma_rxe does not take packets or events of ours" alone
t_run "works beside it" works
t_run "both on one netdev" on_one_netdev
t_run "rdma_rxe takes our devices along, and they can come back" removed
t_run "works again" works
t_run "delete" gone
ip link del w0
topo_down
t_run "unload" unload_kiwarp
done_testing
