#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NFS/RDMA recovers: a server that starts again, cables, packets, devices
# TIMEOUT: 180
# KERNELS: uml uml-debug 6.1 6.12
# TOPOLOGY: any
#
# All of it while files are written and read, each octet verified, no operation may fail; a lock
# is held all the time, which no other client may get. In a soak, again and again.
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"
# shellcheck source=scripts/selftests/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/rc-nfs
. "$SELFTESTS/rc-nfs"

TOOL=$SELFTESTS/fileops.py
VERSION=4.2
[ "$KIW_KERNEL" != 6.1 ] || VERSION=4.1

is_held() { grep -q held "$T_DIR/hold.log"; }

begin() {
	nfs_mount "vers=$VERSION" && nfs_is_rdma || return 1
	spawn hold a "$TOOL" hold "$NFS_MNT/lock"
	wait_for 40 is_held && truncate -s 2M "$NFS_MNT/file" && io_start "$NFS_MNT/file" 2M --block 16K
}

server_restarts() { nfs_stop && nfs_start; }

# As when b is switched off: nothing is said to anybody, and then it knows of nothing but
# what is in its file system and what nfsdcld has kept.
server_dies() {
	peer_dies b && nfs_stop && _stay "$FAULT_S" && peer_returns b && nfs_start
}

# The lock outlived it all.
still_locked() {
	nfs_mount2 "vers=$VERSION" || return 1
	must_fail on_b "$TOOL" try "$NFS_MNT2/lock" && spawn_running hold && spawn_stop hold &&
		wait_for 10 on_b "$TOOL" try "$NFS_MNT2/lock"
}

# The second client has been here, and the first reads everything anew.
all_right() {
	io_stop && nfs_same_sum file && nfs_remount "vers=$VERSION" && nfs_same_sum file
}

# The quick form is on UML, and has two of them only.
faults() {
	t_run "the server's threads end and start again" under server_restarts
	t_run "the server's device is deleted and added" under device_again b
	[ -n "${KIW_SOAK:-}" ] || return 0
	t_run "the link is down for $FAULT_S s" under link_down_for "$FAULT_S"
	t_run "1 % of the packets are lost, others overtaken" under loss_for "$FAULT_S"
	t_run "nothing arrives for $FAULT_S s" under silence_for "$FAULT_S"
	t_run "the server dies and comes back" under server_dies
}

nfs_in_soak uml+pair uml-debug 6.1 6.12 6.1+pair 6.12+pair
{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
t_run "a server" nfs_serve
t_run "a client with a lock, reading and writing" begin
until=$((SECONDS + ${KIW_SOAK:-0}))
faults
while [ $SECONDS -lt $until ] && [ "$T_FAILED" = 0 ]; do faults; done
t_run "the lock was kept" still_locked
t_run "every octet is right" all_right
t_run "the second client ends" nfs_umount2
t_run "the client ends" nfs_umount
t_run "the server ends" nfs_end
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
