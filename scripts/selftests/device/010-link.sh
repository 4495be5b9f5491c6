#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: rdma link add and delete, what they refuse, module parameters
# TIMEOUT: 40
# CHECK-KERNELS: uml-debug 6.1
# shellcheck disable=SC2317,SC2119 # t_run calls them; no arguments meant
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"

PARAMS=/sys/module/kiwarp/parameters

link_add() { rdma link add "$1" type "$KIW_LINK_TYPE" netdev "$2"; }

kernel_is() { printf '%s\n%s\n' "$1" "$(uname -r)" | sort -C -V; }

# --- the link type ------------------------------------------------------------

autoload() {
	if module_is_loaded; then echo "loaded already"; return 1; fi
	link_add kiw0 d0 && module_is_loaded && link_shows kiw0 'netdev d0'
}

delete_idle() {
	rdma link delete kiw0 || return 1
	if link_exists kiw0; then return 1; fi
	refused 'No such device|does not exist|Wrong device' '' rdma link delete kiw0
}

add_delete() {
	local i
	for i in $(seq 10); do
		link_add kiw0 d0 && link_exists kiw0 && rdma link delete kiw0 || return 1
		if link_exists kiw0; then echo "still there, round $i"; return 1; fi
	done
}

two_devices() {
	link_add kiw0 d0 && link_add kiw1 d1 || return 1
	rdma link delete kiw0 && link_shows kiw1 'netdev d1' &&
		rdma link delete kiw1 && link_add kiw0 d0
}

# --- what is refused ------------------------------------------------------------

bad_names() {
	local name long
	printf -v long 'k%.0s' {1..65}
	for name in 'a/b' 'a b' . .. 'a!b' 'a:b' $'\xff'; do
		refused 'Invalid argument' 'bad device name' link_add "$name" d1 || return 1
	done
	for name in '' 'a%d' "$long"; do
		refused 'Invalid argument|out of range' '' link_add "$name" d1 || return 1
	done
	if rdma link show | grep -q 'netdev d1'; then rdma link show; return 1; fi
}

longest_name() {
	local name
	printf -v name 'k%.0s' {1..63}
	link_add "$name" d1 && link_exists "$name" && rdma link delete "$name"
}

unprivileged() {
	local -a nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	local -a weak=(capsh --drop=cap_net_admin --)
	refused 'not permitted' '' "${nobody[@]}" rdma link add kiw1 type "$KIW_LINK_TYPE" netdev d1 &&
		refused 'not permitted' '' "${nobody[@]}" rdma link delete kiw0 &&
		refused 'not permitted' '' "${weak[@]}" -c "rdma link add kiw1 type $KIW_LINK_TYPE netdev d1" &&
		refused 'not permitted' '' "${weak[@]}" -c "rdma link delete kiw0" &&
		refused 'not permitted' '' unshare -Urn \
			rdma link add kiw1 type "$KIW_LINK_TYPE" netdev lo &&
		link_exists kiw0 && ! link_exists kiw1
}

# --- kinds of netdevs ------------------------------------------------------------

# serves NETDEV: a link can be added and removed.
serves() {
	link_add kiw1 "$1" && link_shows kiw1 "netdev $1( |\$)" && ibv_devinfo -d kiw1 &&
		rdma link delete kiw1 && ! link_exists kiw1
}

# kind NETDEV IP-LINK-ARGS...: makes it, serves it, removes it.
kind() {
	local name=$1
	shift
	ip link add "$@" || return 1
	ip link set "$name" up && serves "$name" && ip link del "$name"
}

# master NETDEV KIND...: serves it, but not its port
master() {
	local name=$1
	shift
	ip link add "$name" type "$@" && ip link add p0 type dummy &&
		ip link set p0 master "$name" && ip link set "$name" up || return 1
	refused 'not supported' 'p0: is a port of another interface' link_add kiw1 p0 &&
		serves "$name" && ip link del "$name" && ip link del p0
}

# Without this option, the module makes a bond when it is loaded.
bond() { modprobe bonding max_bonds=0 && master bo0 bond mode active-backup; }

# Without a hardware address, rdma_cm of old kernels cannot find the device.
addressless() {
	if kernel_is 6.12; then
		serves "$1"
	else
		refused 'not supported' "$1: .*hardware address.*needs Linux 6.12" link_add kiw1 "$1"
	fi
}

tun() {
	modprobe tun && wait_for 5 [ -e /dev/net/tun ] && ip tuntap add t0 mode tun && ip link set t0 up && addressless t0 &&
		ip tuntap del t0 mode tun
}

ipip() {
	ip link add i0 type ipip local 10.9.9.1 remote 10.9.9.2 && ip link set i0 up &&
		addressless i0 && ip link del i0
}

# A tap can be made to look like anything, here like IEEE 802.15.4 (804).
strange() {
	modprobe tun && wait_for 5 [ -e /dev/net/tun ] && ip tuntap add t0 mode tap || return 1
	python3 - <<-'END' || return 1
	import fcntl, os, struct
	TUNSETIFF, TUNSETLINK, IFF_TAP_NO_PI = 0x400454ca, 0x400454cd, 0x1002
	fd = os.open("/dev/net/tun", os.O_RDWR)
	fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"t0", IFF_TAP_NO_PI))
	fcntl.ioctl(fd, TUNSETLINK, 804)
	END
	refused 'not supported' 't0: .*does not run on .* \(804\)' link_add kiw1 t0 &&
		ip tuntap del t0 mode tap
}

# --- limits ---------------------------------------------------------------------

# The limits are those of device.h, and 0 for what is not supported.
limits() {
	local name value bad=0 spare=0 atomics=ATOMIC_NONE windows=0
	# One slot of each ring stays empty.
	[ "$KIW_LINK_TYPE" != kiwarp-ext ] || spare=1 atomics=ATOMIC_GLOB windows=1048576
	ibv_devinfo -v -d kiw0 >"$T_DIR/devinfo" || return 1
	while read -r name value; do
		grep -q -E "^[[:space:]]*$name:[[:space:]]*$value( |\$)" "$T_DIR/devinfo" && continue
		echo "not so: $name $value"
		bad=1
	done <<-END
	transport iWARP
	max_qp 65536
	max_qp_wr $((32768 - spare))
	max_sge 6
	max_sge_rd 6
	max_cq 65536
	max_cqe $((1048576 - spare))
	max_mr 1048576
	max_pd 65536
	max_qp_rd_atom 128
	max_qp_init_rd_atom 128
	max_res_rd_atom 8388608
	max_srq 65536
	max_srq_wr $((32768 - spare))
	max_srq_sge 6
	max_ee_rd_atom 0
	atomic_cap $atomics
	max_mw $windows
	max_ah 0
	max_raw_ethy_qp 0
	max_mcast_grp 0
	max_mcast_qp_attach 0
	phys_port_cnt 1
	num_comp_vectors $(nproc)
	max_msg_sz 0x7fffffff
	gid_tbl_len 1
	link_layer Ethernet
	END
	[ "$bad" = 0 ] || cat "$T_DIR/devinfo"
	return "$bad"
}

# A locally administered EUI-64 of the hardware address, with the index of the interface in the
# middle, because a VLAN has the address of its parent.
guid() {
	local got
	ip link add d2 index 4660 address 00:1b:2c:3d:4e:5f type dummy && link_add kiw1 d2 || return 1
	got=$(cat /sys/class/infiniband/kiw1/node_guid)
	rdma link delete kiw1 && ip link del d2 || return 1
	[ "$got" = 021b:2c12:343d:4e5f ] || { echo "$got"; return 1; }
}

# The limits are real: values up to them are granted, larger ones are refused.
true_limits() {
	python3 - kiw0 <<-'END'
	import sys
	from pyverbs.cq import CQ
	from pyverbs.device import Context
	from pyverbs.pd import PD
	from pyverbs.pyverbs_error import PyverbsError
	from pyverbs.qp import QP, QPCap, QPInitAttr
	from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
	import pyverbs.enums as e

	context = Context(name=sys.argv[1])
	attr = context.query_device()
	pd = PD(context)
	cq = CQ(context, 16)
	bad = 0


	def qp(**cap):
	    caps = dict(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
	    caps.update(cap)
	    return QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(**caps)))


	def can(make):
	    try:
	        made = make()
	    except PyverbsError as ex:
	        print(ex)
	        return False
	    made.close()
	    return True


	def limit(name, value, make):
	    global bad
	    for n, expected in ((value, True), (value + 1, False)):
	        if can(lambda: make(n)) != expected:
	            print("limit %s is %d, but %d: %s" % (name, value, n, not expected))
	            bad = 1


	limit("max_cqe", attr.max_cqe, lambda n: CQ(context, n))
	limit("max_qp_wr, send", attr.max_qp_wr, lambda n: qp(max_send_wr=n))
	limit("max_qp_wr, receive", attr.max_qp_wr, lambda n: qp(max_recv_wr=n))
	limit("max_sge, send", attr.max_sge, lambda n: qp(max_send_sge=n))
	limit("max_sge, receive", attr.max_sge, lambda n: qp(max_recv_sge=n))
	limit("max_srq_wr", attr.max_srq_wr, lambda n: SRQ(pd, SrqInitAttr(SrqAttr(max_wr=n))))
	limit("max_srq_sge", attr.max_srq_sge,
	      lambda n: SRQ(pd, SrqInitAttr(SrqAttr(max_wr=4, max_sge=n))))
	sys.exit(bad)
	END
}

# --- module parameters ------------------------------------------------------------

# Values that each parameter refuses, and the message in the log.
bad_params() {
	cat <<-'END'
	mpa_rev 0 from 1 to 2
	mpa_rev 3 from 1 to 2
	mpa_rev -1 from 1 to 2
	mpa_rev two from 1 to 2
	startup_ms 99 from 100 to 60000
	startup_ms 60001 from 100 to 60000
	startup_ms 4294967396 from 100 to 60000
	max_half_open 0 from 1 to 65535
	max_half_open 65536 from 1 to 65535
	crc maybe y or n
	p2p 2 y or n
	END
}

params() { cat "$PARAMS"/{mpa_rev,startup_ms,max_half_open,crc,p2p} | paste -sd' '; }
params_are() { params && [ "$(params)" = "$1" ]; }

params_at_load() {
	local name value text
	while read -r name value text; do
		refused 'Invalid argument' "kiwarp: $name must be .*$text" \
			modprobe kiwarp "$name=$value" || return 1
		if module_is_loaded; then echo "loaded with $name=$value"; return 1; fi
	done < <(bad_params)
	modprobe kiwarp mpa_rev=1 startup_ms=100 max_half_open=65535 crc=n p2p=0 &&
		params_are "1 100 65535 N N" && modprobe -r kiwarp
}

write_param() { bash -c "echo '$2' >$PARAMS/$1"; }

params_at_run_time() {
	local name value text before
	before=$(params)
	while read -r name value text; do
		refused 'Invalid argument' "kiwarp: $name must be .*$text" \
			write_param "$name" "$value" || return 1
		params_are "$before" || return 1
	done < <(bad_params)
	for value in 60000 100 10000; do
		write_param startup_ms "$value" && params_are "${before/ 10000 / $value }" || return 1
	done
}

# ------------------------------------------------------------------------------

if module_is_loaded; then bail "$KIW_LINK_TYPE is loaded"; fi
for i in d0 d1; do
	if ! ip link add $i type dummy || ! ip link set $i up; then bail "no dummy"; fi
done

t_run "rdma link add loads the module" autoload
t_run "delete of an idle device, and of none" delete_idle
t_run "10 times add and delete" add_delete
t_run "two devices on two netdevs" two_devices
t_run "a second device on a netdev" refused 'File exists' 'd0: has a kiwarp device already' \
	link_add kiw1 d0
t_run "a name that is taken" refused 'File exists' 'RDMA device kiw0 already' link_add kiw0 d1
t_run "an unknown netdev" refused 'No such device' '' link_add kiw1 nosuch0
t_run "bad names" bad_names
t_run "the longest name" longest_name
t_run "without privilege" unprivileged
t_run "ibv_devinfo shows the limits" limits
t_run "each limit can be reached and not exceeded" true_limits
t_run "the GUID" guid

t_run "dummy" serves d1
t_run "a netdev that is down" kind d2 d2 type dummy
t_run "veth" kind v0 v0 type veth peer name v1
t_run "VLAN" kind d1.7 link d1 name d1.7 type vlan id 7
t_run "macvlan" kind m0 link d1 name m0 type macvlan
t_run "bridge, and not its port" master br0 bridge
t_run "bond, and not its port" bond
t_run "team, and not its port" master te0 team
t_run "loopback" addressless lo
t_run "tun" tun
t_run "IP tunnel" ipip
t_run "a netdev of an unsupported kind" strange

t_run "module parameters: defaults" params_are "2 10000 256 Y Y"
t_run "module parameters: out of range at run time" params_at_run_time
t_run "the last goes" rdma link delete kiw0
t_run "unload" unload_kiwarp
t_run "module parameters: out of range at load" params_at_load
ip link del d0
ip link del d1
done_testing
