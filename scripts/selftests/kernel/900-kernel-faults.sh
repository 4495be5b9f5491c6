#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: faults of the kernel around the driver: those that KIW_FAULTS names are provoked
# TIMEOUT: 120
# ONLY-WITH: KIW_FAULTS
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"

# See Documentation/kernel-faults.rst. A case fails where the kernel has the fault, if it does not
# end the guest; hence scripts/selftests/kernel-faults, which boots one for each. The driver is
# siw, which does nothing about them, or that of KIW_FAULTS_DRIVER.
KIW_LINK_TYPE=${KIW_FAULTS_DRIVER:-siw}

# Both have the same driver id, by which the core chooses the devices that go with the module.
siw_unload() {
	local status=0
	modprobe kiwarp && modprobe siw && ip link add faultx type dummy &&
		rdma link add kiwx type kiwarp netdev faultx && modprobe -r siw || return 1
	rdma link show kiwx/1 || { echo "kiwx went with siw"; status=1; }
	ip link del faultx
	modprobe -r kiwarp
	return "$status"
}

# An NFS server without threads, which accepts nobody
_nfs_listen() {
	_load nfsd && _load rpcrdma && mount -t nfsd nfsd /proc/fs/nfsd && rpcbind -w &&
		echo "rdma $NFS_PORT" >/proc/fs/nfsd/portlist
}

# Threads that were never started are to end.
_nfs_deaf() {
	echo 0 >/proc/fs/nfsd/threads && umount /proc/fs/nfsd && pkill -x rpcbind
}

# request_waits: at the server, for its threads
request_waits() { on_b rdma resource show cm_id | grep 'state CONNECT.*rpcrdma'; }

# The server ends while a request waits. The device has to go all the same.
nfs_unaccepted() {
	local client removal status=0
	on_b bash -c ". '$SELFTESTS/rc-nfs'; $(declare -f _nfs_listen); _nfs_listen" || return 1
	on_a rping -c -a "$B4" -p "$NFS_PORT" -C 1 >/dev/null 2>&1 &
	client=$!
	wait_for 30 request_waits || status=1
	on_b bash -c "$(declare -f _nfs_deaf); _nfs_deaf" || status=1
	on_b rdma link delete "$DEV_B" &
	removal=$!
	wait_gone 20 runs "$removal" || { where_is "$removal"; status=1; }
	kill "$client" 2>/dev/null
	[ "$status" = 0 ] && rdma_add b
}

# The limit of a cgroup that is gone; KASAN reports what the deletion of the device does.
cgroup_limit() {
	local group=/sys/fs/cgroup/fault status=0
	dmesg_mark cgroup-limit
	echo +rdma >/sys/fs/cgroup/cgroup.subtree_control && mkdir "$group" &&
		echo "$DEV_A hca_handle=2" >"$group/rdma.max" && rmdir "$group" &&
		wait_for 20 grep -qx 'nr_dying_descendants 0' /sys/fs/cgroup/cgroup.stat || return 1
	rdma_down && dmesg_check '' || status=1
	rdma_up && return "$status"
}

# provoke FAULT: the first two need calls that librdmacm does not make.
provoke() {
	case $1 in
	cgroup-limit) cgroup_limit ;;
	destroy-unread | migrate-unread) "$PROGRAMS/attack" case "$1" ;;
	nfs-unaccepted) nfs_unaccepted ;;
	*) KIW_LINK_TYPE=$KIW_LINK_TYPE "$PROGRAMS/corefaults" "$1" ;;
	esac
}

if [ "$KIW_FAULTS" = siw-unload ]; then
	t_run siw-unload siw_unload
	done_testing
fi
{ load_module "${KIW_LINK_TYPE%-ext}" && topo_up 1500 && rdma_up; } || bail "no two hosts"
for fault in $KIW_FAULTS; do t_run "$fault" provoke "$fault"; done
# Objects that a fault has left behind may hold the devices forever.
[ "$T_FAILED" = 0 ] || done_testing
rdma_down
topo_down
t_run "unload" unload_module "${KIW_LINK_TYPE%-ext}"
done_testing
