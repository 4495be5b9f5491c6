#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NVMe over RDMA, host and target of the kernel
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug 6.12
# CHECK-PAIRS: none
# TOPOLOGY: any
# shellcheck disable=SC2086 # names without blanks
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nvme
. "$SELFTESTS/rc-nvme"
# shellcheck source=scripts/selftests/lib/rc-reserves
. "$SELFTESTS/rc-reserves"

# Whether there are as many I/O queues as were asked for, but not more than CPUs; and the admin
# queue
queues() {
	local got want
	want=$(nproc)
	[ "$want" -le 2 ] || want=2
	got=$(cat "$(controllers)/queue_count")
	[ "$got" = $((want + 1)) ] || { echo "$got queues"; return 1; }
}

reset() { on_a nvme reset "/dev/$(basename "$(controllers)")"; }

again() { unserve 1 && serve 1; }

target_again() {
	! has_lockdep || { skip_this "lockdep does not like nvmet's ports to go"; return; }
	again
}

# After its device was added again, a port does not listen by itself.
target_device_again() { device_again b && again; }

# The rules of NVMe: the controllers are deleted with the host's device.
device_goes() {
	on_a timeout 60 rdma link delete $DEV_A && wait_gone 10 disk 1 && [ -z "$(controllers)" ] &&
		rdma_add a && wait_for 5 rdma_is_active a && attach "$B4"
}

killed_and_returns() { killed_for "$FAULT_S" && target; }

dies_and_returns() { peer_dies b && _stay "$FAULT_S" && peer_returns b && again; }

registered() {
	local host
	for host in a b; do
		[ "$(counter_of $host fast_registered)" -gt 0 ] || { echo "$host: no registration"; return 1; }
		[ "$(counter_of $host wr_invalid)" = 0 ] || { echo "$host: invalid work"; return 1; }
	done
	[ "$(counter_of a rx_invalidates)" -gt 0 ] || { echo "nothing was invalidated"; return 1; }
}

# --- several paths ------------------------------------------------------------------

has_paths() { [ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = Y ]; }
path_state() { cat "$(grep -l "traddr=$1," /sys/class/nvme/nvme*/address | sed 's/address$/state/')"; }
path_is() { [ "$(path_state "$1")" = "$2" ]; }
path_is_not() { ! path_is "$1" "$2"; }

drop() { on_b nft "add table inet kiw; add chain inet kiw in { type filter hook input priority 0; };
	add rule inet kiw in ip6 saddr $A6 drop"; }

# I/O continues over the other path.
path_fails() {
	drop && wait_for 30 path_is_not "$B6" live && io_moves && path_is "$B4" live &&
		on_b nft delete table inet kiw && wait_for 30 path_is "$B6" live && io_moves
}

# Two paths to two addresses, one of which becomes silent.
two_paths() {
	has_paths || { skip_this "no NVME_MULTIPATH"; return; }
	on_a ping -q -c 1 "$B6" && port 2 ipv6 "$B6" && attach "$B4" --keep-alive-tmo 2 && attach "$B6" --keep-alive-tmo 2 &&
		io_start "$(disk 2)" 8M && path_fails && io_stop && detach
}

# Buffers are not registered; one key gives the target access to all memory.
global_key() {
	local p=/sys/module/nvme_rdma/parameters/register_always
	modprobe -r nvme-rdma && modprobe nvme-rdma register_always=N && [ "$(cat $p)" = N ] &&
		attach "$B4" && fio_verify "$(disk 2)" 4M --bsrange=4k-128k && detach &&
		modprobe -r nvme-rdma && modprobe nvme-rdma
}

faults() {
	t_on "uml uml-debug 6.1 6.12" "the controller is reset" under reset
	t_on "6.12" "the target goes and comes" under target_again
	t_on "uml 6.1 6.12 pair" "the link is down for a while" under link_down_for "$FAULT_S"
	t_on "uml 6.1 6.12" "loss and disorder" under loss_for "$FAULT_S"
	t_on "6.12" "silence" under silence_for "$FAULT_S"
	t_on "6.12" "the target's device goes and comes" under target_device_again
	t_on "uml uml-debug pair" "the target dies and returns" under dies_and_returns
	t_killed "the target's guest is killed and boots" under killed_and_returns
}

# At the min watermark, requests and a new connection succeed.
at_min_watermark() { io_moves && reset && io_moves; }

io_done() { _io_count && echo "$IO_COUNT"; }

# A process with less memory than it uses, so that it swaps to the target
swap_in() {
	local group=/sys/fs/cgroup/swap
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir -p $group &&
		echo 48M >$group/memory.max || return 1
	(echo $BASHPID >$group/cgroup.procs && exec timeout 200 "$SELFTESTS/ulp_swap.py" 96) &&
		rmdir $group
}

swap() {
	local disk status=0 before after
	disk=$(disk 2)
	mkswap "$disk" && swapon "$disk" || return 1
	before=$(awk '$1 == "pswpin" { print $2 }' /proc/vmstat)
	swap_in || status=1
	after=$(awk '$1 == "pswpin" { print $2 }' /proc/vmstat)
	echo "$((after - before)) pages came back"
	swapoff "$disk" && [ "$status" = 0 ] && [ "$after" -gt "$before" ]
}

ulp_up nvme-rdma nvmet-rdma kiwarp_reserves || bail "no two hosts"
t_run "a target" target
t_run "a host, with two queues" attach "$B4" --nr-io-queues=2
t_run "two queues" queues
t_on "uml 6.1 6.12 pair" "fio on a file of the target" fio_verify "$(disk 1)" 4M --bsrange=4k-128k
t_run "large I/O and single blocks, on a block device" fio_verify "$(disk 2)" 8M --bsrange=512-1M
t_run "memory is registered, invalidated by the target" kiwarp_only registered
io_start "$(disk 2)" 8M || not_ok "I/O begins" "$(spawn_log io)"
t_on "uml uml-debug pair" "the host uses the reserves of memory" starved a at_min_watermark
t_on "uml pair" "the target does not" starves b io_done
again_and_again faults
io_ends
t_on "" "swap" swap
t_on "uml uml-debug 6.1" "the controllers go with the host's device" device_goes
t_run "disconnect" detach
t_on "6.12" "two paths, one fails" two_paths
t_on "uml uml-debug 6.1" "all memory by one key" global_key
t_run "the target ends" target_ends
ulp_down
done_testing
