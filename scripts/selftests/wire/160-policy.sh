#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the policy of a device: shown, changed, refused; what it does to connections
# TIMEOUT: 90
# KERNELS: uml 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/verbs.sh
. "$SELFTESTS/verbs.sh"

PARAMS=/sys/module/${KIW_LINK_TYPE%-ext}/parameters

# policy DEV NAME [VALUE]: read or write a setting.
policy() {
	local file=/sys/class/infiniband/$1/policy/$2
	if [ $# -gt 2 ]; then bash -c "echo '$3' >$file"; else cat "$file"; fi
}

# policies DEV: prints all settings in one line.
policies() {
	local name
	for name in crc markers p2p rtr mpa_rev rdmac startup_ms max_half_open \
			max_half_open_total max_lingering rfc7306 fpdu zero_copy port_mapper; do
		policy "$1" "$name"
	done | paste -sd' '
}

policies_are() {
	local got
	got=$(policies "$1")
	[ "$got" = "$2" ] || { echo "$1: $got instead of $2"; return 1; }
}

DEFAULTS="Y N Y write read send 2 N 10000 256 4096 1024 Y auto off N"

# --- the files ------------------------------------------------------------------

nothing_more() {
	local found
	found=$(find "/sys/class/infiniband/$DEV_A/policy" -type f | wc -l)
	echo "$found settings"
	[ "$found" = 14 ]
}

# SETTING VALUE SHOWN
good() {
	cat <<-'END'
	crc n N
	crc 1 Y
	crc off N
	markers y Y
	p2p 0 N
	rdmac on Y
	mpa_rev 1 1
	mpa_rev 0x2 2
	startup_ms 100 100
	startup_ms 60000 60000
	max_half_open 1 1
	max_half_open_total 65535 65535
	max_lingering 1 1
	rfc7306 n N
	rfc7306 y Y
	fpdu segment segment
	fpdu large large
	fpdu auto auto
	zero_copy off off
	zero_copy on on
	zero_copy auto auto
	port_mapper y Y
	port_mapper n N
	rtr send send
	rtr read,write read write
	rtr send,read,write send read write
	rtr write,read,send write read send
	END
}

changes() {
	local name value shown before
	before=$(policies "$DEV_B")
	while read -r name value shown; do
		policy "$DEV_A" "$name" "$value" || return 1
		[ "$(policy "$DEV_A" "$name")" = "$shown" ] ||
			{ echo "$name=$value: $(policy "$DEV_A" "$name")"; return 1; }
	done < <(good)
	policy "$DEV_A" rtr " read  send " && [ "$(policy "$DEV_A" rtr)" = "read send" ] &&
		policies_are "$DEV_B" "$before"
}

# SETTING VALUE HOW THE LOG PUTS IT
bad() {
	cat <<-'END'
	mpa_rev 0 a number from 1 to 2
	mpa_rev 3 a number from 1 to 2
	startup_ms 99 a number from 100 to 60000
	startup_ms 60001 a number from 100 to 60000
	max_half_open 0 a number from 1 to 65535
	max_half_open_total 65536 a number from 1 to 65535
	max_half_open_total -1 a number from 1 to 65535
	max_lingering 0 a number from 1 to 65535
	crc maybe y or n
	rdmac 2 y or n
	fpdu small segment, large or auto
	fpdu largest segment, large or auto
	fpdu 1 segment, large or auto
	zero_copy y off, on or auto
	zero_copy 1 off, on or auto
	rtr writ one or more of write, read and send
	END
}

refuses() {
	local name value text before
	before=$(policies "$DEV_A")
	while read -r name value text; do
		refused 'Invalid argument' "$DEV_A: $name must be $text" \
			policy "$DEV_A" "$name" "$value" || return 1
		policies_are "$DEV_A" "$before" || return 1
	done < <(bad)
	for value in "write write" "," "write read send write"; do
		refused 'Invalid argument' "" policy "$DEV_A" rtr "$value" || return 1
	done
	policies_are "$DEV_A" "$before"
}

# Thirty invalid values at once: each has its line in the log.
each_is_told() {
	local n
	log_mark
	for n in {101..130}; do
		echo "$n" >"/sys/class/infiniband/$DEV_A/policy/mpa_rev" 2>/dev/null &&
			{ echo "$n was taken"; return 1; }
	done
	for n in {101..130}; do
		log_says "not '$n'" >/dev/null || { echo "'$n' is not in the log"; return 1; }
	done
}

not_for_everybody() {
	refused 'Permission denied|Operation not permitted' "" \
		setpriv --reuid 65534 --clear-groups bash -c \
		"echo n >/sys/class/infiniband/$DEV_A/policy/crc" || return 1
	refused 'Operation not permitted' "" \
		setpriv --bounding-set -net_admin --inh-caps -net_admin bash -c \
		"echo n >/sys/class/infiniband/$DEV_A/policy/crc" || return 1
	setpriv --reuid 65534 --clear-groups cat "/sys/class/infiniband/$DEV_A/policy/crc"
}

parameters_are_defaults() {
	echo 1 >"$PARAMS/mpa_rev" && echo y >"$PARAMS/markers" && echo read >"$PARAMS/rtr" &&
		echo 33 >"$PARAMS/max_half_open_total" || return 1
	policies_are "$DEV_B" "$DEFAULTS" || return 1
	rdma_down && rdma_up && policies_are "$DEV_A" "Y Y Y read 1 N 10000 256 33 1024 Y auto off N" || return 1
	echo 2 >"$PARAMS/mpa_rev" && echo n >"$PARAMS/markers" &&
		echo write,read,send >"$PARAMS/rtr" && echo 4096 >"$PARAMS/max_half_open_total" &&
		rdma_down && rdma_up && policies_are "$DEV_A" "$DEFAULTS"
}

# --- what they do -----------------------------------------------------------------

# Connects from host a to the program that answers for host b.
cannot_connect() { ! on_a timeout 30 rping -c -a "$B4" -C 1 >/dev/null 2>&1; }

# request_of_a NUMBER: host b waits for a Request and shows so many octets of it, from its
# flags on, in hex, then closes.
request_of_a() {
	spawn raw b timeout 60 python3 -c "
import socket
s = socket.create_server(('10.77.0.2', 7174))
c, _ = s.accept()
got = b''
while len(got) < 16 + $1:
    more = c.recv(100)
    if not more:
        break
    got += more
print(got[16:].hex())"
	wait_listen b 7174 || return 1
	cannot_connect || return 1
	spawn_wait raw 10 && spawn_log raw
}

# asks HEX [SETTING=VALUE...]: with these, a Request of host a has that from its flags on.
asks() {
	local want=$1 got before setting
	shift
	before=$(for setting in "$@"; do
		echo "${setting%%=*}=$(policy "$DEV_A" "${setting%%=*}")"; done)
	for setting in "$@"; do policy "$DEV_A" "${setting%%=*}" "${setting#*=}" || return 1; done
	got=$(request_of_a $((${#want} / 2)))
	while IFS= read -r setting; do
		[ -z "$setting" ] || policy "$DEV_A" "${setting%%=*}" "${setting#*=}"
	done <<<"$before"
	echo "$got instead of $want"
	[ "$got" = "$want" ]
}

# The depths of rping are 1 and 1; the 0s of the masks are A B C D.
requests() {
	t_run "a Request by default: C, S, A with every RTR" asks '50020004c001c001'
	t_run "crc off" asks '10020004c001c001' crc=n
	t_run "markers on" asks 'd0020004c001c001' markers=y
	t_run "p2p off" asks '5002000400010001' p2p=n
	t_run "RTR by send only" asks '50020004c0010001' rtr=send
	t_run "RTR by write only" asks '5002000480018001' rtr=write
	t_run "RTR by read only" asks '5002000480014001' rtr=read
	t_run "revision 1" asks '40010000' mpa_rev=1
	t_run "revision 0 is for answers" asks '40010000' mpa_rev=1 rdmac=y
}

# first_fpdu HEX [SETTING=VALUE...]: with these, the control octets of the first FPDU that
# host a sends to a responder that accepts every RTR.
first_fpdu() {
	local want=$1 got setting status=0
	shift
	for setting in "$@"; do policy "$DEV_A" "${setting%%=*}" "${setting#*=}" || return 1; done
	spawn raw b timeout 60 python3 -c '
import socket
s = socket.create_server(("10.77.0.2", 7174))
c, _ = s.accept()
c.recv(1000)
c.send(b"MPA ID Rep Frame" + bytes.fromhex("50020004c001c001"))
got = b""
while len(got) < 4:
    more = c.recv(100)
    if not more:
        break
    got += more
print(got[2:4].hex())'
	wait_listen b 7174 || return 1
	# Whether it takes this for a connection depends on who is faster: it is ended.
	spawn client a timeout 60 rping -c -a "$B4" -C 1
	spawn_wait raw 10 || status=$?
	spawn_stop client
	got=$(spawn_log raw)
	policy "$DEV_A" rtr write,read,send
	echo "$got instead of $want, status $status"
	[ "$status" = 0 ] && [ "$got" = "$want" ]
}

rtr_order() {
	first_fpdu c140 && first_fpdu c140 rtr=write,send,read &&
		first_fpdu 4141 rtr=read,write,send && first_fpdu 4143 rtr=send,write
}

# A peer that closes on revision 2 gets one Request of revision 1, and no third one.
falls_back() {
	local before
	before=$(counter "$DEV_A" conn_retried)
	spawn raw b timeout 60 python3 -c '
import socket
s = socket.create_server(("10.77.0.2", 7174))
try:
    while True:
        c, _ = s.accept()
        request = c.recv(1000)[16:18].hex()
        print(request)
        c.close()
        s.settimeout(50 if request[:2] == "50" else 3)
except TimeoutError:
    pass'
	wait_listen b 7174 || return 1
	cannot_connect || return 1
	spawn_wait raw 10 && [ "$(spawn_log raw | paste -sd' ')" = "5002 4001" ] &&
		[ "$(counter "$DEV_A" conn_retried)" = $((before + 1)) ]
}

# The other end of it: a device of revision 1 closes on revision 2, both connect.
meets_revision_1() {
	local before
	before=$(counter "$DEV_A" conn_retried)
	policy "$DEV_B" mpa_rev 1 && rping_to b "$B4" -C 3 &&
		[ "$(counter "$DEV_A" conn_retried)" = $((before + 1)) ] &&
		policy "$DEV_B" mpa_rev 2 && rping_to b "$B4" -C 3 &&
		[ "$(counter "$DEV_A" conn_retried)" = $((before + 1)) ]
}

# disagrees REPLY FPDU: to a Reply with REPLY from its flags on, host a answers FPDU, without
# its CRC; both in hex.
disagrees() {
	local reply=$1 want=$2 got
	spawn raw b timeout 60 python3 -c "
import socket
s = socket.create_server(('10.77.0.2', 7174))
c, _ = s.accept()
c.recv(1000)
c.send(b'MPA ID Rep Frame' + bytes.fromhex('$reply'))
got = b''
while True:
    more = c.recv(100)
    if not more:
        break
    got += more
print(got[:-4].hex())"
	wait_listen b 7174 || return 1
	cannot_connect || return 1
	spawn_wait raw 10 || { spawn_log raw; return 1; }
	got=$(spawn_log raw)
	echo "$got instead of $want"
	[ "$got" = "$want" ]
}

HEADER=0016414700000000000000020000000100000000
disagreements() {
	t_run "ORD that cannot be served: Terminate 2/0/06" disagrees 50020004c001c0ff ${HEADER}20060000
	t_run "no RTR in common: Terminate 2/0/07" disagrees 5002000480010001 ${HEADER}20070000
	t_run "not peer-to-peer: Terminate 2/0/07" disagrees 5002000400010001 ${HEADER}20070000
	t_run "a Reply that is not enhanced: Terminate 2/0/05" disagrees 40010000 ${HEADER}20050000
	t_run "the same, with markers" disagrees c0010000 00000000${HEADER}20050000
	t_run "private data beyond iw_cm: Terminate 2/0/05" disagrees \
		"5002012cc001c001$(printf '%0592d' 0)" ${HEADER}20050000
}

# a_says REQUEST: flags to length of what host a answers to a Request with REQUEST from its
# flags on, in hex; or how it ends.
a_says() {
	on_b timeout 30 python3 -c "
import socket
c = socket.create_connection(('10.77.0.1', 7174))
c.send(b'MPA ID Req Frame' + bytes.fromhex('$1'))
got = b''
try:
    while True:
        more = c.recv(1000)
        if not more:
            break
        got += more
except ConnectionResetError:
    got += b'reset'
print(got[16:20].hex() if got[:9] == b'MPA ID Re' else got.decode())"
}

answers() {
	local want=$1 got
	shift
	got=$(a_says "$1")
	echo "$got instead of $want"
	[ "$got" = "$want" ]
}

# RFC 5044 C.2.1: a rejection of revision 1. RFC 6581 10: none at all.
refused_revisions() {
	spawn server a timeout 60 rping -s -a "$A4" -P
	wait_listen a 7174 || return 1
	answers 60010000 c0000000 && policy "$DEV_A" mpa_rev 1 && answers reset 5002000400010001
	local status=$?
	policy "$DEV_A" mpa_rev 2
	spawn_stop server
	return "$status"
}

markers_both() {
	policy "$DEV_A" markers y && policy "$DEV_B" markers y &&
		rping_to b "$B4" -C 10 -S 5000 && rping_to a "$A4" -C 10 -S 5000
}

markers_one() {
	policy "$DEV_A" markers n && policy "$DEV_B" markers y &&
		rping_to b "$B4" -C 10 -S 5000 && rping_to a "$A4" -C 10 -S 5000
}

# CRC off at one end is on; off at both, nothing finds a difference but the wire.
crc_off() {
	policy "$DEV_A" crc n && rping_to b "$B4" -C 3 && rping_to a "$A4" -C 3 &&
		policy "$DEV_B" crc n && rping_to b "$B4" -C 3 &&
		policy "$DEV_A" crc y && policy "$DEV_B" crc y
}

pings() { grep -c '^ping data' "$T_DIR/client.log"; }
pings_beyond() { [ "$(pings)" -gt "$1" ]; }

# set_crc_and_markers CRC MARKERS: of both devices
set_crc_and_markers() {
	local dev
	for dev in "$DEV_A" "$DEV_B"; do
		policy "$dev" crc "$1" && policy "$dev" markers "$2" || return 1
	done
}

# with_crc_alone: all connections; one has two ends here.
with_crc_alone() {
	rdma -j -dd res show qp | tr -d '\n\t ' >"$T_DIR/qps"
	[ "$(grep -o -E '"drv_(crc|[rt]x_markers)":"?[0-9]+' "$T_DIR/qps" | tr -d '"' | sort |
		uniq -c | awk '{ print $1 "*" $2 }' | paste -sd' ')" = \
		"2*drv_crc:1 2*drv_rx_markers:0 2*drv_tx_markers:0" ] ||
		{ cat "$T_DIR/qps"; return 1; }
}

# The peer goes by what was agreed on, so the connection would break if either end did not.
keeps() {
	local status=0
	spawn server b timeout 60 rping -s -V -S 5000 -a "$B4"
	wait_listen b 7174 || { spawn_stop server; return 1; }
	spawn client a timeout 60 stdbuf -oL rping -c -v -V -S 5000 -a "$B4"
	wait_for 10 pings_beyond 10 && set_crc_and_markers n y &&
		wait_for 10 pings_beyond $(($(pings) + 10)) && with_crc_alone || status=1
	spawn_log client | tail -n 3 | cut -c 1-80
	spawn_stop client
	spawn_stop server
	set_crc_and_markers y n || status=1
	return "$status"
}

# A silent peer measures how long the stream lives. The client takes longer than that.
startup_ms() {
	local before began took lived=0
	before=$(counter "$DEV_A" conn_timeout)
	policy "$DEV_A" startup_ms 300 || return 1
	spawn raw b timeout 60 python3 -c '
import contextlib, socket, time
s = socket.create_server(("10.77.0.2", 7174))
c, _ = s.accept()
began = time.monotonic()
with contextlib.suppress(ConnectionError):
    while c.recv(1000): pass
print(int(1000 * (time.monotonic() - began)))'
	wait_listen b 7174 || return 1
	began=${EPOCHREALTIME/./}
	cannot_connect || return 1
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	policy "$DEV_A" startup_ms 10000
	spawn_wait raw 10 && lived=$(spawn_log raw)
	echo "the stream lived for $lived ms, the client for $took ms"
	[ "$(counter "$DEV_A" conn_timeout)" -gt "$before" ] && [ "$took" -ge 300 ] &&
		[ "$lived" -gt 0 ] && [ "$lived" -lt $((3000 * ${KIW_SLOW:-1})) ]
}

# half_open SETTING VALUE DEFAULT EVICTED: more silent peers connect than the setting allows. The
# oldest are evicted, at least EVICTED of them, and another client is served.
half_open() {
	local setting=$1 before gone
	before=$(counter "$DEV_A" conn_limited)
	policy "$DEV_A" "$setting" "$2" || return 1
	spawn server a timeout 80 rping -s -a "$A4" -P
	wait_listen a 7174 || return 1
	spawn silent b timeout 60 python3 -c '
import socket, time
callers = []
for _ in range(100):
    callers.append(socket.create_connection(("10.77.0.1", 7174)))
    time.sleep(0.01)
print("ready", flush=True)
time.sleep(20)'
	wait_for 20 grep -q ready "$T_DIR/silent.log" || { spawn_stop server; return 1; }
	rping_client on_b timeout 60 rping -c -v -a "$A4" -C 2 -V
	local status=$?
	spawn_stop silent
	spawn_stop server
	policy "$DEV_A" "$setting" "$3"
	gone=$(($(counter "$DEV_A" conn_limited) - before))
	echo "status $status, $gone evicted"
	[ "$status" = 0 ] && [ "$gone" -gt "$4" ]
}

# Connections that TCP keeps for the listener at most
tcp_keeps() { [ "$(on_a ss -Htln 'sport = :7174' | awk '{ print $3 }')" = "$1" ]; }

# A listener that exists gets a new setting with its next connection.
tcp_queue() {
	local before status=0
	spawn server a timeout 80 rping -s -a "$A4" -P
	wait_listen a 7174 || return 1
	before=$(on_a ss -Htln 'sport = :7174' | awk '{ print $3 }')
	policy "$DEV_A" max_half_open 8
	rping_client on_b timeout 60 rping -c -v -a "$A4" -C 2 -V &&
		wait_for 5 tcp_keeps $((before - 256 + 8)) || status=1
	policy "$DEV_A" max_half_open 256
	spawn_stop server
	echo "$before before"
	return "$status"
}

# Accepted connections have the type of service of their listener.
service_type() {
	local addr=$1 status
	spawn listener a timeout 60 python3 -c "
import ctypes, sys, time
sys.path.insert(0, '$SELFTESTS')
import rdmacm
there = rdmacm.Id(rdmacm.Channel())
tos = ctypes.c_uint8(0x68)
if rdmacm._LIB.rdma_set_option(ctypes.c_void_p(there.ptr), 0, 0, ctypes.byref(tos), ctypes.c_size_t(1)):
    sys.exit('rdma_set_option')
there.listen('$addr', 7174, 8)
time.sleep(20)"
	wait_listen a 7174 || { spawn_log listener; return 1; }
	spawn caller b timeout 60 python3 -c "
import socket, time
c = socket.create_connection(('$addr', 7174))
time.sleep(20)"
	wait_for 10 accepted_with 0x68
	status=$?
	on_a ss -tn --tos
	spawn_stop caller
	spawn_stop listener
	return "$status"
}

# rdma_cm's rule for "::": IPv4 as well, unless the socket or the system is of IPv6 only.
both_families() {
	local only=$1 status=0
	on_a sysctl -q net.ipv6.bindv6only="$only" || return 1
	spawn server a timeout 60 rping -s -a :: -P -V
	wait_listen a 7174 || return 1
	rping_client on_b timeout 30 rping -c -v -a "$A6" -C 3 -V || status=1
	if [ "$only" = 0 ]; then
		rping_client on_b timeout 30 rping -c -v -a "$A4" -C 3 -V || status=1
	else
		on_b timeout 30 rping -c -a "$A4" -C 3 -V && status=1
	fi
	spawn_stop server
	on_a sysctl -q net.ipv6.bindv6only=0
	return "$status"
}

accepted_with() {
	on_a ss -Htn --tos state established "sport = :7174" | grep -E "(tos|tclass):$1"
}

{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
t_run "defaults" policies_are "$DEV_A" "$DEFAULTS"
t_run "nothing else is there" nothing_more
t_run "settings change, of one device" changes
rdma_down
rdma_up || bail "no devices"
t_run "what makes no sense is refused, with a reason" refuses
t_run "each mistake is in the log" each_is_told
t_run "only an administrator changes them" not_for_everybody
t_run "module parameters are the defaults of new devices" parameters_are_defaults
requests
t_run "the RTR is the preferred one" rtr_order
t_run "revision 1 is tried when revision 2 is not understood, once" falls_back
t_run "a device of revision 1 and one of both" meets_revision_1
disagreements
t_run "revisions that are not spoken" refused_revisions
t_run "CRC at one end, at none" crc_off
t_run "markers in both directions" markers_both
t_run "markers in one direction" markers_one
policy "$DEV_B" markers n
t_run "a connection keeps the settings with which it began" keeps
t_run "startup deadline" startup_ms
t_run "half-open connections of a listener" half_open max_half_open 8 256 50
t_run "TCP's queue of a listener that exists" tcp_queue
t_run "half-open connections of a device" half_open max_half_open_total 20 4096 50
t_run "type of service of a listener" service_type "$A4"
t_run "type of service of a listener, IPv6" service_type "$A6"
t_run "a listener at :: takes IPv4 as well" both_families 0
t_run "a listener at :: takes IPv6 only when told to" both_families 1
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
