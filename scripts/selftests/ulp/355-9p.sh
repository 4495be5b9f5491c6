#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: 9p over RDMA: the kernel's client, and diod behind a relay
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck disable=SC2086,SC2015 # names without blanks; meant so
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

PORT=5640
EXPORT=$T_DIR/export
MNT=$T_DIR/mnt

# diod of Debian is built without RDMA, but serves 9p on its standard input and output.
serve() {
	mkdir -p "$EXPORT" "$MNT" &&
		spawn relay b "$SELFTESTS/relay9p.py" "$DEV_B" "$B4" $PORT diod -f -n -r 0 -w 1 -c /dev/null \
			-e "$EXPORT" && wait_listen b $PORT || { spawn_log relay; return 1; }
}

mount_it() {
	on_a timeout $((30 * ${KIW_SLOW:-1})) mount -t 9p -o \
		"trans=rdma,port=$PORT,version=9p2000.L,msize=65536,cache=mmap,uname=root,access=any,aname=$EXPORT" \
		"$B4" "$MNT" && grep " $MNT 9p .*trans=rdma" /proc/mounts || { spawn_log relay; return 1; }
}

unmount_it() { umount "$MNT" && wait_for 10 ended "$1"; }
ended() { [ "$(grep -c -x ended "$T_DIR/relay.log")" = "$1" ]; }

files() {
	head -c 3000000 /dev/urandom >"$T_DIR/big" && cp "$T_DIR/big" "$MNT/big" &&
		cmp "$T_DIR/big" "$EXPORT/big" && cmp "$T_DIR/big" "$MNT/big" &&
		cp -r /host/peer "$MNT/tree" && diff -r /host/peer "$EXPORT/tree" &&
		diff -r /host/peer "$MNT/tree" && mv "$MNT/tree" "$MNT/moved" && rm -r "$MNT/moved" &&
		[ "$(ls "$EXPORT")" = big ]
}

random_operations() { "$SELFTESTS/fileops.py" random "$MNT/random" --ops 60 --seed "$KIW_SEED"; }

# Several programs at a time, so that many requests are outstanding
at_once() {
	local n pids=() status=0
	for n in 1 2 3 4 5 6 7 8; do
		{ cp "$T_DIR/big" "$MNT/big$n" && cmp "$T_DIR/big" "$MNT/big$n"; } &
		pids+=($!)
	done
	for n in "${pids[@]}"; do wait "$n" || status=1; done
	return $status
}

used() {
	[ "$(counter_of a rx_sends)" -gt 100 ] && [ "$(counter_of a wr_invalid)" = 0 ] &&
		[ "$(counter_of a tx_terminates)" = 0 ] && [ "$(counter_of b tx_terminates)" = 0 ]
}

# The client does not connect again; what is called fails, and the mount can be removed.
server_dies() {
	mount_it && spawn_stop relay || return 1
	refused 'error|Connection|aborted|reset|not connected' '' timeout $((60 * ${KIW_SLOW:-1})) ls "$MNT"
	local status=$?
	umount -l "$MNT"
	return $status
}

ulp_up 9p 9pnet_rdma || bail "no two hosts"
t_run "a server" serve
t_run "mount" mount_it
t_run "files and a tree" files
t_run "random operations" random_operations
t_run "many at once" at_once
t_run "all of it by RDMA, without faults" kiwarp_only used
t_run "unmount" unmount_it 1
t_run "mount again, and the server dies" server_dies
ulp_down
done_testing
