#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: the peer's machine is killed and boots again; what it had reported is seen
# TIMEOUT: 120
# KERNELS: uml uml-debug 6.12
# TOPOLOGY: pair
# DMESG-ALLOW: kiwarp-test: WARNING: on purpose
#
# The peer is silent, and TCP's keepalive notices: a connection to it ends although nothing is in
# flight. Also tests the test bed: the logs of the killed guest are checked, and its disk keeps its
# contents.
# shellcheck disable=SC2119 # no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

rping_works() { rping_to b "$B4" -C 5 -S 1000; }

connected() { on_a ss -Htn state established 'dport = 7174' | grep .; }

# A client that is stopped amid its traffic. Host a notices a silent peer after some seconds.
begin() {
	tcp_waits a 4 1 4 15
	spawn server b rping -s -a "$B4" -V -S 1000
	wait_listen b 7174 && spawn client a stdbuf -oL rping -c -a "$B4" -v -V -S 1000 || return 1
	wait_for 20 grep -q 'ping data' "$T_DIR/client.log" || { spawn_log client; return 1; }
	kill -STOP "$(cat "$T_DIR/client.pid")" && connected
}

write_disk() { on_b sh -c "echo kept | dd of=$DISK_B conv=fsync status=none"; }
disk_is_kept() { [ "$(on_b head -c 4 "$DISK_B")" = kept ]; }

killed() {
	on_b sh -c 'echo "kiwarp-test: WARNING: on purpose" >/dev/kmsg' && kill_b &&
		must_fail on_a ping -q -c 1 -W 1 "$B4"
}

# Messages in the log of the killed guest count as reports, unless they are allowed.
report_is_seen() {
	must_fail _check_killed '' && _check_killed 'WARNING: on purpose'
}

noticed() { wait_gone 60 connected && tcp_waits a; }

again() {
	restart_b && must_fail on_b test -e /sys/module/kiwarp && disk_is_kept && load_kiwarp &&
		rdma_add b && wait_for 5 rdma_is_active b && topo_up
}

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
t_run "traffic" begin
t_run "something on the peer's disk" write_disk
t_run "the peer is killed" killed
t_run "that is noticed by a connection" noticed
t_run "its reports are not lost" report_is_seen
t_run "it boots again, and has its disk" again
spawn_stop client
spawn_stop server
t_run "rping with the new one" rping_works
t_run "nothing is left of the connection" nothing_left "$DEV_A"
rdma_down
t_run "unload" unload_kiwarp
done_testing
