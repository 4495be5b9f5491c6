#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: IPsec, ESP in transport mode: all of it is encrypted, nothing goes in clear
# TIMEOUT: 120
# KERNELS: uml 6.1
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"
# shellcheck source=scripts/selftests/lib/encrypted.sh
. "$SELFTESTS/encrypted.sh"

# Octets of the frames, and of rping's payload
CLEAR='MPA ID Re[qp] Frame|rdma-ping-|ABCDEFGHIJKLMNOPQRSTUVWXYZ'
BETWEEN="((host $A4 and host $B4) or (host $A6 and host $B6))"

# --- what the hosts are told ------------------------------------------------------

# key OCTETS: prints a new random key.
key() { printf '0x'; od -An -N"$1" -tx1 /dev/urandom | tr -d ' \n'; }

# algorithms FAMILY: one algorithm of each kind.
algorithms() {
	case $1 in
	4) echo "aead rfc4106(gcm(aes)) $(key 20) 128" ;;
	6) echo "auth-trunc hmac(sha256) $(key 32) 128 enc cbc(aes) $(key 16)" ;;
	esac
}

# one_state FROM TO SPI FAMILY: adds a state, the same on both hosts.
one_state() {
	local -a how
	read -ra how < <(algorithms "$4")
	local host
	for host in a b; do
		on "$host" ip xfrm state add src "$1" dst "$2" proto esp spi "$3" reqid 77 \
			mode transport replay-window 64 "${how[@]}" || return 1
	done
}

# states_up N: N makes the SPIs differ.
states_up() {
	one_state "$A4" "$B4" "0x${1}41" 4 && one_state "$B4" "$A4" "0x${1}42" 4 &&
		one_state "$A6" "$B6" "0x${1}61" 6 && one_state "$B6" "$A6" "0x${1}62" 6
}

states_down() { on_a ip xfrm state flush && on_b ip xfrm state flush; }

# policies_up HOST: it neither sends nor takes TCP that is not in ESP.
policies_up() {
	local pair here there
	for pair in "$A4 $B4" "$A6 $B6"; do
		read -r here there <<<"$pair"
		[ "$1" = a ] || read -r there here <<<"$pair"
		on "$1" ip xfrm policy add src "$here" dst "$there" proto tcp dir out tmpl \
			src "$here" dst "$there" proto esp reqid 77 mode transport &&
			on "$1" ip xfrm policy add src "$there" dst "$here" proto tcp dir in tmpl \
				src "$there" dst "$here" proto esp reqid 77 mode transport ||
			return 1
	done
}

policies_down() { on "$1" ip xfrm policy flush; }

both_up() { states_up 70 && policies_up a && policies_up b; }

# sa HOST FROM TO WHAT: prints a counter of a state: packets, or packets that were not authentic.
sa() {
	on "$1" ip -s xfrm state get src "$2" dst "$3" proto esp \
		spi "$(on "$1" ip xfrm state list src "$2" dst "$3" | sed -n 's/.*spi \(0x[0-9a-f]*\).*/\1/p')" |
		case $4 in
		packets) sed -n 's/.*(bytes), \([0-9]*\)(packets)/\1/p' ;;
		failed) sed -n 's/.* failed \([0-9]*\)$/\1/p' ;;
		esac | tail -n 1
}

# Each state has carried packets, at its sender and at its receiver.
states_moved() {
	local host pair n from to
	for pair in "$A4 $B4" "$B4 $A4" "$A6 $B6" "$B6 $A6"; do
		read -r from to <<<"$pair"
		for host in a b; do
			n=$(sa "$host" "$from" "$to" packets)
			echo "$host: $from to $to: ${n:-no such state}"
			[ "${n:-0}" -gt 20 ] || return 1
		done
	done
}

# --- the wire ---------------------------------------------------------------------

# captured CMD...: runs CMD, and captures what is on the wire meanwhile.
captured() {
	local status=0
	capture || return 1
	"$@" || status=$?
	capture_end && return "$status"
}

# Both families are there, nothing else but ESP is, and no known octets are.
only_esp() {
	local family n
	for family in ip ip6; do
		n=$(seen "$family proto 50" | wc -l)
		[ "$n" -gt 20 ] || { echo "$n of ESP over $family"; return 1; }
	done
	no_clear
}

no_clear() {
	! seen 'not esp and not icmp and not icmp6 and not arp' | head -n 5 | grep . &&
		! grep -a -o -m 5 -E "$CLEAR" "$PCAP"
}

# What the checks above look for is there without IPsec.
clear_is_found() {
	captured rping_to b "$B4" -C 3 -S 5000 || return 1
	! no_clear && seen tcp | grep -q . && grep -a -q 'MPA ID Req Frame' "$PCAP" &&
		grep -a -q rdma-ping- "$PCAP" && ! seen esp | grep .
}

# --- cases ------------------------------------------------------------------------

pings() { rping_to b "$B4" -C 10 -S 5000 && rping_to a "$A4" -C 10 -S 60000; }
pings6() { rping_to b "$B6" -C 10 -S 5000 && rping_to a "$A6" -C 10 -S 60000; }

# unreachable ADDRESS: the server listens, but the client's connect fails.
unreachable() {
	local status
	spawn server b timeout 80 rping -s -a "$1" -P
	wait_listen b 7174 || { spawn_stop server; return 1; }
	on_a timeout 60 rping -c -a "$1" -C 1
	status=$?
	spawn_stop server
	echo "status $status"
	[ "$status" != 0 ] && [ "$status" != 124 ] && wait_gone 5 is_listening b 7174
}

all_unreachable() { unreachable "$B4" && unreachable "$B6"; }

no_states() {
	states_down && captured all_unreachable && no_clear && ! seen esp | grep .
}

# Host a does not encrypt, so host b drops its packets.
clear_is_not_taken() {
	local status=0
	policies_down a || return 1
	captured all_unreachable || status=1
	policies_up a || status=1
	seen "tcp and (src host $A4 or src host $A6)" | grep -q . ||
		{ echo "host a did not speak"; status=1; }
	! seen "(tcp or esp) and (src host $B4 or src host $B6)" | grep . || status=1
	return "$status"
}

# Host b has another key for what comes from host a.
other_key() {
	local n
	on_b ip xfrm state delete src "$A4" dst "$B4" proto esp spi 0x7441 &&
		on_b ip xfrm state add src "$A4" dst "$B4" proto esp spi 0x7441 reqid 77 \
			mode transport replay-window 64 aead 'rfc4106(gcm(aes))' "$(key 20)" 128 &&
		captured unreachable "$B4" && no_clear || return 1
	n=$(sa b "$A4" "$B4" failed)
	echo "not authentic: $n"
	[ "$n" -gt 0 ]
}

# lend: large messages are sent from the consumer's pages, so the payload is encrypted there or copied.
lend() { set_policy crc n && set_policy fpdu large && set_policy zero_copy on; }

stands_still() { moves; ! wait_for 1 moves; }

# The expiry of an SA does not end a stream, which uses the next SA. RFC 5044 9.4 says the same of
# delete messages.
new_keys() {
	local status=1
	spawn server b timeout "$(at_most 30)" rping -s -a "$B4" -S 100
	wait_listen b 7174 || { spawn_stop server; return 1; }
	spawn client a timeout "$(at_most 30)" rping -c -V -a "$B4" -S 100
	wait_for 10 moves && states_down && captured stands_still && no_clear &&
		states_up 72 && wait_for 20 moves && spawn_running client && status=0
	spawn_stop client
	spawn_stop server
	spawn_log client
	return "$status"
}

command -v tcpdump >/dev/null || bail "the root image has no tcpdump"
{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
for dev in $DEV_A $DEV_B; do echo 3000 >"/sys/class/infiniband/$dev/policy/startup_ms"; done
for module in esp4 esp6 xfrm_user; do modprobe -q "$module"; done
t_run "without IPsec, the checks find TCP and payload" clear_is_found
t_run "states and policies" both_up
t_run "capture" capture
t_run "rping, IPv4, AES-GCM" pings
t_run "rping, IPv6, AES-CBC and HMAC-SHA-256" pings6
t_run "ib_write_bw" perf b ib_write_bw "$B4" 50 -s 65536
t_run "ib_read_lat" perf a ib_read_lat "$A4" 50 -s 4000
verbs_between a b "$B4" "IPv4: " wire send_back
verbs_between a b "$B6" "IPv6: " wire interop
t_run "capture ends" capture_end
t_run "on the wire is nothing but ESP" only_esp
t_run "each state carried packets" states_moved
t_run "new keys while a connection is in use" new_keys
t_run "policies without states: no connection, not a packet" no_states
t_run "states are added again" states_up 74
t_run "another key: no connection" other_key
t_run "a peer that speaks in clear is not heard" clear_is_not_taken
states_down
t_run "new states" states_up 75
t_run "rping works" pings
t_run "no CRC, and pages are lent" lend
verbs_between a b "$B4" "" zc_rewritten
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
