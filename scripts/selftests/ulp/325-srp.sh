#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: SRP over rdma_cm, the kernel's initiator and target
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.1
# CHECK-KERNELS: uml-debug 6.1
# CHECK-PAIRS: none
# SOAK-KERNELS: 6.12
# TOPOLOGY: any
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

PORT=5555
# Name of an initiator: its initiator_ext, and the half of its GID that is 0 for an iWARP device
EXT=000000000000000a
NAME=0x${EXT}0000000000000000
TPG=

# --- target -------------------------------------------------------------------------

# The target's name is the GID of its device.
name_target() {
	local gid
	gid=$(on_b cat "/sys/class/infiniband/$DEV_B/ports/1/gids/0" | tr -d ':')
	TPG=$LIO/srpt/0x$gid/0x$gid
}

serve() {
	name_target && have b $LIO/srpt &&
		put b $PORT $LIO/srpt/discovery_auth/rdma_cm_port && have b $TPG/lun/lun_0 &&
		on_b ln -s $LIO_DISK $TPG/lun/lun_0/disk && have b $TPG/acls/$NAME/lun_0 &&
		on_b ln -s $TPG/lun/lun_0 $TPG/acls/$NAME/lun_0/lun && put b 1 $TPG/enable
}

target() { lio_disk && serve; }

unserve() {
	put b 0 $TPG/enable && on_b rm $TPG/acls/$NAME/lun_0/lun &&
		on_b rmdir $TPG/acls/$NAME/lun_0 $TPG/acls/$NAME && on_b rm $TPG/lun/lun_0/disk &&
		on_b rmdir $TPG/lun/lun_0 $TPG ${TPG%/*} && put b 0 $LIO/srpt/discovery_auth/rdma_cm_port &&
		on_b rmdir $LIO/srpt
}

target_ends() { unserve && lio_disk_ends; }

# --- initiator ----------------------------------------------------------------------

# The target module derives the target's number from the first device that it has found.
service_guid() { printf %016x "$(on_b cat /sys/module/ib_srpt/parameters/srpt_service_guid)"; }

login() {
	local guid
	guid=$(service_guid)
	put a "id_ext=$guid,ioc_guid=$guid,dest=$B4:$PORT,initiator_ext=$EXT" \
		/sys/class/infiniband_srp/srp-$DEV_A-1/add_target && wait_for 10 disk && tune
}

# The initiator retries after a second, and for longer than any fault lasts.
tune() {
	local port
	port=$(echo /sys/class/srp_remote_ports/*)
	put a off $port/fast_io_fail_tmo && put a 600 $port/dev_loss_tmo && put a 1 $port/reconnect_delay
}

# The disk's cached data is written back after the disk has become invisible. If the target went
# before that, this would be retried as long as any other I/O.
logout() { put a 1 /sys/class/srp_remote_ports/*/delete && wait_gone 10 has_host; }

has_host() { grep -q -s -x ib_srp /sys/class/scsi_host/host*/proc_name; }

# --- faults ---------------------------------------------------------------------------

# The module does not recognise the new device as the old one, so the target is made again.
target_device_again() { device_again b && unserve && serve; }

killed_and_returns() { killed_for "$FAULT_S" && target; }

# The disk is removed with the initiator's device.
device_goes() {
	on_a timeout 60 rdma link delete $DEV_A && wait_gone 10 disk && rdma_add a &&
		wait_for 5 rdma_is_active a && login && fio_verify "$(disk)" 2M
}

faults() {
	t_on "uml pair" "the link is down for a while" under link_down_for "$FAULT_S"
	t_on "uml 6.1" "loss and disorder" under loss_for "$FAULT_S"
	t_on "6.1" "silence" under silence_for "$FAULT_S"
	t_on "uml uml-debug" "the target's device goes and comes" under target_device_again
	t_killed "the target's guest is killed and boots" under killed_and_returns
}

ulp_has ib_srp ib_srpt $LIO_MODULE || bail "no SRP"
ulp_up $LIO_MODULE ib_srpt ib_srp || bail "no two hosts"
on_a sh -c 'modprobe -q sd_mod || :'
t_run "a target" target
t_run "login" login
t_run "verified I/O" fio_verify "$(disk)" 8M
t_run "memory is registered, no fault" kiwarp_only work_of_all_kinds
io_start "$(disk)" 8M || not_ok "I/O begins" "$(spawn_log io)"
again_and_again faults
io_ends
t_on "uml uml-debug" "the disk goes with the initiator's device" device_goes
t_run "logout" logout
t_run "the target ends" target_ends
ulp_down
done_testing
