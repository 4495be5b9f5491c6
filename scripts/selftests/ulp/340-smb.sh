#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: SMB Direct, the kernel's own client and server
# TIMEOUT: 90
# KERNELS: uml uml-debug
# CHECK-KERNELS: uml-debug
# CHECK-PAIRS: uml
# TOPOLOGY: any
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"

SHARE=$T_DIR/share
MNT=$T_DIR/mnt
CONF=$T_DIR/ksmbd.conf
USERS=$T_DIR/ksmbdpwd.db
# By default the client uses the largest size that the device can register. Memory that is not
# page-aligned then needs a page more, and the client retries such an operation forever.
SIZES=rsize=1048576,wsize=1048576
is_kiwarp || SIZES=rsize=524288,wsize=524288

# Over iWARP, SMB Direct has its own port, 5445, because SMB over TCP has the usual one.
server() {
	on_b mkdir -p "$SHARE" && on_b mount -t tmpfs tmpfs "$SHARE" && put b "[global]
	netbios name = KIW
	server min protocol = SMB3_11
[s]
	path = $SHARE
	read only = no
	force user = root
	force group = root" "$CONF" && on_b ksmbd.adduser -a u -p secret -i "$USERS" &&
		on_b ksmbd.mountd -c "$CONF" -u "$USERS" && wait_listen b 5445 20
}

smb_mount() {
	mkdir -p "$MNT" && on_a timeout 60 mount -t cifs "//$B4/s" "$MNT" \
		-o "rdma,vers=3.1.1,user=u,pass=secret,hard,cache=none,echo_interval=10,closetimeo=0,$SIZES"
}

# A thread of the client, which ends later, uses its module.
smb_umount() { timeout 60 umount "$MNT" && wait_gone 20 on_a pgrep -x cifsd; }

same_sum() { [ "$(on_b sha256sum "$SHARE/big")" = "${1%-}$SHARE/big" ]; }

files() {
	head -c 3000000 /dev/urandom >"$T_DIR/big" && cp "$T_DIR/big" "$MNT/big" &&
		cmp "$T_DIR/big" "$MNT/big" && same_sum "$(sha256sum <"$T_DIR/big")"
}

# Whether the client has registered memory, and the server has read and written it
over_rdma() {
	dmesg | grep -q 'RDMA transport established' || { echo "not over RDMA"; return 1; }
	is_kiwarp || return 0
	[ "$(counter_of b tx_writes)" -gt 0 ] && [ "$(counter_of b tx_read_requests)" -gt 0 ] &&
		[ "$(counter_of a fast_registered)" -gt 0 ]
}

server_ends() {
	on_b ksmbd.control -s && wait_gone 20 on_b pgrep ksmbd.mountd && on_b umount "$SHARE"
}

faults() {
	t_on "uml pair" "the link is down for a while" under link_down_for "$FAULT_S"
	t_on "uml uml-debug" "loss and disorder" under loss_for "$FAULT_S"
	t_on "" "silence" under silence_for "$FAULT_S"
}

# A connection ends between operations, and the client makes another. It must not end during
# operations or silently: Documentation/ulp/smb.rst has what cifs of 6.12 does then.
ends() {
	"$@" && wait_for 60 cmp "$T_DIR/big" "$MNT/big" && fio_verify "$MNT/fio" 1M --bsrange=4k-128k
}

# Each gets half of a soak's time.
half() {
	local KIW_SOAK=${KIW_SOAK:+$((KIW_SOAK / 2))}
	again_and_again "$@"
}

endings() {
	t_on "" "the server's device goes and comes" ends device_again b
	t_on "" "the client's device goes and comes" ends device_again a
}

ulp_up ksmbd cifs || bail "no two hosts"
t_run "a server" server
t_run "a client" smb_mount
mountpoint -q "$MNT" || bail "nothing is mounted"
t_run "files" files
t_run "over RDMA in both directions" over_rdma
t_on "uml pair" "fio on a file" fio_verify "$MNT/fio" 4M --bsrange=4k-1M
truncate -s 8M "$MNT/io"
io_start "$MNT/io" 8M || not_ok "I/O begins" "$(spawn_log io)"
half faults
io_ends
half endings
t_run "unmount" smb_umount
t_run "the server ends" server_ends
ulp_down
done_testing
