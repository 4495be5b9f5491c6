#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: AppArmor and SELinux decide whether a process gets a socket for RDMA
# TIMEOUT: 90
# KERNELS: 6.1 6.12
# CHECK-KERNELS: 6.1 6.12
# shellcheck disable=SC2317 # t_run calls them
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

SECURITY=/sys/kernel/security
SELINUX=/sys/fs/selinux
MODULE=

# mounted TYPE DIR
mounted() { mountpoint -q "$2" || mount -t "$1" "$1" "$2"; }

# The module that this kernel has been booted with, if it is one of the two
find_module() {
	mounted securityfs "$SECURITY" && MODULE=$(grep -o -w -e apparmor -e selinux "$SECURITY/lsm")
	: "${MODULE:=none}"
}

has_module() { [ "$MODULE" != none ] || { skip_this "no AppArmor, no SELinux"; return 1; }; }

# The policy stays loaded; without "enforce", nothing is refused.
enforce_apparmor() { apparmor_parser --skip-cache --replace "$SELFTESTS/sockets.apparmor"; }
enforce_selinux() {
	mounted selinuxfs "$SELINUX" && secilc -c 31 -o "$T_DIR/policy" -f /dev/null "$SELFTESTS/sockets.cil" &&
		cat "$T_DIR/policy" >"$SELINUX/load" && echo 1 >"$SELINUX/enforce"
}
enforce_none() { :; }

permit_apparmor() { apparmor_parser --remove "$SELFTESTS/sockets.apparmor"; }
permit_selinux() { echo 0 >"$SELINUX/enforce"; }
permit_none() { :; }

# spawn_as DOMAIN NAME HOST CMD...: as spawn, in this domain of the policy.
# shellcheck disable=SC2016 # for the inner shell
spawn_as() {
	local name=$2 host=$3 label="exec $1"
	[ "$MODULE" = apparmor ] || label=user:role:$1
	spawn "$name" "$host" bash -c 'printf %s "$1" >/proc/self/attr/exec && shift && exec "$@"' - \
		"$label" "${@:4}"
}

# The log says which module has refused a socket.
is_logged() {
	dmesg_since | grep -e 'apparmor="DENIED" operation="create".* profile="refused_t"' \
		-e 'avc: *denied *{ create }.*:refused_t.*tclass=tcp_socket'
}

# refused CALL HOST CMD...: CMD fails because CALL gets EACCES.
refused() {
	local call=$1 status=0
	has_module || return 0
	dmesg_mark refused
	spawn_as refused_t refused "${@:2}"
	spawn_wait refused 30 && status=1
	spawn_log refused
	spawn_log refused | grep "$call.*Permission denied" || status=1
	wait_for 5 is_logged || { echo "not in the log"; status=1; }
	return "$status"
}

refused_listener() { refused rdma_listen a timeout 20 rping -s -a "$A4" && ! is_listening a 7174; }

refused_connection() {
	local status=0
	spawn server a timeout 60 rping -s -P -a "$A4"
	wait_listen a 7174 || status=1
	refused rdma_connect b timeout 20 rping -c -a "$A4" -C 1 || status=1
	spawn_stop server
	return "$status"
}

# Both ends may create a socket. SELinux would refuse all else: bind, connect, send...
created() {
	local status=0 client=0
	has_module || return 0
	spawn_as created_t server a timeout 60 rping -s -P -a "$A4"
	wait_listen a 7174 || status=1
	spawn_as created_t client b timeout 30 rping -c -a "$A4" -v -C 5
	spawn_wait client 30 || client=$?
	spawn_log client
	rping_ended "$client" "$T_DIR/client.log" && rping_counted "$T_DIR/client.log" -C 5 || status=1
	spawn_stop server
	return "$status"
}

# of_python DOMAIN STATUS: of a process that binds a socket itself
of_python() {
	local got
	spawn_as "$1" python b python3 -c "import socket
s = socket.socket()
s.bind(('$B4', 0))"
	spawn_wait python 20
	got=$?
	spawn_log python
	[ "$got" = "$2" ]
}

# The policy refuses other sockets what it is meant to refuse.
policy_works() {
	has_module || return 0
	of_python refused_t 1 || return 1
	case $MODULE in
	apparmor) of_python created_t 0 ;;
	selinux) of_python created_t 1 ;;
	esac
}

# ------------------------------------------------------------------------------

find_module
{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no devices"
"enforce_$MODULE" >"$T_DIR/enforce" 2>&1 || bail "no policy: $(cat "$T_DIR/enforce")"
t_run "a socket of Python" policy_works
t_run "a listener is refused" refused_listener
t_run "a connection is refused" refused_connection
t_run "sockets are created" created
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
t_run "the policy goes" "permit_$MODULE"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
