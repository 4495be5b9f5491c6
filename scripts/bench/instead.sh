#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# instead.sh STACK tcp|rdma DIGESTS ROW...: runs in the guest. Sets up both ends of STACK (nfs, nvme
# or iscsi), which transfer data over the given transport, measures the ROWs with io.py, prints a
# line of JSON for each, and removes everything. DIGESTS is y or n; with rdma, the device's CRC
# follows it, and the storage protocol has none. Both ends are in the initial network namespace, as
# some of these stacks know no other, with routes that use the cable (rc-ulp).
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. /host/selftests/lib/rc
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"

STACK=$1 TRANSPORT=$2 DIGESTS=$3
shift 3
ULP_MTU=1500
MIB=128
IQN=iqn.2026-01.example:bench
CFG=/sys/kernel/config

is_rdma() { [ "$TRANSPORT" = rdma ]; }
with_digests() { [ "$DIGESTS" = y ]; }

# The disk of all targets: memory
ram_up() {
	modprobe brd rd_nr=1 rd_size=$((2 * MIB << 10)) &&
		{ mountpoint -q $CFG || mount -t configfs configfs $CFG; }
}

devices_up() {
	is_rdma || return 0
	kiwarp_crc "$DIGESTS" && rdma_up
}

# --- NFS --------------------------------------------------------------------------------

nfs_up() {
	_load nfs && _load rpcrdma && mkdir -p "$NFS_MNT" && at_b _nfs_serve /dev/ram0 &&
		head -c ${MIB}M /dev/zero >"$NFS_EXPORT/file" && sync || return 1
	if is_rdma; then
		nfs_mount vers=4.2
	else
		on_a mount -t nfs -o vers=4.2,proto=tcp "$B4:/" "$NFS_MNT"
	fi && TARGET=$NFS_MNT/file
}

nfs_down() { nfs_umount && nfs_end; }

# --- NVMe ---------------------------------------------------------------------------------

nvme_up() {
	local subsystem=$CFG/nvmet/subsystems/bench port=$CFG/nvmet/ports/1 options=()
	modprobe "nvmet-$TRANSPORT" && modprobe "nvme-$TRANSPORT" || return 1
	mkdir -p "$subsystem/namespaces/1" "$port" && echo 1 >"$subsystem/attr_allow_any_host" &&
		echo /dev/ram0 >"$subsystem/namespaces/1/device_path" &&
		echo 1 >"$subsystem/namespaces/1/enable" && echo "$TRANSPORT" >"$port/addr_trtype" &&
		echo ipv4 >"$port/addr_adrfam" && echo "$B4" >"$port/addr_traddr" &&
		echo 4420 >"$port/addr_trsvcid" && ln -s "$subsystem" "$port/subsystems/bench" || return 1
	is_rdma || ! with_digests || options=(--hdr-digest --data-digest)
	nvme connect -t "$TRANSPORT" -a "$B4" -s 4420 -n bench "${options[@]}" || return 1
	wait_for 10 test -b /dev/nvme0n1 && TARGET=/dev/nvme0n1
}

nvme_down() {
	local subsystem=$CFG/nvmet/subsystems/bench port=$CFG/nvmet/ports/1
	nvme disconnect -n bench && wait_gone 10 test -b /dev/nvme0n1 &&
		rm "$port/subsystems/bench" && rmdir "$port" "$subsystem/namespaces/1" "$subsystem" &&
		wait_for 10 modprobe -r "nvme-$TRANSPORT" "nvmet-$TRANSPORT"
}

# --- iSCSI and iSER -----------------------------------------------------------------------

TPG=$LIO/iscsi/$IQN/tpgt_1
ISCSI_IFACE=default
STORE=$LIO/core/iblock_0/bench

admin() { iscsiadm -m node -T $IQN -p "$B4:3260" -I $ISCSI_IFACE "$@"; }

portal_up() {
	if is_rdma; then
		# Its TCP listener is in a namespace of its own, and does not have the port here.
		ip netns add lio && ip -n lio link set lo up && ip -n lio addr add "$B4/32" dev lo &&
			nsenter --net=/run/netns/lio mkdir "$TPG/np/$B4:3260" &&
			echo 1 >"$TPG/np/$B4:3260/iser"
	else
		mkdir "$TPG/np/$B4:3260"
	fi && echo 1 >"$TPG/enable"
}

target_up() {
	mkdir -p "$STORE" && echo udev_path=/dev/ram0 >"$STORE/control" && echo 1 >"$STORE/enable" &&
		mkdir -p "$TPG/lun/lun_0" && ln -s "$STORE" "$TPG/lun/lun_0/disk" &&
		echo 0 >"$TPG/attrib/authentication" && echo 1 >"$TPG/attrib/generate_node_acls" &&
		echo 0 >"$TPG/attrib/demo_mode_write_protect" && portal_up
}

iscsi_up() {
	local m part
	modprobe target_core_iblock && modprobe iscsi_target_mod || return 1
	if is_rdma; then
		ISCSI_IFACE=iser
		for m in ib_isert ib_iser; do modprobe $m || return 1; done
	else
		modprobe iscsi_tcp || return 1
	fi
	[ -s /etc/iscsi/initiatorname.iscsi ] ||
		echo InitiatorName=iqn.2026-01.example:initiator >/etc/iscsi/initiatorname.iscsi
	target_up && spawn iscsid a setsid iscsid -f || return 1
	wait_for 10 iscsiadm -m node -o new -T $IQN -p "$B4:3260,1" -I $ISCSI_IFACE || return 1
	if ! is_rdma && with_digests; then
		for part in Header Data; do
			admin -o update -n "node.conn[0].iscsi.${part}Digest" -v CRC32C || return 1
		done
	fi
	admin --login && wait_for 10 disk && TARGET=$(disk)
}

iscsi_down() {
	admin --logout && wait_gone 10 disk && spawn_stop iscsid && admin -o delete &&
		echo 0 >"$TPG/enable" || return 1
	! is_rdma || echo 0 >"$TPG/np/$B4:3260/iser"
	rmdir "$TPG/np/$B4:3260" && rm "$TPG/lun/lun_0/disk" && rmdir "$TPG/lun/lun_0" "$TPG" \
		"${TPG%/*}" "$LIO/iscsi" "$STORE" "${STORE%/*}" || return 1
	! is_rdma || { ip netns del lio && modprobe -r ib_iser ib_isert; }
}

# ------------------------------------------------------------------------------------------

main() {
	local row
	_load "$KIW_LINK_TYPE" && ulp_topo_up && ram_up && devices_up && "${STACK}_up" || return 1
	for row; do
		# shellcheck disable=SC2086 # options of fio
		on_a python3 /host/job/io.py "$TARGET" $row || return 1
	done
	"${STACK}_down" || return 1
	! is_rdma || rdma_down
	wait_for 10 modprobe -r brd && ulp_topo_down
}

exec 3>&1
main "$@" >"$T_DIR/log" 2>&1 3>&3 || { cat "$T_DIR/log" >&2; exit 1; }
