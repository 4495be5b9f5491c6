#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# guest.sh DIGESTS STACK...: runs on host a of apart.sh, the client. Measures each STACK (stacks.sh)
# over TCP and over RDMA. Prints each row, and then its windows (windows.py). At either host
# /out/symbols has the kernel's functions, and /out/symbols.STACK.TRANSPORT those of its modules.
# shellcheck disable=SC2034 # variables are for stacks.sh

# The emulated guests are slow, and so may be the machine.
export KIW_SLOW=20

# The size of READs and WRITEs of NFS
BLOCK=1048576
DIGESTS=$1
shift
# shellcheck source=scripts/bench/stacks.sh
. /host/job/stacks.sh

WINDOWS=5
WINDOW_MS=${KIW_WINDOW_MS:-1000}
MARK_PORT=7701
HOSTS=127.0.0.1,${AGENT#/dev/tcp/}
HOSTS=${HOSTS%/*}

LOG=$T_DIR/log

# is_marking HOST: whether mark.c runs there
is_marking() { on "$1" ss -Hlun "sport = :$MARK_PORT" | grep -q .; }

# windows LOAD...: with what windows.py does meanwhile
windows() { python3 /host/job/windows.py "$WINDOWS" "$WINDOW_MS" "$MARK_PORT" "$HOSTS" "$@"; }

# row NAME OPERATION SIZE DEPTH
row() {
	echo "ROW $STACK $TRANSPORT $3 $1"
	windows "$TARGET" "--rw=$2" "--bs=$3" "--iodepth=$4"
}

rows() {
	if [ "$STACK" = nfs ]; then
		row "read 1 MiB, 4" read $((1 << 20)) 4 && row "write 1 MiB, 4" write $((1 << 20)) 4
	else
		row "read 128 KiB, 8" read $((128 << 10)) 8 &&
			row "write 128 KiB, 8" write $((128 << 10)) 8
	fi && row "random read 4 KiB, 32" randread 4096 32 &&
		row "random read 4 KiB, 1" randread 4096 1 &&
		row "random write 4 KiB, 32" randwrite 4096 32 &&
		row "random write 4 KiB, 1" randwrite 4096 1
}

# symbols FILTER NAME: saves the symbols that match, at either host
symbols() {
	local host
	for host in a b; do
		on $host sh -c "grep -i ' [tw] ' /proc/kallsyms | grep $1 >/out/$2" || return 1
	done
}

# Reads get data, not the zeroes of a RAM disk that was never written.
fill() { on_b sh -c "tr '\\0' x </dev/zero | head -c ${MIB}M >/dev/ram0"; }

measure() {
	local TRANSPORT
	for TRANSPORT in tcp rdma; do
		{ ram_up && { [ "$STACK" = nfs ] || fill; } && stack_up &&
			symbols "'\\]\$'" "symbols.$STACK.$TRANSPORT"; } >>"$LOG" 2>&1 || return 1
		rows || return 1
		stack_down >>"$LOG" 2>&1 || return 1
	done
}

# settings: of the module's parameters, which devices take over that are added later
settings() {
	local host setting
	for setting in ${KIW_SETTINGS:-}; do
		for host in a b; do
			put $host "${setting#*=}" "/sys/module/kiwarp/parameters/${setting%%=*}" ||
				return 1
		done
	done
}

main() {
	local load
	spawn mark-a a /host/job/mark $MARK_PORT
	spawn mark-b b /host/job/mark $MARK_PORT
	{ load_kiwarp && settings && ulp_topo_up && symbols "-v '\\]\$'" symbols; } >"$LOG" 2>&1 ||
		return 1
	wait_for 10 is_marking a && wait_for 10 is_marking b || return 1
	for load in idle busy; do
		echo "ROW none none 0 $load"
		windows $load || return 1
	done
	for STACK; do measure || return 1; done
}

main "$@" || { cat "$LOG"; exit 1; }
