#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NFS/RDMA: files, trees, mapped and direct I/O, locks, two clients, two mounts, nconnect
# TIMEOUT: 180
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml uml-debug
# SOAK-ONLY: uml+pair
# CHECK-PAIRS: none
# TOPOLOGY: any
#
# Each kernel runs some of the versions; with KIW_SOAK all, which share its seconds.
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"
# shellcheck source=scripts/selftests/lib/rc-reserves
. "$SELFTESTS/rc-reserves"

BIG=1000000
RANDOM_OPS=60
case $KIW_KERNEL in
uml) VERSIONS=(3 4.0 4.2) ;;
6.1) VERSIONS=(4.1) ;;
*) VERSIONS=(4.2) ;;
esac
LAST=${VERSIONS[-1]}
[ -z "${KIW_SOAK:-}" ] || VERSIONS=(3 4.0 4.1 4.2) BIG=30000000 RANDOM_OPS=2000

# options VERSION: prints the mount options; host a has no rpcbind, which locks of version 3 need
options() {
	case $1 in 3) echo vers=3,nolock ;; *) echo "vers=$1" ;; esac
}

# Files: large, small, empty, and of a size that is no multiple of anything; and a source tree.
files() {
	local opts
	opts=$(options "$1")
	nfs_is_rdma || return 1
	(cd "$T_DIR" && head -c $BIG /dev/urandom >big && head -c 777 /dev/urandom >small &&
		: >empty && cp big small empty "$NFS_MNT/" && cp -r /host/peer "$NFS_MNT/tree") &&
		nfs_same_sum && nfs_remount "$opts" && diff -r /host/peer "$NFS_MNT/tree" &&
		cmp "$T_DIR/big" "$NFS_MNT/big" && cmp "$T_DIR/small" "$NFS_MNT/small" &&
		rm -r "$NFS_MNT/tree" "$NFS_MNT/small" "$NFS_MNT/empty" && nfs_same_sum
}

random_operations() {
	"$SELFTESTS/fileops.py" random "$NFS_MNT/random" --ops $RANDOM_OPS --seed "$2" \
		--seconds "$((${KIW_SOAK:-0} / 8))" && nfs_same_sum && nfs_remount "$(options "$1")" &&
		nfs_same_sum random
}

direct_io() {
	local more=()
	[ -z "${KIW_SOAK:-}" ] || more=(--time_based "--runtime=$((KIW_SOAK / 8))")
	timeout $((60 * ${KIW_SLOW:-1} + ${KIW_SOAK:-0})) fio --name=x "--directory=$NFS_MNT" \
		--rw=randrw --bs=1k-64k --size=1M --direct=1 --verify=crc32c --verify_fatal=1 \
		--ioengine=psync "${more[@]}" "$@" >"$T_DIR/fio.log" 2>&1 || { cat "$T_DIR/fio.log"; return 1; }
}

is_held() { grep -q held "$T_DIR/hold.log"; }

# can_lock HOST DIR [START LENGTH]: whether a process on HOST can get the lock now
can_lock() { on "$1" "$SELFTESTS/fileops.py" try "$2/lock" "${@:3}"; }

# locks HOST DIR: while a process has a lock, no other process can lock the same file in DIR of
# HOST, neither a part of it nor with flock.
locks() {
	local status=1
	: >"$NFS_MNT/lock"
	spawn hold a timeout 200 "$SELFTESTS/fileops.py" hold "$NFS_MNT/lock" 100 50
	wait_for 10 is_held && must_fail can_lock "$@" && must_fail can_lock "$@" 149 1 &&
		can_lock "$@" 150 10 && must_fail on "$1" flock -n "$2/lock" true && status=0
	spawn_stop hold
	wait_for 10 on "$1" flock -n "$2/lock" true && return $status
}

# When one client has closed a file, the other sees its content.
two_clients() {
	local status=1
	nfs_mount2 "$(options "$1")" || return 1
	cp "$T_DIR/big" "$NFS_MNT/shared" &&
		on_b cp "$NFS_MNT2/shared" "$NFS_MNT2/back" && cmp "$T_DIR/big" "$NFS_MNT/back" && status=0
	[ "$1" = 3 ] || locks b "$NFS_MNT2" || status=1
	nfs_umount2 && return $status
}

# lock_is_granted: the second client releases a lock that the first waits for; the first gets it.
lock_is_granted() {
	local status=1
	spawn hold b timeout 200 "$SELFTESTS/fileops.py" hold "$NFS_MNT2/lock"
	wait_for 10 is_held && spawn waiting a flock "$NFS_MNT/lock" echo granted &&
		must_fail can_lock a "$NFS_MNT" && spawn_running waiting && status=0
	spawn_stop hold
	spawn_wait waiting 60 && grep granted "$T_DIR/waiting.log" && return $status
}

# Version 3 has a separate protocol for locks (NLM), over TCP, for which both clients need daemons.
# In one guest these would conflict.
nlm() {
	local d status=1
	rpcbind -w && rpc.statd --no-notify && nfs_mount vers=3 && nfs_mount2 vers=3 || return 1
	locks b "$NFS_MNT2" && lock_is_granted && status=0
	nfs_umount2 && nfs_umount || return 1
	for d in rpc.statd rpcbind; do pkill -x $d && wait_gone 10 pgrep -x $d || return 1; done
	return $status
}

# delegates 0|1: whether the server lets clients act on their own
delegates() { on_b sysctl -q -w "fs.leases-enable=$1"; }

# One client, two mounts with a cache each, on one connection: when a file was closed on one mount,
# the other shows its content. Locks exclude processes, not mounts. A delegation is the client's: on
# 7.2 and later it gets one when it writes, and does not ask the server what changed on the other
# mount, over TCP as well. So the server does without them.
two_mounts() {
	local status=1
	delegates 0 && nfs_mount vers=$LAST && _two_mounts "$NFS_MNT-again" && status=0
	delegates 1 && nfs_umount && return $status
}

_two_mounts() {
	local status=1
	nfs_mount vers=$LAST,nosharecache "$1" || return 1
	cp "$T_DIR/big" "$T_DIR/twice" && head -c 5000 /dev/urandom >"$T_DIR/part" &&
		dd if="$T_DIR/part" of="$T_DIR/twice" bs=5000 seek=3 conv=notrunc status=none &&
		cp "$T_DIR/big" "$NFS_MNT/twice" && cmp "$T_DIR/big" "$1/twice" &&
		dd if="$T_DIR/part" of="$1/twice" bs=5000 seek=3 conv=notrunc status=none &&
		dd if="$NFS_MNT/twice" bs=5000 skip=3 count=1 status=none | cmp - "$T_DIR/part" &&
		locks a "$1" && [ "$(transports | wc -l)" = 1 ] && status=0
	nfs_umount "$1" && cmp "$T_DIR/twice" "$NFS_MNT/twice" && return $status
}

# transports: prints for each connection of the mounts how many requests it has sent
transports() { on_a ss -Htn state established "dport = :$NFS_PORT"; }
_sent() { awk '$1 == "device" { mine = $5 == "'"$NFS_MNT"'" } mine && $1 == "xprt:" { print $8 }' /proc/self/mountstats; }

# With nconnect there are several connections, and all of them are used. Version 4 on 6.1 has only
# one, regardless of the option.
many_connections() {
	local status=1 version=$LAST sent
	[ "$KIW_KERNEL" != 6.1 ] || version=3,nolock
	nfs_mount "vers=$version,nconnect=4" || return 1
	direct_io --numjobs=4 && mapfile -t sent < <(_sent) && echo "sent: ${sent[*]}" &&
		[ "${#sent[@]}" = 4 ] && [ "$(transports | wc -l)" = 4 ] &&
		! printf '%s\n' "${sent[@]}" | grep -x -E '[0-9]' && status=0
	nfs_umount && return $status
}

# round VERSION SEED: all checks with one version
round() {
	local v="version $1"
	t_run "$v: mount" nfs_mount "$(options "$1")"
	t_run "$v: files and a tree" files "$1"
	t_run "$v: random operations" random_operations "$@"
	t_run "$v: direct I/O of all sizes, verified" direct_io
	t_run "$v: a second client, locks" two_clients "$1"
	t_run "$v: unmount" nfs_umount
}

# Dirty pages are written back and read again while the client is at the min watermark.
writeback() {
	nfs_mount "vers=$LAST" && starved a _writeback && nfs_same_sum dirty && nfs_umount
}

_writeback() {
	dd if="$T_DIR/big" of="$NFS_MNT/dirty" bs=64k conv=fsync status=none &&
		dd if="$NFS_MNT/dirty" bs=64k iflag=direct status=none | cmp - "$T_DIR/big"
}

# _used DEV COUNTER: whether DEV has counted COUNTER, and no fault; on the host of DEV
_used() {
	[ "$(counter "$1" wr_invalid)" = 0 ] || { echo "$1: invalid work"; return 1; }
	[ "$(counter "$1" tx_terminates)" = 0 ] || { echo "$1: faults"; return 1; }
	[ "$(counter "$1" "$2")" -gt 0 ] || { echo "$1: no $2"; return 1; }
}

memory() {
	_used "$DEV_A" fast_registered && _used "$DEV_A" rx_invalidates &&
		on_b bash -c ". $SELFTESTS/rc; . $SELFTESTS/rc-device; $(declare -f _used); _used $DEV_B fast_registered"
}

# The client's device is deleted while a file is written, and added again; the file must be correct.
# An operation may fail with EINVAL: the client connects again at once, and if rdma_cm drops the
# device between two of the client's calls, the second call fails with EINVAL, on which NFS does not
# retry.
device_goes() {
	local status=1
	nfs_mount vers=4.2 || return 1
	truncate -s 2M "$NFS_MNT/again" && io_start "$NFS_MNT/again" 2M --may-fail &&
		under device_again a && io_stop && nfs_same_sum again && status=0
	nfs_umount || status=1
	return $status
}

{ load_kiwarp && topo_up && rdma_up && load_module kiwarp_reserves; } || bail "no two hosts"
t_run "a server" nfs_serve
for v in "${VERSIONS[@]}"; do round "$v" "${v#*.}"; done
t_run "two mounts of one client, locks" two_mounts
t_run "four connections of one mount" many_connections
t_run "the client uses the reserves of memory" writeback
! is_pair || t_run "version 3: its own locks, between two clients" nlm
t_run "memory was registered and invalidated, by the peer too" kiwarp_only memory
is_pair || t_run "the device goes while a file is written, and comes back" device_goes
t_run "the server ends" nfs_end
rdma_down
topo_down
unload_module kiwarp_reserves
t_run "unload" unload_kiwarp
done_testing
