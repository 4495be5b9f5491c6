#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: user-space stacks over rdma_cm: rsockets, qperf, fio, libfabric, MPI, and what cannot work
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.1
# CHECK-KERNELS: uml
#
# Documentation/ulp/user-space.rst has what each of them does, and why some cannot work here.
# shellcheck disable=SC2086,SC2119 # names without blanks; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

PRELOAD=/usr/lib/x86_64-linux-gnu/rsocket/librspreload.so
# Connections at a time; rounds in a soak, 10,000 connections in all
STORM=250
STORMS=${KIW_SOAK:+40}

# is_slow: whether programs that poll take too long for a short run, because they share a CPU.
is_slow() { [ "$KIW_KERNEL" != uml ] && [ -z "${KIW_SOAK:-}" ]; }

# --- a server on b, a client on a ------------------------------------------------------

# The server's command
SERVER=()

# serve PORT: SERVER listens.
serve() {
	spawn stack b timeout $((60 * ${KIW_SLOW:-1} + ${KIW_SOAK:-0})) "${SERVER[@]}"
	[ "$1" = - ] || wait_listen b "$1" || { spawn_log stack; spawn_stop stack; return 1; }
}

# client COMMAND...: runs the client on a; its output is in client.log.
client() {
	on_a timeout $((60 * ${KIW_SLOW:-1})) "$@" >"$T_DIR/client.log" 2>&1 </dev/null ||
		{ echo "client: $?"; cat "$T_DIR/client.log"; spawn_log stack; return 1; }
	cat "$T_DIR/client.log"
}

# pair PORT CLIENT...: whether server and client end, both with status 0.
pair() {
	serve "$1" || return 1
	client "${@:2}" || { spawn_stop stack; return 1; }
	spawn_wait stack 10 || { echo "server: $?"; spawn_log stack; return 1; }
}

# forever PORT CLIENT...: like pair, but the server does not end by itself, and is stopped.
forever() {
	local status=0
	serve "$1" || return 1
	client "${@:2}" || status=1
	spawn_stop stack
	wait_gone 10 is_listening b "$1" || { echo "still listening"; status=1; }
	return $status
}

# cannot REASON CMD...: whether CMD fails with REASON, and neither crashes nor hangs. Some end with
# 255.
cannot() {
	local reason=$1 status=0
	shift
	on_a timeout 20 "$@" >"$T_DIR/cannot" 2>&1 || status=$?
	cat "$T_DIR/cannot"
	case $status in 0|12[4-9]|1[3-9]?) echo "status $status of: $*"; return 1 ;; esac
	grep -q -i -E -e "$reason" "$T_DIR/cannot" || { echo "no '$reason'"; return 1; }
}

# --- rsockets ----------------------------------------------------------------------------

# stream TOOL ADDRESS OPTIONS...: transfers data; every byte is verified on both ends.
stream() {
	local tool=$1 addr=$2
	shift 2
	SERVER=("$tool" -b "$addr" -T v "$@")
	pair 7471 "$tool" -s "$addr" -T v "$@"
}

sizes() {
	local tool size
	for tool in rstream riostream; do
		for size in 64 1000 4097 1048576; do stream $tool "$B4" -S $size -C 20 || return 1; done
	done
}

copied() {
	head -c 3000000 /dev/urandom >"$T_DIR/from" || return 1
	SERVER=(rcopy)
	forever 7427 rcopy "$T_DIR/from" "$B4:$T_DIR/to" && cmp "$T_DIR/from" "$T_DIR/to"
}

# An unmodified program that uses TCP sockets
preloaded() {
	SERVER=(env "LD_PRELOAD=$PRELOAD" python3 "$SELFTESTS/stacks.py" server "$B4" 5003)
	pair 5003 env "LD_PRELOAD=$PRELOAD" python3 "$SELFTESTS/stacks.py" client "$B4" 5003 &&
		[ "$(on_a ss -Htan "dport = :5003" | grep -c ESTAB)" = 0 ]
}

# --- librdmacm's own -----------------------------------------------------------------

cmatose() {
	SERVER=(ucmatose -b "$B4" -c 20 -C 10 -S 5000)
	pair 7471 ucmatose -s "$B4" -c 20 -C 10 -S 5000
}

simple() {
	SERVER=(rdma_server)
	pair 7471 rdma_client -s "$B4" || return 1
	SERVER=(rdma_xserver -c r)
	pair 7471 rdma_xclient -s "$B4" -c r
}

established() { counter "$DEV_A" conn_established; }
failures() { counter "$DEV_A" conn_failed; }

# storm: makes STORM connections at a time, and checks that all succeed: cmtime itself does not
# report those that fail.
storm() {
	local i made failed
	SERVER=(cmtime -c "$STORM")
	ulimit -n 16384
	# On a slow machine so many at a time take longer than a connection may.
	! is_kiwarp || set_policy startup_ms 60000 || return 1
	serve 7471 || return 1
	! is_kiwarp || made=$(established) failed=$(failures)
	for ((i = 0; i < ${STORMS:-1}; i++)); do
		client cmtime -s "$B4" -c "$STORM" || { spawn_stop stack; return 1; }
	done
	spawn_stop stack
	is_kiwarp || return 0
	made=$(($(established) - made)) failed=$(($(failures) - failed))
	echo "$made of $((i * STORM)) were made, $failed failed"
	[ "$made" = $((i * STORM)) ] && [ "$failed" = 0 ]
}

# --- measuring tools ---------------------------------------------------------------------

# fio_rdma VERB
fio_rdma() {
	local common=(--ioengine=rdma --port=18000 --bs=16k --size=2m --iodepth=8)
	SERVER=(fio --name=s "${common[@]}" --rw=read)
	pair 18000 fio --name=c "${common[@]}" --rw=write "--hostname=$B4" "--verb=$1" || return 1
	grep -q 'issued rwts: total=[0-9,]*128' "$T_DIR/client.log"
}

# --- libfabric, MPI ------------------------------------------------------------------------

# pingpong PROVIDER ENDPOINT: data is verified. The port is that of its own TCP connection.
pingpong() {
	local common=(-p "$1" -e "$2" -c -I 5)
	[ -n "${KIW_SOAK:-}" ] || common+=(-S 16384)
	SERVER=(fi_pingpong "${common[@]}" -d "$DEV_B")
	pair 47592 fi_pingpong "${common[@]}" -d $DEV_A "$B4"
}

# ofi_rxm 1.17 may crash at the very end, when it closes a connection that the other end has closed.
# That is accepted if the results of all sizes are there.
datagram_pingpong() {
	pingpong 'verbs;ofi_rxm' rdm && return
	grep -q '^1m .* =5 ' "$T_DIR/stack.log" && grep -q '^1m .* =5 ' "$T_DIR/client.log"
}

providers() {
	on_a fi_info -p verbs >"$T_DIR/info" || return 1
	grep -q 'FI_PROTO_IWARP$' "$T_DIR/info" && grep -q 'FI_PROTO_RXM' "$T_DIR/info"
}

# mpi RANKS: runs all ranks on one host, with libfabric as their only transport. ofi_rxm may crash
# at the end, see above.
mpi() {
	is_slow && { skip_this "its ranks spin"; return; }
	on_a env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
		timeout $((100 * ${KIW_SLOW:-1})) mpirun --bind-to none --oversubscribe --mca plm isolated \
		--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include 'verbs;ofi_rxm' \
		--mca mpi_yield_when_idle 1 -np "$1" python3 "$SELFTESTS/stacks.py" mpi \
		>"$T_DIR/mpi" 2>&1
	[ $? != 124 ] || { echo "no end"; return 1; }
	cat "$T_DIR/mpi"
	[ "$(grep -c '^rank .* verified$' "$T_DIR/mpi")" = "$1" ]
}

# --- what cannot work ------------------------------------------------------------------

datagrams() {
	cannot 'create QP: Operation not supported' udaddy -s "$B4" &&
		cannot 'create QP: Operation not supported' mckey -m 224.1.1.1 -b "$A4" &&
		cannot 'Operation not supported' udpong -s "$B4" -C 1 &&
		cannot "Couldn't create QP" ibv_ud_pingpong -d $DEV_A
}

other_qps() {
	cannot "Couldn't create QP" ibv_uc_pingpong -d $DEV_A &&
		cannot 'Operation not supported' rdma_xclient -c x -s "$B4" &&
		cannot 'XRC Domain' ibv_xsrq_pingpong -d $DEV_A
}

without_cm() {
	spawn pp b timeout 20 ibv_rc_pingpong -d $DEV_B
	wait_listen b 18515 || { spawn_log pp; return 1; }
	on_a timeout 20 ibv_rc_pingpong -d $DEV_A "$B4"
	spawn_wait pp 10 && return 1
	spawn_log pp
	grep -q 'Failed to modify QP to RT[RS]' "$T_DIR/pp.log"
}

# left: whether programs have left neither objects nor connections.
left() {
	is_kiwarp && { nothing_left $DEV_A $DEV_B; return; }
	wait_for 10 no_objects $DEV_A && wait_for 10 no_objects $DEV_B
}

hosts() {
	# libfabric resolves the host's name, MPI needs 127.0.0.1.
	echo "$A4 $(hostname)" >>/etc/hosts && on_a ip link set lo up
}

{ load_kiwarp && topo_up && rdma_up && hosts; } || bail "no two hosts"
t_run "rstream: verified, not blocking" stream rstream "$B4" -S 65536 -C 40
t_run "rstream: verified, blocking, IPv6" stream rstream "$B6" -T b -S 10000 -C 50
t_run "riostream: verified, by RDMA Write" stream riostream "$B4" -S 65536 -C 40
t_run "rcopy: the file is the same" copied
t_run "a TCP program over rsockets, unchanged" preloaded
t_run "ucmatose: 20 connections at once" cmatose
t_run "rdma_server, rdma_xserver over RC" simple
t_run "cmtime: each of many connections is made" storm
t_run "qperf: RDMA Reads" qperf_to_b rc_rdma_read_bw
t_run "fio, RDMA Write" fio_rdma write
t_run "fio, RDMA Read" fio_rdma read
t_run "libfabric finds the device" providers
t_run "libfabric, messages: verified" pingpong verbs msg
t_run "MPI, two ranks: all kinds of messages, verified" mpi 2
if [ -n "${KIW_SOAK:-}" ]; then
	t_run "rstream, riostream: small and large" sizes
	t_run "qperf: Sends, latencies" qperf_to_b rc_bw rc_lat rc_rdma_read_lat rc_rdma_write_poll_lat
	t_run "libfabric, reliable datagrams: verified" datagram_pingpong
	t_run "MPI, four ranks" mpi 4
fi
t_run "datagrams and multicast: refused" datagrams
t_run "UC, XRC: refused" other_qps
t_run "no connection without rdma_cm: refused" without_cm
t_run "nothing is left" left
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
