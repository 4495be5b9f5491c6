#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: a container: own namespaces and user, and of /dev only what RDMA needs
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck disable=SC2046,SC2086,SC2317,SC2119 # names; t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

# Of the container's root, as the host sees it: another user than that of the files
USER_ID=65534
BOX=$T_DIR/box

# uverbs_of DEV: the name of its file
uverbs_of() { basename "$(dirname "$(grep -l -x "$1" /sys/class/infiniband_verbs/uverbs*/ibdev)")"; }

# root: makes the file system of the container: the programs of the host, and a /dev of its own with
# the files named.
root() {
	local dir
	rm -rf "$BOX"
	mkdir -p "$BOX"/{proc,sys,tmp,dev/infiniband} && chmod 755 "$T_DIR" && chmod 1777 "$BOX/tmp" || return 1
	for dir in usr bin sbin lib lib64 etc; do
		[ ! -e "/$dir" ] || { mkdir "$BOX/$dir" && echo "/$dir $dir"; } || return 1
	done >"$BOX.binds"
	for dir in null urandom "$@"; do : >"$BOX/dev/$dir" && echo "/dev/$dir dev/$dir"; done >>"$BOX.binds"
}

# inside a|b CMD...: in user, mount, PID and IPC namespaces of an ordinary user, in that host's network
# namespace. CMD is a shell command.
inside() {
	local host=$1
	shift
	# shellcheck disable=SC2016 # of the shell inside
	on "$host" setpriv --reuid $USER_ID --regid $USER_ID --clear-groups \
		unshare --user --map-root-user --mount --pid --ipc --fork --kill-child bash -c '
			box=$1
			mount --bind "$box" "$box" || exit 99
			while read -r from to; do mount --rbind "$from" "$box/$to" || exit 99; done <"$box.binds"
			mount -t proc proc "$box/proc" && mount --rbind /sys "$box/sys" &&
				cd "$box" && pivot_root . tmp && umount -l /tmp || exit 99
			shift
			exec bash -c "$1"' - "$BOX" "$*"
}

needed() { echo "infiniband/rdma_cm infiniband/$(uverbs_of "$1")"; }

# Nothing else of the host is there, and the user is nobody.
contained() {
	# shellcheck disable=SC2016 # expanded inside
	inside a 'for f in /dev/* /dev/*/*; do ! test -c $f || echo $f; done; id -u; cat /proc/self/uid_map; ! ls /host' | tee "$T_DIR/found"
	diff <(grep '^/dev/' "$T_DIR/found" | sort) \
		<(printf '/dev/%s\n' null urandom $(needed "$DEV_A") | sort) &&
		grep -q -E "^ *0 +$USER_ID +1\$" "$T_DIR/found"
}

# serves COMMAND COUNT: a server in the container, a client on the other host
serves() {
	local status=0 ended=0
	spawn_inside server a "$1" && wait_listen a 7174 || status=1
	rping_client on_b timeout 60 rping -c -v -a "$A4" -C "$2" -V || status=1
	spawn_wait server 20 || ended=$?
	rping_ended $ended "$T_DIR/server.log" || { spawn_log server; status=1; }
	return $status
}

spawn_inside() {
	local name=$1
	shift
	: >"$T_DIR/$name.log"
	inside "$@" >"$T_DIR/$name.log" 2>&1 </dev/null &
	echo $! >"$T_DIR/$name.pid"
}

# The other way round
connects() {
	local status=0
	spawn server b timeout 60 rping -s -a "$B4" -C 5 -V && wait_listen b 7174 || return 1
	rping_client inside a timeout 60 rping -c -v -a "$B4" -C 5 -V || status=1
	spawn_wait server 20
	return $status
}

# Of two devices the container has only one.
no_other_device() {
	inside a 'ibv_devices; ibv_devinfo' | tee "$T_DIR/devices"
	grep -q "hca_id:.*$DEV_A" "$T_DIR/devices" && ! grep -q "hca_id:.*$DEV_B" "$T_DIR/devices"
}

# Memory that is registered counts against the container's limit, which it cannot raise.
memlock() {
	local status=0
	spawn server b timeout 60 rping -s -a "$B4" -S 60000 -C 1 && wait_listen b 7174 || return 1
	refused 'reg_mr failed' '' inside a "ulimit -l 64; timeout 60 rping -c -a $B4 -S 60000 -C 1" || status=1
	spawn_stop server
	must_fail inside a 'ulimit -l 64 && ulimit -l 1000000' && return $status
}

# Root of the container is no administrator of devices.
no_administrator() {
	refused 'not permitted' '' inside a "rdma link delete $DEV_A" &&
		refused 'not permitted' '' inside a "rdma link add kiwx type $KIW_LINK_TYPE netdev lo" &&
		refused 'ermission denied' '' inside a "echo n >/sys/class/infiniband/$DEV_A/policy/crc" &&
		link_exists "$DEV_A"
}

# without FILE: without one of the two files nothing works, and programs say so.
without() {
	root "$1" && refused "$2" '' inside a "timeout 60 rping -c -a $B4 -C 1"
}

# The files are there, but the host has not given them to this user.
not_given() {
	local f status=0
	root $(needed "$DEV_A") && chmod 600 /dev/infiniband/* || return 1
	refused 'ermission denied|No such device|No IB|failed|rdma_create' '' \
		inside a "timeout 60 rping -c -a $B4 -C 1" || status=1
	for f in /dev/infiniband/*; do chmod 666 "$f"; done
	return $status
}

# by_plugin: as Kubernetes does: the plugin of the sample offers the files of each device on the host, a
# pod asks for one, and its command runs with these files
by_plugin() {
	local sample=/host/packaging/samples/kubernetes.yaml uverbs resource count files asked wanted command
	uverbs=$(uverbs_of "$DEV_A")
	python3 "$SELFTESTS/device_plugin.py" $sample >"$T_DIR/offers" && cat "$T_DIR/offers" || return 1
	[ "$(grep -c '^offer ' "$T_DIR/offers")" = 2 ] || return 1
	read -r _ resource count files < <(grep "/$uverbs " "$T_DIR/offers")
	read -r _ asked wanted command < <(grep '^pod ' "$T_DIR/offers")
	[ "$asked" = "$resource" ] && [ "$wanted" -le "$count" ] &&
		[ "$files" = "rw:/dev/infiniband/$uverbs rw:/dev/infiniband/rdma_cm" ] || return 1
	root ${files//rw:\/dev\//} && serves "exec timeout 60 ${command/192.0.2.2/$A4} -V" 10
}

{ load_kiwarp && topo_up && rdma_up; } || bail "no two hosts"
chmod 666 /dev/infiniband/rdma_cm /dev/infiniband/uverbs*
root $(needed "$DEV_A") || bail "no container"
t_run "the container has no other files" contained
t_run "a server in the container" serves "exec timeout 60 rping -s -a $A4 -C 5 -V" 5
t_run "a client in the container" connects
t_run "no other device" no_other_device
t_run "the limit of locked memory" memlock
t_run "root of the container is no administrator" no_administrator
t_run "without rdma_cm" without "infiniband/$(uverbs_of "$DEV_A")" 'rdma_cm|event channel'
t_run "without uverbs" without infiniband/rdma_cm 'No RDMA devices'
t_run "no permission for the files" not_given
t_run "what the device plugin for Kubernetes offers" by_plugin
t_run "nothing is left" nothing_left "$DEV_A" "$DEV_B"
rdma_down
topo_down
t_run "unload" unload_kiwarp
done_testing
