# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced in the guest by instead.sh and apart/guest.sh: storage protocols, over TCP or RDMA. Host b
# is the server, with a RAM disk, host a the client. The hosts are two guests, or one, in whose
# initial network namespace both are (rc-ulp). Who sources this sets
#
#	STACK      nfs, nvme or iscsi
#	TRANSPORT  tcp or rdma
#	DIGESTS    y or n; with rdma, the device's CRC follows it, and the storage protocol has none
#
# stack_up sets up both hosts, and TARGET, a disk or a file of MIB MiB; stack_down undoes it.
# shellcheck disable=SC2034,SC2119 # variables are for who sources this; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. /host/selftests/lib/rc
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nfs
. "$SELFTESTS/rc-nfs"

ULP_MTU=1500
MIB=128
IQN=iqn.2026-01.example:bench
CFG=/sys/kernel/config
TARGET=

is_rdma() { [ "$TRANSPORT" = rdma ]; }
with_digests() { [ "$DIGESTS" = y ]; }

# on_b_load MODULE...
on_b_load() {
	local m
	for m; do on_b modprobe "$m" || return 1; done
}

# The disk of all targets: memory
ram_up() {
	on_b modprobe brd rd_nr=1 rd_size=$((2 * MIB << 10)) &&
		{ on_b mountpoint -q $CFG || on_b mount -t configfs configfs $CFG; }
}

devices_up() {
	is_rdma || return 0
	kiwarp_default crc "$DIGESTS" && rdma_up
}

# --- NFS --------------------------------------------------------------------------------

# BLOCK, if set, is the size of the largest READ or WRITE. By default it depends on the memory.
nfs_block() {
	[ -z "${BLOCK:-}" ] ||
		{ nfs_stop && put b "$BLOCK" /proc/fs/nfsd/max_block_size && nfs_start; }
}

nfs_up() {
	nfs_serve /dev/ram0 && nfs_block &&
		on_b sh -c "head -c ${MIB}M /dev/zero >$NFS_EXPORT/file && sync" || return 1
	if is_rdma; then
		nfs_mount vers=4.2
	else
		on_a mount -t nfs -o vers=4.2,proto=tcp "$B4:/" "$NFS_MNT"
	fi && TARGET=$NFS_MNT/file
}

nfs_down() { nfs_umount && nfs_end; }

# --- NVMe ---------------------------------------------------------------------------------

NVMET_SUBSYSTEM=$CFG/nvmet/subsystems/bench
NVMET_PORT=$CFG/nvmet/ports/1

nvme_up() {
	local options=()
	on_b_load "nvmet-$TRANSPORT" && modprobe "nvme-$TRANSPORT" || return 1
	have b "$NVMET_SUBSYSTEM/namespaces/1" && have b "$NVMET_PORT" &&
		put b 1 "$NVMET_SUBSYSTEM/attr_allow_any_host" &&
		put b /dev/ram0 "$NVMET_SUBSYSTEM/namespaces/1/device_path" &&
		put b 1 "$NVMET_SUBSYSTEM/namespaces/1/enable" &&
		put b "$TRANSPORT" "$NVMET_PORT/addr_trtype" &&
		put b ipv4 "$NVMET_PORT/addr_adrfam" && put b "$B4" "$NVMET_PORT/addr_traddr" &&
		put b 4420 "$NVMET_PORT/addr_trsvcid" &&
		on_b ln -s "$NVMET_SUBSYSTEM" "$NVMET_PORT/subsystems/bench" || return 1
	is_rdma || ! with_digests || options=(--hdr-digest --data-digest)
	nvme connect -t "$TRANSPORT" -a "$B4" -s 4420 -n bench "${options[@]}" || return 1
	wait_for 10 test -b /dev/nvme0n1 && TARGET=/dev/nvme0n1
}

nvme_down() {
	nvme disconnect -n bench && wait_gone 10 test -b /dev/nvme0n1 &&
		on_b rm "$NVMET_PORT/subsystems/bench" &&
		on_b rmdir "$NVMET_PORT" "$NVMET_SUBSYSTEM/namespaces/1" "$NVMET_SUBSYSTEM" &&
		wait_for 10 modprobe -r "nvme-$TRANSPORT" &&
		wait_for 10 on_b modprobe -r "nvmet-$TRANSPORT"
}

# --- iSCSI and iSER -----------------------------------------------------------------------

TPG=$LIO/iscsi/$IQN/tpgt_1
PORTAL=$TPG/np/$B4:3260
ISCSI_IFACE=default
STORE=$LIO/core/iblock_0/bench

admin() { iscsiadm -m node -T $IQN -p "$B4:3260" -I $ISCSI_IFACE "$@"; }

portal_up() {
	if is_rdma; then
		# Its TCP listener is in a namespace of its own, and does not have the port here.
		on_b ip netns add lio && on_b ip -n lio link set lo up &&
			on_b ip -n lio addr add "$B4/32" dev lo &&
			on_b nsenter --net=/run/netns/lio mkdir "$PORTAL" && put b 1 "$PORTAL/iser"
	else
		have b "$PORTAL"
	fi && put b 1 "$TPG/enable"
}

target_up() {
	have b "$STORE" && put b udev_path=/dev/ram0 "$STORE/control" && put b 1 "$STORE/enable" &&
		have b "$TPG/lun/lun_0" && on_b ln -s "$STORE" "$TPG/lun/lun_0/disk" &&
		put b 0 "$TPG/attrib/authentication" && put b 1 "$TPG/attrib/generate_node_acls" &&
		put b 0 "$TPG/attrib/demo_mode_write_protect" && portal_up
}

iscsi_up() {
	local part
	modprobe -q sd_mod
	on_b_load target_core_iblock iscsi_target_mod || return 1
	if is_rdma; then
		ISCSI_IFACE=iser
		on_b_load ib_isert && modprobe ib_iser || return 1
	else
		ISCSI_IFACE=default
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
		put b 0 "$TPG/enable" || return 1
	! is_rdma || put b 0 "$PORTAL/iser"
	on_b rmdir "$PORTAL" && on_b rm "$TPG/lun/lun_0/disk" &&
		on_b rmdir "$TPG/lun/lun_0" "$TPG" "${TPG%/*}" "$LIO/iscsi" "$STORE" \
			"${STORE%/*}" || return 1
	! is_rdma || { on_b ip netns del lio && modprobe -r ib_iser && on_b modprobe -r ib_isert; }
}

# ------------------------------------------------------------------------------------------

stack_up() { ram_up && devices_up && "${STACK}_up"; }

stack_down() {
	"${STACK}_down" || return 1
	! is_rdma || rdma_down
	wait_for 10 on_b modprobe -r brd
}
