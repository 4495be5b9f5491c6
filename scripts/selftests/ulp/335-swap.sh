#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: swap on NVMe over the device, on a host that has no other memory left
# TIMEOUT: 120
# KERNELS: 6.12
# CHECK-PAIRS: none
# TOPOLOGY: pair
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-reserves
. "$SELFTESTS/rc-reserves"

# Pages can be written out only if acknowledgements of earlier ones are received. For this the
# socket may use the memory reserves, and the netdev's driver has to use them, too: UML's does not,
# so such a guest can hang forever.

# Memory that is left to processes, and what one of them needs, in MiB
LEFT=64
NEEDED=96

CFG=/sys/kernel/config/nvmet
NQN=swap

target() {
	on_b mount -t configfs configfs /sys/kernel/config
	have b $CFG/subsystems/$NQN/namespaces/1 && put b 1 $CFG/subsystems/$NQN/attr_allow_any_host &&
		put b "$DISK_B" $CFG/subsystems/$NQN/namespaces/1/device_path &&
		put b 1 $CFG/subsystems/$NQN/namespaces/1/enable && have b $CFG/ports/1 &&
		put b rdma $CFG/ports/1/addr_trtype && put b ipv4 $CFG/ports/1/addr_adrfam &&
		put b "$B4" $CFG/ports/1/addr_traddr && put b 4420 $CFG/ports/1/addr_trsvcid &&
		on_b ln -s $CFG/subsystems/$NQN $CFG/ports/1/subsystems/$NQN
}

target_ends() {
	on_b rm $CFG/ports/1/subsystems/$NQN &&
		on_b rmdir $CFG/ports/1 $CFG/subsystems/$NQN/namespaces/1 $CFG/subsystems/$NQN
}

disk() { find /dev -name 'nvme*n1' | grep .; }

swap_on() {
	nvme connect -t rdma -a "$B4" -s 4420 -n $NQN && wait_for 10 disk &&
		mkswap "$(disk)" && swapon "$(disk)" && shorten
}

# shorten: takes nearly all memory away; from then on everything depends on the disk.
shorten() {
	local available
	sync
	echo 3 >/proc/sys/vm/drop_caches
	available=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	echo $((available - LEFT)) >"$RESERVES/take"
}

pages() { awk -v name="$1" '$1 == name { print $2 }' /proc/vmstat; }

# Whether a process gets each page back intact, and TCP drops no segment from the reserves
swapped() {
	local in out before status=0 end=$((SECONDS + ${KIW_SOAK:-0}))
	in=$(pages pswpin) out=$(pages pswpout) before=$(drops a)
	while
		timeout $((100 * ${KIW_SLOW:-1})) "$SELFTESTS/ulp_swap.py" $NEEDED || status=1
		[ $SECONDS -lt $end ] && [ $status = 0 ]
	do :; done
	echo "$(($(pages pswpout) - out)) pages went, $(($(pages pswpin) - in)) came back," \
		"$(($(drops a) - before)) segments dropped" | tee "$T_DIR/note"
	[ "$(pages pswpin)" -gt "$in" ] && [ "$(drops a)" = "$before" ] && return $status
}

swap_off() { echo 0 >"$RESERVES/take" && swapoff "$(disk)" && nvme disconnect -n $NQN; }

ulp_up nvme-rdma nvmet-rdma kiwarp_reserves || bail "no two hosts"
t_run "a target" target
t_run "swap" swap_on
t_run "pages go and come back" swapped
ulp_note "$(cat "$T_DIR/note")"
t_run "no swap" swap_off
t_run "the target ends" target_ends
ulp_down
done_testing
