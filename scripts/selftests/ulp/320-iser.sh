#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: iSER, the kernel's initiator and target, with the port mapper and without
# TIMEOUT: 180
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-iwpm
. "$SELFTESTS/rc-iwpm"

IQN=iqn.2026-01.example:kiwarp
TPG=$LIO/iscsi/$IQN/tpgt_1
PORT=3260
NP=$TPG/np/$B4:$PORT

# --- target -------------------------------------------------------------------------

target() {
	lio_disk && have b $TPG/lun/lun_0 && on_b ln -s $LIO_DISK $TPG/lun/lun_0/disk &&
		put b 0 $TPG/attrib/authentication && put b 1 $TPG/attrib/generate_node_acls &&
		put b 0 $TPG/attrib/demo_mode_write_protect
}

target_ends() {
	on_b rm $TPG/lun/lun_0/disk &&
		on_b rmdir $TPG/lun/lun_0 $TPG ${TPG%/*} $LIO/iscsi && lio_disk_ends
}

# LIO listens on the portal's port over TCP first, and then over RDMA.
portal() { have b "$NP" && rdma_portal 1 && put b 1 $TPG/enable; }
portal_ends() { put b 0 $TPG/enable && rdma_portal 0 && on_b rmdir "$NP"; }
rdma_portal() { put b "$1" "$NP/iser"; }

# Without the port mapper, the TCP listener is in a network namespace that nothing else uses.
elsewhere() {
	on_b ip netns add lio && on_b ip -n lio link set lo up &&
		on_b ip -n lio addr add "$B4/32" dev lo &&
		on_b nsenter --net=/run/netns/lio mkdir "$NP" && rdma_portal 1 && put b 1 $TPG/enable
}

elsewhere_ends() { portal_ends && on_b ip netns del lio; }

# --- initiator ----------------------------------------------------------------------

admin() { on_a timeout $((60 * ${KIW_SLOW:-1})) iscsiadm -m node -T $IQN -p "$B4:$PORT" -I iser "$@"; }

setting() { admin -o update -n "$1" -v "$2"; }

# The initiator detects a dead peer in seconds, and then retries for longer than any fault lasts.
initiator() {
	on_a sh -c 'modprobe -q sd_mod || :'
	[ -s /etc/iscsi/initiatorname.iscsi ] ||
		echo InitiatorName=iqn.2026-01.example:initiator >/etc/iscsi/initiatorname.iscsi
	# It ends its whole process group with it
	spawn iscsid a setsid iscsid -f
	wait_for 10 on_a iscsiadm -m node -o new -T $IQN -p "$B4:$PORT,1" -I iser &&
		setting 'node.conn[0].timeo.noop_out_interval' 1 &&
		setting 'node.conn[0].timeo.noop_out_timeout' 3 &&
		setting 'node.conn[0].timeo.login_timeout' 3 &&
		setting node.session.timeo.replacement_timeout 600
}

initiator_ends() { spawn_stop iscsid && admin -o delete; }

sessions() { cat /sys/class/iscsi_session/session*/state; }
logged_in() { [ "$(sessions)" = LOGGED_IN ]; }
login() { admin --login && wait_for 10 disk && logged_in; }
logout() { admin --logout && wait_gone 10 disk && ! sessions; }

# --- ports ----------------------------------------------------------------------------

in_use() { ! rdma_portal 1; }

# Without the port mapper iSER is refused; the portal still serves TCP.
refused_portal() {
	local status=1
	have b "$NP" && in_use && on_b ss -Hltn "sport = :$PORT" | grep . && status=0
	on_b rmdir "$NP" && return $status
}

# The consumers know the portal's port only, and the wire knows it for iSCSI over TCP only.
ports() {
	on_a rdma res show cm_id && on_a ss -Htn dst "$B4"
	on_a rdma res show cm_id | grep -q "^link $DEV_A.*state CONNECT .*dst-addr $B4:$PORT " &&
		! on_a ss -Htn dst "$B4:$PORT" | grep .
}

served() { login && fio_verify "$(disk)" 8M; }

# --- faults ---------------------------------------------------------------------------

# The RDMA listener is gone with the device, so it is made again, as an administrator would do.
portal_again() { rdma_portal 0 && rdma_portal 1; }

# A device that is added again starts with the module parameters.
map_again() { [ -z "$MAPPED" ] || mapping "$1" y; }

target_device_again() { device_again b && map_again b && portal_again; }
initiator_device_again() { device_again a && map_again a; }
target_again() { put b 0 $TPG/enable && put b 1 $TPG/enable; }

dies_and_returns() {
	peer_dies b && _stay "$FAULT_S" && peer_returns b && map_again b && portal_again
}

killed_and_returns() {
	killed_for "$FAULT_S" || return 1
	if [ -z "$MAPPED" ]; then
		target && elsewhere
		return
	fi
	spawn_stop iwpm-b
	_mapper_start b && map_again b && target && portal
}

faults() {
	t_on "uml 6.12 pair" "the link is down for a while" under link_down_for "$FAULT_S"
	t_on "uml 6.1 pair" "loss and disorder" under loss_for "$FAULT_S"
	t_on "6.12" "the target is restarted" under target_again
	t_on "uml-debug 6.1" "the target's device goes and comes" under target_device_again
	t_on "uml uml-debug" "the initiator's device goes and comes" under initiator_device_again
	t_on "uml-debug pair" "the target dies and returns" under dies_and_returns
	t_killed "the target's guest is killed and boots" under killed_and_returns
}

io_with_faults() {
	io_start "$(disk)" 8M || not_ok "I/O begins" "$(spawn_log io)"
	again_and_again faults
	io_ends
}

# Each fault once, regardless of the duration of a soak.
io_with_each_fault() {
	local KIW_SOAK=1
	io_with_faults
}

# with NAME BEGIN END [WHAT...]: one arrangement.
with() {
	local name=$1 begin=$2 end=$3
	shift 3
	t_run "$name: a portal" "$begin"
	t_run "$name: login, verified I/O" served
	[ -z "$MAPPED" ] || t_run "$name: a port for each" ports
	t_run "$name: memory is registered, no fault" kiwarp_only work_of_all_kinds
	[ $# = 0 ] || "$@"
	t_run "$name: logout" logout
	t_run "$name: the portal ends" "$end"
}

mapper_begins() { mapper_up && mappings y y; }
mapper_ends() { mappings n n && mapper_down; }

MAPPED=
ulp_has ib_iser ib_isert $LIO_MODULE || bail "no iSER"
ulp_up iscsi_target_mod $LIO_MODULE ib_isert ib_iser || bail "no two hosts"
t_run "a target" target
t_run "an initiator" initiator
if is_kiwarp; then
	t_run "no port mapper: TCP has the port" refused_portal
	t_run "the port mapper" mapper_begins
	MAPPED=1
	with "mapped" portal portal_ends io_with_faults
	MAPPED=
	t_run "the port mapper ends" mapper_ends
	with "a namespace for TCP" elsewhere elsewhere_ends ${KIW_SOAK:+io_with_each_fault}
else
	with "a namespace for TCP" elsewhere elsewhere_ends io_with_faults
fi
t_run "the initiator ends" initiator_ends
t_run "the target ends" target_ends
ulp_down
done_testing
