#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NFS/RDMA, a kernel consumer that registers memory by work requests
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.1 6.12
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/rc
. "$(dirname "$0")/rc"
# shellcheck source=scripts/selftests/rc-device
. "$SELFTESTS/rc-device"

EXPORT=$T_DIR/export
MNT=$T_DIR/mnt
PIPEFS=/var/lib/nfs/rpc_pipefs
DAEMONS=(rpcbind rpc.statd nfsdcld rpc.mountd)

serve() {
	local m
	for m in nfsd rpcrdma; do load_module "$m" || return 1; done
	mkdir -p "$EXPORT" "$MNT" "$PIPEFS" && mount -t tmpfs tmpfs "$EXPORT" || return 1
	on_b mount -t rpc_pipefs rpc_pipefs "$PIPEFS" && on_b mount -t nfsd nfsd /proc/fs/nfsd &&
		on_b rpcbind -w && on_b rpc.statd --no-notify && on_b nfsdcld &&
		exportfs -o rw,no_root_squash,insecure,fsid=0,no_subtree_check "*:$EXPORT" &&
		on_b rpc.mountd && on_b rpc.nfsd --rdma=20049 --lease-time 10 --grace-time 10 4
}

# nfs_mount OPTIONS
nfs_mount() {
	local path=/
	case $1 in vers=3*) path=$EXPORT ;; esac
	on_a timeout 60 mount -t nfs -o "rdma,port=20049,$1" "$B4:$path" "$MNT"
}

nfs_umount() { timeout 60 umount "$MNT"; }

# same NAME OPTIONS [FILE]: what the client sees is what the server has, and is not from a cache.
same() {
	nfs_umount && nfs_mount "$2" && cmp "$EXPORT/$1" "$MNT/$1" && cmp "$T_DIR/${3:-$1}" "$MNT/$1"
}

write_and_read() {
	local status=1
	nfs_mount "$1" || return 1
	(cd "$T_DIR" && head -c 3000000 /dev/urandom >big && head -c 777 /dev/urandom >small &&
		cp big small "$MNT/" && same big "$1" && same small "$1") && status=0
	nfs_umount || status=1
	return $status
}

direct_io() {
	local status=0
	nfs_mount "$1" || return 1
	timeout 60 fio --name=x --directory="$MNT" --rw=randrw --bs=1k-64k --size=2M --direct=1 \
		--verify=crc32c --verify_fatal=1 --ioengine=psync >"$T_DIR/fio.log" 2>&1 ||
		{ cat "$T_DIR/fio.log"; status=1; }
	nfs_umount || status=1
	return $status
}

registered_all() {
	local dev got
	for dev in "$DEV_A" "$DEV_B"; do
		got=$(counter "$dev" fast_registered)
		[ "$got" -gt 0 ] || { echo "$dev: no fast registration"; return 1; }
		[ "$(counter "$dev" wr_invalid)" = 0 ] || { echo "$dev: invalid work"; return 1; }
		[ "$(counter "$dev" tx_terminates)" = 0 ] || { echo "$dev: faults"; return 1; }
	done
	[ "$(counter "$DEV_A" rx_invalidates)" -gt 0 ] || { echo "nothing was invalidated"; return 1; }
}

writing() { [ -s "$MNT/again" ] && spawn_running dd; }

# The client's device goes in the middle of a file, and comes back: the file is whole.
device_goes() {
	local status=1
	nfs_mount vers=4.2 || return 1
	spawn dd a timeout 200 dd "if=$T_DIR/big" "of=$MNT/again" bs=1k oflag=direct status=none
	wait_for 10 writing && timeout 60 rdma link delete "$DEV_A" && spawn_running dd &&
		rdma_add a && spawn_wait dd 60 && same again vers=4.2 big && status=0
	[ "$status" = 0 ] || spawn_log dd
	nfs_umount || status=1
	return $status
}

finish() {
	local d
	on_b rpc.nfsd 0 && on_b umount /proc/fs/nfsd && exportfs -ua || return 1
	for d in "${DAEMONS[@]}"; do pkill -x "$d"; done
	for d in "${DAEMONS[@]}"; do wait_gone 10 pgrep -x "$d" || return 1; done
	umount "$PIPEFS" && umount "$EXPORT"
}

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
t_run "a server" serve
t_run "version 3: files" write_and_read vers=3,nolock
t_run "version 4.1: files" write_and_read vers=4.1
t_run "version 4.2: files" write_and_read vers=4.2
t_run "version 4.2: direct I/O of all sizes, verified" direct_io vers=4.2
t_run "memory was registered and invalidated, by the peer too" registered_all
t_run "the device goes while a file is written, and comes back" device_goes
t_run "the server ends" finish
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
