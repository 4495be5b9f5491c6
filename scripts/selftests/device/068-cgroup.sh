#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: sockets belong to their process: its cgroup, BPF programs and user
# TIMEOUT: 90
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml-debug 6.1
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

GROUP=/sys/fs/cgroup/kiwarp-068

group() {
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control && mkdir "$GROUP"
}

# spawn_grouped NAME HOST CMD...: as spawn, in the cgroup.
# shellcheck disable=SC2016 # for the inner shell
spawn_grouped() {
	spawn "$1" "$2" bash -c 'echo $$ >"$1"/cgroup.procs && shift && exec "$@"' - "$GROUP" "${@:3}"
}

# calls [OPTIONS...]: a client on host b connects and is served.
calls() { rping_client on_b timeout 30 rping -c -a "$A4" -v -C 2 "$@"; }

# --- memory ---------------------------------------------------------------------

charged() { sed -n 's/^sock //p' "$GROUP/memory.stat"; }
is_charged() { [ "$(charged)" -gt 0 ]; }

# pays WHO: one end of a connection that sends both ways is in the cgroup. The network is slow, so
# that there is always something in TCP's queues.
pays() {
	local server=spawn client=spawn status=0
	eval "$1=spawn_grouped"
	$server server a ib_write_bw -b -R -F -d "$DEV_A" -D 60 && wait_listen a 18515 || return 1
	unrefused a writes "$client" || { echo "not charged: $(charged)"; status=1; }
	spawn_stop client
	spawn_stop server
	wait_gone 10 is_charged || { echo "still charged: $(charged)"; status=1; }
	return "$status"
}

# writes SPAWN
writes() {
	"$1" client b ib_write_bw -b -R -F -d "$DEV_B" -D 60 "$A4"
	wait_for 20 is_charged
}

slow() {
	on_a tc qdisc add dev "$NETDEV" root netem delay 20ms &&
		on_b tc qdisc add dev "$NETDEV" root netem delay 20ms
}

fast() {
	on_a tc qdisc del dev "$NETDEV" root
	on_b tc qdisc del dev "$NETDEV" root
}

# --- programs ---------------------------------------------------------------------

# attach deny|sockmap
attach() {
	mkfifo "$T_DIR/hold" 2>/dev/null
	exec {HOLD}<>"$T_DIR/hold"
	python3 "$SELFTESTS/bpf.py" "$1" "$GROUP" <"$T_DIR/hold" >"$T_DIR/bpf.log" 2>&1 {HOLD}>&- &
	BPF=$!
	wait_for 60 grep -q -e attached -e 'no BPF' "$T_DIR/bpf.log"
	cat "$T_DIR/bpf.log"
	grep -q attached "$T_DIR/bpf.log" || { detach; return 1; }
}

# After attach: this kernel has no BPF. Otherwise the case has failed.
without_bpf() { grep -q 'no BPF' "$T_DIR/bpf.log" && skip_this "no BPF"; }

detach() {
	exec {HOLD}>&-
	rm "$T_DIR/hold"
	wait_gone 10 runs "$BPF" && cat "$T_DIR/bpf.log"
}

# denied TEXT HOST CMD...: CMD fails with TEXT because the cgroup's program denies sockets.
denied() {
	local status=0 text=$1
	shift
	spawn_grouped denied "$@"
	spawn_wait denied 30 && status=1
	spawn_log denied
	spawn_log denied | grep -q "$text.*Operation not permitted\|$text.* -1\|$text.*: 1" || status=1
	return "$status"
}

asks_bpf() {
	local status=0
	attach deny || { without_bpf; return; }
	denied rdma_listen a timeout 20 rping -s -a "$A4" || status=1
	is_listening a 7174 && status=1
	spawn server a timeout 60 rping -s -P -a "$A4"
	wait_listen a 7174 || status=1
	denied rdma_connect b timeout 20 rping -c -a "$A4" -C 1 || status=1
	calls || status=1
	spawn_stop server
	detach
	return "$status"
}

# No BPF program can take a stream of the driver, and connections work as without one.
sockmap() {
	local status=0 n
	attach sockmap || { without_bpf; return; }
	spawn_grouped server a timeout 60 rping -s -P -a "$A4"
	wait_listen a 7174 || status=1
	for n in 1 2 3; do
		calls -V || status=1
	done
	spawn_stop server
	detach
	grep -q '^streams 3 result -16$' "$T_DIR/bpf.log" || status=1
	return "$status"
}

# The stream of a caller that was never accepted by a program ends as well.
sockmap_half_open() {
	local status=0
	attach sockmap || { without_bpf; return; }
	spawn_grouped server a timeout 60 rping -s -P -a "$A4"
	wait_listen a 7174 || status=1
	on_b python3 -c "import socket
s = socket.create_connection(('$A4', 7174))
s.send(b'x' * 100)
try:
    s.recv(1)
except ConnectionResetError:
    pass" || status=1
	spawn_stop server
	detach
	return "$status"
}

# --- users ------------------------------------------------------------------------

USER_ID=20000

user() { spawn "$1" "$2" setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups "${@:3}"; }
fpdus() { counter "$DEV_A" tx_fpdus; }
has_moved() { [ "$(fpdus)" -gt $(($1 + 20)) ]; }
moves() { wait_for "$1" has_moved "$(fpdus)"; }
prohibit() { ip -n a rule "$1" pref 10 uidrange "$2-$2" to "$B4" prohibit; }

# belongs: host a's stream to b is the user's.
belongs() {
	local status=0
	moves 10 || { echo "no traffic"; return 1; }
	on_a ss -Htne dst "$B4" | grep "uid:$USER_ID " || { on_a ss -Htne; status=1; }
	prohibit add 0 || return 1
	moves 10 || { echo "stopped by a rule for root"; status=1; }
	prohibit del 0
	prohibit add "$USER_ID" || return 1
	wait_gone 10 moves 1 || { echo "not stopped by a rule for the user"; status=1; }
	prohibit del "$USER_ID"
	moves 20 || { echo "does not go on"; status=1; }
	return "$status"
}

# owned SERVER HOST CLIENT HOST ADDRESS: by whom they are spawned, one of them as the user.
owned() {
	local status=0
	chmod a+rw /dev/infiniband/* || return 1
	"$1" server "$2" timeout 60 rping -s -a "$5" -P
	wait_listen "$2" 7174 || return 1
	"$3" client "$4" timeout 60 rping -c -a "$5" -C 100000000
	belongs || status=1
	spawn_stop client
	spawn_stop server
	return "$status"
}

is_left() { on_a ss -Htn state all | grep -v -i time-wait | grep .; }

end_group() { wait_for 10 rmdir "$GROUP"; }

# ------------------------------------------------------------------------------

{ load_kiwarp && topo_up 1500 && rdma_up && group; } || bail "no devices"
slow || bail "no netem"
t_run "an accepted connection is charged" pays server
t_run "a connecting one is charged" pays client
fast
t_run "a socket is made by its process" asks_bpf
t_run "a program that takes accepted streams" sockmap
t_run "a program that takes streams, and no Request" sockmap_half_open
t_run "a rule for the user of a stream: connected" owned spawn b user a "$B4"
t_run "a rule for the user of a stream: accepted" owned user a spawn b "$A4"
t_run "no socket is left" wait_gone 10 is_left
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
t_run "the cgroup ends" end_group
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
