# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Sourced after rc: what goes over the cable between the hosts, into $PCAP.

PCAP=$T_DIR/wire.pcap
MARK=7999	# nobody listens there

# counts: prints NAME=VALUE of the counters, added up over both devices.
counts() {
	local name path dev sum value
	for name in rx_sends rx_writes rx_read_requests rx_read_responses tx_terminates tx_fpdus; do
		sum=0
		for dev in $DEV_A $DEV_B; do
			path=/sys/class/infiniband/$dev/ports/1/hw_counters/$name
			read -r value <"$path" || return 1
			sum=$((sum + value))
		done
		echo "$name=$sum"
	done
}

# Turn offloads off, so that packets are as on a cable: not longer than the MTU, with checksums.
plain_netdevs() {
	local host
	for host in a b; do
		on $host ethtool -K "$NETDEV" tso off gso off gro off tx off >/dev/null || return 1
	done
}

# The control connection of verbs.py is not of interest.
capture() { capture_only "tcp and not port 7700"; }

# capture_only FILTER
capture_only() {
	spawn tcpdump a timeout "$(at_most 40)" tcpdump -i "$NETDEV" -s 0 -U -B 65536 -w "$PCAP" \
		"$1"
	wait_for 10 grep -q "listening on" "$T_DIR/tcpdump.log" || { spawn_log tcpdump; return 1; }
}

marked() { tcpdump -r "$PCAP" "tcp port $MARK and tcp[tcpflags] & tcp-rst != 0" | grep -q .; }

# Once the mark is in the file, all packets before it are, too.
capture_end() {
	must_fail on_a nc -z -w 5 "$B4" "$MARK" || return 1
	wait_for 10 marked || { echo "the mark is not in the capture"; return 1; }
	spawn_stop tcpdump
	spawn_log tcpdump
	grep -q '^0 packets dropped by kernel' "$T_DIR/tcpdump.log"
}
