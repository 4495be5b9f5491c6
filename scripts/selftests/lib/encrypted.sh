# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: what goes over the cable between the hosts where TCP is encrypted, into $PCAP,
# and whether any data does. Set BETWEEN, a filter for the packets between the hosts.

PCAP=$T_DIR/encrypted.pcap
BETWEEN=

capture() {
	spawn tcpdump a timeout "$(at_most 60)" tcpdump -i "$NETDEV" -s 0 -U -B 65536 -w "$PCAP"
	wait_for 10 grep -q "listening on" "$T_DIR/tcpdump.log" || { spawn_log tcpdump; return 1; }
}

# seen FILTER: prints the packets between the hosts that match.
seen() { tcpdump -n -r "$PCAP" "${BETWEEN:+$BETWEEN and }$1" 2>/dev/null; }
marked() { seen 'icmp[icmptype] = icmp-echoreply' | grep -q .; }

# Pings are not encrypted, so one of them marks the end.
capture_end() {
	on_a ping -q -c 1 -W 5 "$B4" || return 1
	wait_for 10 marked || { echo "the mark is not in the capture"; return 1; }
	spawn_stop tcpdump
	spawn_log tcpdump
	grep -q '^0 packets dropped by kernel' "$T_DIR/tcpdump.log"
}

# moves: pings have moved data since the last call.
moves() {
	local now
	now=$(counter "$DEV_B" rx_read_responses)
	[ "$now" != "${LAST:=$now}" ] || return 1
	LAST=$now
}
