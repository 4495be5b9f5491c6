#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: connections with the independent peer, markers among them, as tshark reads them
# TIMEOUT: 120
# KERNELS: uml 6.12
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/peer.sh
. "$SELFTESTS/peer.sh"
# shellcheck source=scripts/selftests/lib/capture.sh
. "$SELFTESTS/capture.sh"

TEXT=$T_DIR/wire.txt

# Heuristics first: iWARP has no port of its own, and tshark takes ports such as 44818 and 57000,
# which a client may get, for those of other protocols.
tshark_iwarp() {
	tshark --disable-protocol rpcordma -o tcp.try_heuristic_first:TRUE -r "$PCAP" "$@" \
		2>"$T_DIR/tshark.err" || { cat "$T_DIR/tshark.err"; return 1; }
}

read_by_tshark() { tshark_iwarp -O iwarp_mpa,iwarp_ddp_rdmap >"$TEXT" || { cat "$TEXT"; return 1; }; }

seen() { grep -c "$1" "$TEXT"; }

# fpdus: that the driver has sent and received.
fpdus() {
	local name sum=0 value
	for name in tx_fpdus rx_fpdus; do
		read -r value <"/sys/class/infiniband/$DEV_A/ports/1/hw_counters/$name" || return 1
		sum=$((sum + value))
	done
	echo $sum
}

# each_is_good BEFORE: as many FPDUs with a good CRC as went both ways since there were
# BEFORE, and nothing that tshark does not understand.
each_is_good() {
	local count
	read_by_tshark && count=$(($(fpdus) - $1)) || return 1
	! grep -m 3 -B 5 -e 'Malformed' -e 'Bad CRC32' "$TEXT" || return 1
	echo "$count FPDUs, $(seen '(Good CRC32)') good"
	[ "$count" -gt 0 ] && [ "$(seen '(Good CRC32)')" = "$count" ]
}

# An FPDU is a segment: tshark finds none with markers otherwise.
sessions() {
	local markers=$1 size
	for size in 64 400 900 1300; do
		to_server "pings of $size" --markers "$markers" --size $size --count 4 --fpdu 1444
		to_client "pings of $size, to the peer" 4 $size --markers "$markers" --fpdu 1444
	done
}

# clean NAME PEER'S MARKERS [POLICY]
clean() {
	local name=$1 markers=$2 before
	shift 2
	t_run "$name: policy" policy default "$@"
	t_run "$name: capture" capture
	before=$(fpdus)
	peer_cases < <(sessions "$markers")
	t_run "$name: capture ends" capture_end
	t_run "$name: tshark reads every FPDU" each_is_good "$before"
}

# A row each of RFC 5044 8, RFC 5041 8 and RFC 5040 4.8 figure 9
FAULTS="crc-payload:2/0/02 length-13:2/0/03 write-stag:1/1/00 ddp-version-tagged-2:1/1/04
	qn-0xffffffff:1/2/01 msn-skip:1/2/03 mo-first:1/2/04 too-long-17:1/2/05 ddp-version-3:1/2/06
	read-stag:0/1/00 invalidate-stag:0/1/09 rdmap-version-2:0/2/05 opcode-12:0/2/06
	read-request-27:0/2/ff response-short:0/2/07"
# Likewise, of memory that rping advertises
TARGETS="write-after:1/1/01 write-wrap:1/1/03 read-after:0/1/01 read-wrap:0/1/04
	read-flood:1/2/02"
# Likewise, of memory that victim.py advertises while it sends or writes: FAULT:EXPECTED:MEMORY
VICTIMS="write-here:0/1/02:no-write read-here:0/1/02:no-read write-here:1/1/02:other-pd
	read-here:0/1/03:other-pd"

faults() {
	local fault expected memory load="send"
	for fault in $FAULTS; do
		to_server "${fault%:*}" --fault "${fault%:*}" --expect "term:${fault#*:}"
	done
	for fault in $TARGETS; do
		to_client "${fault%:*}" 1 64 --fault "${fault%:*}" --expect "term:${fault#*:}" \
			--status ends
	done
	for fault in $VICTIMS; do
		IFS=: read -r fault expected memory <<<"$fault"
		to_victim "$fault of memory: $memory" "$memory --load $load" \
			--fault "$fault" --load own --expect "term:$expected"
		load="write"
	done
}

# tshark's words for layer, type and code of each Terminate, in order of time.
terminates() {
	grep -o -i -E '(layer|error type[^:]*|error code[^:]*): .*\(0x[0-9a-f]+\)' "$TEXT" |
		grep -o '0x[0-9a-f]*' | paste -d/ - - -
}

same_terminates() {
	local fault layer etype code
	read_by_tshark || return 1
	for fault in $FAULTS $TARGETS $VICTIMS; do
		IFS=:/ read -r _ layer etype code _ <<<"$fault"
		printf '0x%x/0x%x/0x%02x\n' "0x$layer" "0x$etype" "0x$code"
	done >"$T_DIR/wanted"
	terminates >"$T_DIR/found"
	diff "$T_DIR/wanted" "$T_DIR/found" && return 0
	tshark_iwarp
	return 1
}

command -v tshark >/dev/null || bail "the root image has no tshark"
{ load_kiwarp && topo_up 1500 && plain_netdevs && policy default; } || bail "no two hosts"
clean "no markers" none
# tshark takes markers to be in both directions or in none.
clean "markers both ways" both markers=y
t_run "faults: policy" policy default
t_run "faults: capture" capture
peer_cases < <(faults)
t_run "faults: capture ends" capture_end
t_run "tshark reads the same Terminates" same_terminates
t_run "nothing is left" peer_left_nothing
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
