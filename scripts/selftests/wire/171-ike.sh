#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: IPsec with the keys of strongSwan, as in the example of security.rst
# TIMEOUT: 120
# KERNELS: uml 6.1
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/encrypted.sh
. "$SELFTESTS/encrypted.sh"

CHARON=/usr/lib/ipsec/charon
BETWEEN="(host $A4 and host $B4)"

# --- the daemons --------------------------------------------------------------------

# example HOST: the configuration that the document shows for host a, with the addresses exchanged
# on host b
example() {
	sed -n '/^    connections {$/,/^    }$/p; /^    secrets {$/,/^    }$/p' /host/security.rst |
		case $1 in
		a) cat ;;
		b) sed "s/$A4/HERE/; s/$B4/$A4/; s/HERE/$B4/" ;;
		esac
}

# swan HOST COMMAND...: what an administrator of that host says
swan() {
	local host=$1
	shift
	on "$host" timeout 30 swanctl "$@" --uri "unix://$T_DIR/vici-$host"
}

answers() { swan "$1" --stats; }

# daemon_up HOST: charon with Debian's plugins. It has one file for its process ID, which two hosts
# of one guest would share.
daemon_up() {
	local host=$1
	cat >"$T_DIR/daemon-$host.conf" <<-END
	charon {
	    load_modular = yes
	    filelog {
	        stderr {
	            default = 1
	            flush_line = yes
	        }
	    }
	    plugins {
	        include /etc/strongswan.d/charon/*.conf
	        kernel-netlink {
	            xfrm_acq_expires = 5
	        }
	        vici {
	            socket = unix://$T_DIR/vici-$host
	        }
	    }
	}
	END
	spawn "charon-$host" "$host" env "STRONGSWAN_CONF=$T_DIR/daemon-$host.conf" unshare -m \
		sh -c "mount -t tmpfs none /run && exec $CHARON"
	wait_for 20 answers "$host" || { spawn_log "charon-$host"; return 1; }
	example "$host" >"$T_DIR/$host.conf"
	grep -q "local_addrs = $([ "$host" = a ] && echo "$A4" || echo "$B4")\$" "$T_DIR/$host.conf" ||
		{ cat "$T_DIR/$host.conf"; return 1; }
	swan "$host" --load-all --file "$T_DIR/$host.conf"
}

# waits_for_tcp HOST: the policies are there, no keys are.
waits_for_tcp() {
	on "$1" ip xfrm policy list
	[ "$(on "$1" ip xfrm policy list | grep -c 'proto tcp')" -ge 2 ] &&
		! on "$1" ip xfrm state list | grep spi
}

both_up() {
	daemon_up a && daemon_up b && waits_for_tcp a && waits_for_tcp b
}

both_down() { spawn_stop charon-a; spawn_stop charon-b; }

# keys HOST: prints the SPIs in use. 0 is that of a state that only waits for keys.
keys() {
	on "$1" ip xfrm state list | sed -n 's/.*proto esp spi \(0x[0-9a-f]*\) .*/\1/p' |
		grep -v -x 0x00000000 | sort
}

# --- the wire -----------------------------------------------------------------------

in_clear() { seen 'tcp' | head -n 5 | grep .; }

# --- cases --------------------------------------------------------------------------

# The first SYN makes the hosts agree on keys, and is lost meanwhile.
first_packet() {
	local n
	if ! capture || ! rping_to b "$B4" -C 10 -S 5000 || ! rping_to a "$A4" -C 10 -S 60000 ||
		! capture_end; then
		spawn_log charon-a | tail -n 30
		return 1
	fi
	n=$(seen 'ip proto 50' | wc -l)
	echo "$n packets of ESP"
	! in_clear && [ "$n" -gt 100 ] && seen 'udp port 500' | grep -q . &&
		[ "$(keys a | wc -l)" -ge 2 ]
}

# changed HOST: none of the SPIs in $T_DIR/keys is in use any more, and others are.
changed() {
	local old
	old=$(paste -sd'|' "$T_DIR/keys")
	[ "$(keys "$1" | grep -c -v -x -E "$old")" -ge 2 ] && ! keys "$1" | grep -q -x -E "$old"
}

new_keys() {
	local status=1
	spawn server b timeout "$(at_most 30)" rping -s -a "$B4" -S 100
	wait_listen b 7174 || { spawn_stop server; return 1; }
	spawn client a timeout "$(at_most 30)" rping -c -V -a "$B4" -S 100
	keys a >"$T_DIR/keys"
	wait_for 10 moves && swan a --rekey --child rdma && wait_for 20 changed a && moves
	wait_for 10 moves && spawn_running client && changed a && status=0
	spawn_stop client
	spawn_stop server
	[ "$status" = 0 ] || { keys a; cat "$T_DIR/keys"; spawn_log charon-a | tail -n 20; }
	return "$status"
}

# Host b has another secret: no keys, no connection, and nothing in clear.
other_secret() {
	local status
	sed 's/secret = .*/secret = "another one"/' "$T_DIR/b.conf" >"$T_DIR/other.conf"
	swan b --load-creds --clear --file "$T_DIR/other.conf" && swan a --terminate --ike rdma &&
		capture || return 1
	spawn server b timeout 80 rping -s -a "$B4" -P
	wait_listen b 7174 || { spawn_stop server; return 1; }
	on_a timeout 60 rping -c -a "$B4" -C 1
	status=$?
	spawn_stop server
	capture_end && ! in_clear && ! seen 'ip proto 50' | grep . || return 1
	echo "status $status"
	[ "$status" != 0 ] && [ "$status" != 124 ] && seen 'udp port 500' | grep -q . &&
		[ -z "$(keys a)" ]
}

no_states() { ! on "$1" ip xfrm state list | grep spi; }

# As long as the kernel waits for keys that it has asked for, it does not ask again: for 165
# seconds, if the configuration did not say otherwise.
same_secret() {
	swan b --load-creds --clear --file "$T_DIR/b.conf" || return 1
	wait_for 20 no_states a || { on_a ip xfrm state list; return 1; }
	rping_to b "$B4" -C 10 -S 5000
}

[ -x $CHARON ] || bail "the root image has no strongSwan"
{ load_kiwarp && topo_up 1500 && rdma_up; } || bail "no two hosts"
for module in esp4 xfrm_user; do modprobe -q "$module"; done
t_run "both hosts run the example of security.rst" both_up
t_run "the first packet brings the keys, and is followed by nothing in clear" first_packet
t_run "new keys while a connection is in use" new_keys
for dev in $DEV_A $DEV_B; do echo 3000 >"/sys/class/infiniband/$dev/policy/startup_ms"; done
t_run "another secret: no connection" other_secret
for dev in $DEV_A $DEV_B; do echo 10000 >"/sys/class/infiniband/$dev/policy/startup_ms"; done
t_run "the same secret again" same_secret
both_down
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
