#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the commands of README, the operator's guide and the manual, as they stand there
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-PAIRS: uml
# TOPOLOGY: pair
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/perftest.sh
. "$SELFTESTS/perftest.sh"

TABLE=/host/selftests/commands
# What the documents' hosts have and a guest lacks; a ping that ends
SHELL_OF_USER='sudo() { "$@"; }
ping() { command ping -c 5 -i 0.5 "$@"; }'
# Ports that rping and ib_write_bw listen on
SERVER_PORTS="7174 18515"
SERVER=

# Addresses, directories and files that the documents take for granted
prepare() {
	on_a ip addr add 192.0.2.1/24 dev eth0 && on_b ip addr add 192.0.2.2/24 dev eth0 &&
		mkdir -p /etc/kiwarp &&
		install -D -m 0755 /host/packaging/kiwarp-link /usr/lib/kiwarp/kiwarp-link
}

# command_of LINE: without the prompt, with names in place of what a user would fill in
command_of() {
	printf '%s\n' "$1" | sed -E 's/^(server|client)\$ //; /kiwarp_ip/s/\<NAME\>/kip0/
		s/\<NAME\>/kiw0/; s/\<INTERFACE\>/eth0/'
}

# before a|b LINE: a document that adds an IP interface begins without one
before() {
	case $2 in *"ip link add "*) ! ip_of "$1" || on "$1" ip link del kip0 ;; esac
}

ip_of() { on "$1" ip link show kip0 >/dev/null 2>&1; }

# run_on a|b LINE
run_on() { before "$@" && on "$1" timeout 60 bash -c "$SHELL_OF_USER"$'\n'"$(command_of "$2")"; }

b_listens() {
	local port
	for port in $SERVER_PORTS; do ! is_listening b "$port" || return 0; done
	return 1
}

start_server() {
	spawn server b timeout 100 bash -c "$(command_of "$1")"
	wait_for 20 b_listens && SERVER=1
}

# A link that was added is active after a moment. The other host's part of an IP interface is its
# address.
after() {
	case $2 in
	*"rdma link add "*) wait_for 5 rdma_is_up "$1" ;;
	*"ip addr add 10.9.0.1/24 "*) run_on b "${2//10.9.0.1/10.9.0.2}" ;;
	esac
}

rdma_is_up() { on "$1" rdma link show kiw0/1 | grep -q 'state ACTIVE'; }

# perftest_gave_up: perftest has moved its data, but sees from the guest's clocks that it cannot
# say how fast. It ends with an error then, and so does its server.
perftest_gave_up() { grep -q "^Can't produce a report" "$T_DIR/output"; }

# run_a LINE
run_a() {
	if [ -n "$SERVER" ]; then
		with_server "$1"
		return
	fi
	run_on a "$1" && after a "$1"
}

# with_server LINE: and then the server that it needs has ended well
with_server() {
	local status=0 ended=0
	SERVER=
	unrefused b run_on a "$1" >"$T_DIR/output" 2>&1 || status=$?
	cat "$T_DIR/output"
	spawn_wait server 20 || ended=$?
	! perftest_gave_up || return 0
	rping_ended "$status" "$T_DIR/output" && rping_ended "$ended" "$T_DIR/server.log" && return
	spawn_log server
	return 1
}

run_both() { run_on b "$1" && after b "$1" && run_on a "$1" && after a "$1"; }

topo_up || bail "no two hosts"
prepare || bail "no addresses"
mapfile -t lines < <(grep -v '^#' $TABLE)
for line in "${lines[@]}"; do
	command=${line#*: }
	case ${line%%: *} in
	a) t_run "$command" run_a "$command" ;;
	both) t_run "$command" run_both "$command" ;;
	server) t_run "$command" start_server "$command" ;;
	esac
done
done_testing
