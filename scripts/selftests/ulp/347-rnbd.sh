#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: RNBD on RTRS, client and server of the kernel
# TIMEOUT: 180
# KERNELS: uml uml-debug
# CHECK-KERNELS: uml
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

RNBD=/sys/class/rnbd-client/ctl
PORT=1234
SESSION=kiwarp
SIZE_KB=$((64 << 10))

# server OPTION...: the modules of the server, with these options of RTRS. Its buffers are smaller
# than usual: 64 of 128 KiB.
server() {
	on_b modprobe rtrs-server sess_queue_depth=64 "$@" && on_b modprobe rnbd-server
}
server_ends() { on_b modprobe -r rnbd-server && on_b modprobe -r rtrs-server; }

disk() { on_b modprobe brd rd_nr=1 rd_size=$SIZE_KB; }
disk_ends() { on_b modprobe -r brd; }

client() { on_a modprobe rnbd-client; }
client_ends() { on_a modprobe -r rnbd-client && on_a modprobe -r rtrs-client; }

# Documentation/ulp/rtrs.rst says why not min-inflight, the default.
map() {
	put a "sessname=$SESSION path=ip:$1@ip:$2 device_path=/dev/ram0" $RNBD/map_device &&
		wait_for 10 on_a test -b /dev/rnbd0 &&
		put a round-robin /sys/class/rtrs-client/$SESSION/mpath_policy
}
unmap() { put a normal /sys/block/rnbd0/rnbd/unmap_device && wait_for 20 on_a test ! -e /dev/rnbd0; }

# A session has a connection for each CPU, and one more. All come from one port of rdma_cm.
connections() {
	local n
	n=$(on_a ss -Htn dst "$B4" dport = ":$PORT" | tee /dev/stderr | wc -l)
	[ "$n" = $(($(on_a nproc) + 1)) ] &&
		[ "$(on_a ss -Htn dst "$B4" dport = ":$PORT" | awk '{ print $4 }' | sort -u | wc -l)" = "$n" ]
}
no_connections() { ! on_a ss -Htn dst "$B4" dport = ":$PORT" | grep .; }

# Requests and answers are Writes with immediate; memory of the client is registered and written.
work_of_rtrs() {
	local name
	for name in fast_registered rx_writes rx_immediates tx_immediates tx_writes; do
		[ "$(counter_of a $name)" -gt 0 ] || { echo "$name: 0"; return 1; }
	done
	for name in wr_invalid tx_terminates rx_terminates; do
		[ "$(counter_of a $name)" = 0 ] || { echo "$name: $(counter_of a $name)"; return 1; }
	done
}

faults() {
	t_run "the link is down for a while" under link_down_for "$FAULT_S"
	t_run "loss and disorder" under loss_for "$FAULT_S"
}

# served FROM TO [MORE...]: a disk, verified I/O, and that everything goes again
served() {
	t_run "$1: a disk is mapped" map "$1" "$2"
	t_run "$1: verified I/O" fio_verify /dev/rnbd0 8M
	shift 2
	[ $# = 0 ] || "$@"
	t_run "it is unmapped" unmap
	t_run "the session ends" wait_for 20 no_connections
}

io_with_faults() {
	t_run "each connection has a port" connections
	t_run "immediate data, registered memory, no fault" work_of_rtrs
	io_start /dev/rnbd0 8M || not_ok "I/O begins" "$(spawn_log io)"
	again_and_again faults
	io_ends
}

ulp_has rnbd-client rnbd-server rtrs-server brd || bail "no RNBD"
ulp_up || bail "no two hosts"
t_run "a disk" disk
t_run "a client" client
t_run "a server without always_invalidate" server always_invalidate=N
served "$A4" "$B4" io_with_faults
served "$A6" "$B6"
t_run "the server ends" server_ends
t_run "the client ends" client_ends
t_run "the disk goes" disk_ends
ulp_down
done_testing
