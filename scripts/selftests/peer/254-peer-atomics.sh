#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: immediates, atomics and sinks that go: a kernel consumer and the wire peer
# TIMEOUT: 240
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"

TEXT=$T_DIR/wire.txt

# -P: peer is the package here, not the script beside it.
extended() {
	env "PYTHONPATH=$SELFTESTS/../..:$SELFTESTS" python3 -P "$SELFTESTS/extended.py" \
		/run/netns/a "$A4" /run/netns/b "$B4" "$@"
}

# run_groups NAME...: of cases
run_groups() {
	told extended "$@"
	all_told "$(tail -n 1 "$T_DIR/case")"
}

# as_many REGEX COUNTER: tshark shows as many as the driver has sent and received.
as_many() {
	local seen count
	seen=$(grep -c "$1" "$TEXT")
	count=$(($(counter "$DEV_A" "rx_$2") + $(counter "$DEV_A" "tx_$2")))
	echo "$1: $seen, $2: $count"
	[ "$seen" -gt 0 ] && [ "$seen" = "$count" ]
}

# tshark has no name for the opcodes of Immediate Data.
as_tshark_reads_it() {
	tshark -n -r "$PCAP" -o tcp.try_heuristic_first:TRUE --disable-protocol rpcordma \
		-O iwarp_mpa,iwarp_ddp_rdmap >"$TEXT" 2>"$T_DIR/tshark.err" ||
		{ cat "$T_DIR/tshark.err"; return 1; }
	! grep -m 3 -B 5 -e Malformed -e 'Bad CRC32' "$TEXT" &&
		as_many 'OpCode: Atomic Request (0xa)' atomic_requests &&
		as_many 'OpCode: Atomic Response (0xb)' atomic_responses &&
		as_many 'OpCode: Unknown (0x[89])' immediates &&
		grep -q 'OpCode: FetchAdd' "$TEXT" && grep -q 'OpCode: CmpSwap' "$TEXT"
}

{ load_kiwarp && topo_up 1500 && policy default && modprobe kiwarp_ktest; } || bail "no two hosts"
t_run "capture" capture
run_groups captured
t_run "capture ends" capture_end
t_run "as tshark reads it" as_tshark_reads_it
run_groups right wrong answers memory changed
{ policy default rfc7306=N; } || bail "no device"
run_groups off
t_run "nothing is left" peer_left_nothing
t_run "unload the consumer" modprobe -r kiwarp_ktest
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
