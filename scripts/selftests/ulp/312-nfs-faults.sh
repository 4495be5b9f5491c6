#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NFS/RDMA recovers: a server that starts again, cables, packets, devices
# TIMEOUT: 180
# KERNELS: uml uml-debug 6.1 6.12
# SOAK-ONLY: uml 6.1 6.12 uml+pair 6.1+pair 6.12+pair
# TOPOLOGY: any
#
# During each fault two files are written and read, one with direct I/O, and one in all ways there
# are. Every byte is verified, and no operation may fail. A lock is held all the time, and no other
# client may get it. A soak repeats the faults; with a pair, the server has its files on a disk
# then, and is killed, too.
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"

TOOL=$SELFTESTS/fileops.py
VERSION=4.2
[ "$KIW_KERNEL" != 6.1 ] || VERSION=4.1

DISK=
[ -z "${KIW_SOAK:-}" ] || ! is_pair || DISK=$DISK_B

is_held() { grep -q held "$T_DIR/hold.log"; }

# On 6.1 a thread of the server waits while it reads data from a client. Whoever ends the
# connection, such as the removal of the device, waits for that thread, until TCP gives up: so TCP
# gives up soon.
begin() {
	is_pair || tcp_waits b 4 1 4 5 || return 1
	nfs_mount "vers=$VERSION" && nfs_is_rdma || return 1
	spawn hold a "$TOOL" hold "$NFS_MNT/lock"
	spawn random a bash -c "$(declare -f _random); _random $TOOL $NFS_MNT/random $T_DIR/random.stop"
	wait_for 100 is_held && truncate -s 2M "$NFS_MNT/file" && io_start "$NFS_MNT/file" 2M --block 16K
}

# _random TOOL FILE STOP: runs series of operations until STOP exists; each is verified at its end
_random() {
	local seed=$KIW_SEED
	until [ -e "$3" ]; do
		seed=$((seed + 1))
		"$1" random "$2" --ops 60 --seed "$seed" || return 1
	done
}

# random_stop: ends the series; fails if an operation failed or read wrong data.
random_stop() {
	: >"$T_DIR/random.stop"
	spawn_wait random 120 || { spawn_log random; return 1; }
	[ -s "$T_DIR/random.log" ]
}

server_restarts() { nfs_stop && nfs_start; }

# Simulates that b is switched off and on: its peers get no packet, and then the server has only its
# file system and the records of nfsdcld.
server_dies() {
	peer_dies b && nfs_stop && _stay "$FAULT_S" && peer_returns b && nfs_start
}

# Kills the server. What is left is its disk, and what the client knows and has not committed yet.
server_killed() { killed_for "$FAULT_S" && at_b _nfs_serve "$DISK"; }

# Whether the lock is still held after all faults
still_locked() {
	nfs_mount2 "vers=$VERSION" || return 1
	must_fail on_b "$TOOL" try "$NFS_MNT2/lock" && spawn_running hold && spawn_stop hold &&
		wait_for 10 on_b "$TOOL" try "$NFS_MNT2/lock"
}

# Ends I/O and compares everything, also after the first client has read it from the server again.
all_right() {
	io_stop && random_stop && nfs_same_sum && nfs_remount "vers=$VERSION" && nfs_same_sum
}

# fault NAME CMD...: the test case of a fault; in a soak prints how long it took until I/O went on
fault() {
	local began=$SECONDS
	t_run "$1" under "${@:2}"
	[ -z "${KIW_SOAK:-}" ] || diag "$((SECONDS - began)) s"
}

# Without a soak there are only the first two.
faults() {
	fault "the server's threads end and start again" server_restarts
	fault "the server's device is deleted and added" device_again b
	[ -n "${KIW_SOAK:-}" ] || return 0
	fault "the link is down for $FAULT_S s" link_down_for "$FAULT_S"
	fault "1 % of the packets are lost, others reordered" loss_for "$FAULT_S"
	fault "nothing arrives for $FAULT_S s" silence_for "$FAULT_S"
	if [ -n "$DISK" ]; then
		fault "the server's guest is killed and boots again" server_killed
	else
		fault "the server is cut off and starts again" server_dies
	fi
}

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
t_run "a server" nfs_serve $DISK
t_run "a client with a lock, reading and writing" begin
until=$((SECONDS + ${KIW_SOAK:-0}))
faults
while [ $SECONDS -lt $until ] && [ "$T_FAILED" = 0 ]; do faults; done
t_run "the lock was kept" still_locked
t_run "every octet is right" all_right
diag "$(spawn_log io); $(wc -l <"$T_DIR/random.log") series of 60 random operations"
nfs_all_ends
done_testing
