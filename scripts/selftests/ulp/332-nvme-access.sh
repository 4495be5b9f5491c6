#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# DESCRIPTION: NVMe over RDMA: discovery, connect-all, and DH-HMAC-CHAP
# TIMEOUT: 60
# KERNELS: uml uml-debug 6.1 6.12
# CHECK-KERNELS: uml
# shellcheck source=scripts/selftests/lib/rc
. "$(dirname "$0")/../lib/rc"
# shellcheck source=scripts/selftests/lib/rc-device
. "$SELFTESTS/rc-device"
# shellcheck source=scripts/selftests/lib/rc-ulp
. "$SELFTESTS/rc-ulp"
# shellcheck source=scripts/selftests/lib/rc-nvme
. "$SELFTESTS/rc-nvme"

HOST_DIR=$NVMET/hosts/$HOST_NQN
SUBSYSTEM=$NVMET/subsystems/$NQN

discovered() {
	on_a timeout 60 nvme discover -t rdma -a "$B4" -s 4420 --hostnqn "$HOST_NQN" \
		--hostid "$HOST_ID" | tee "$T_DIR/found"
	grep -q -x 'trtype:  rdma' "$T_DIR/found" && grep -q "^subnqn:  $NQN\$" "$T_DIR/found" &&
		grep -q "^traddr:  $B4\$" "$T_DIR/found"
}

# What nvmf-autoconnect.service runs: it connects to what /etc/nvme/discovery.conf leads to.
connected_to_all() {
	mkdir -p /etc/nvme && echo "--transport=rdma --traddr=$B4 --trsvcid=4420" >/etc/nvme/discovery.conf
	on_a timeout 60 nvme connect-all --hostnqn "$HOST_NQN" --hostid "$HOST_ID" || return 1
	rm /etc/nvme/discovery.conf
	wait_for 10 all_live && wait_for 10 disk 1 && fio_verify "$(disk 2)" 1M && detach
}

has_auth() { [ -e "$HOST_DIR/dhchap_key" ]; }

# key_of HMAC: prints a new key of 32, 48 or 64 bytes.
key_of() {
	local -A length=([1]=32 [2]=48 [3]=64)
	nvme gen-dhchap-key --hmac="$1" --key-length="${length[$1]}" --nqn "$HOST_NQN"
}

# Only this host may connect, and it has to know the key.
restricted() {
	mkdir -p "$HOST_DIR" || return 1
	has_auth || { skip_this "this kernel's target has no authentication"; return; }
	KEY=$(key_of 1) && TARGET_KEY=$(key_of 3) && echo 0 >"$SUBSYSTEM/attr_allow_any_host" &&
		ln -s "$HOST_DIR" "$SUBSYSTEM/allowed_hosts/$HOST_NQN" &&
		echo "$KEY" >"$HOST_DIR/dhchap_key" && echo 'hmac(sha256)' >"$HOST_DIR/dhchap_hash" &&
		echo "$1" >"$HOST_DIR/dhchap_dhgroup"
}

# refused_with [OPTIONS...]: the host does not get in, and keeps no controller.
refused_with() {
	has_auth || { skip_this "this kernel's target has no authentication"; return; }
	must_fail nvme_connect "$B4" "$@" && [ -z "$(controllers)" ]
}

admitted_with() {
	has_auth || { skip_this "this kernel's target has no authentication"; return; }
	attach "$B4" "$@" && fio_verify "$(disk 2)" 1M && detach
}

# The target proves itself, too.
both_ways() {
	has_auth || { skip_this "this kernel's target has no authentication"; return; }
	echo "$TARGET_KEY" >"$HOST_DIR/dhchap_ctrl_key" || return 1
	admitted_with --dhchap-secret="$KEY" --dhchap-ctrl-secret="$TARGET_KEY" &&
		refused_with --dhchap-secret="$KEY" --dhchap-ctrl-secret="$KEY"
}

# The kernel looks for the group in what is loaded.
with_diffie_hellman() {
	has_auth || { skip_this "this kernel's target has no authentication"; return; }
	modprobe -q dh_generic
	echo ffdhe2048 >"$HOST_DIR/dhchap_dhgroup" && admitted_with --dhchap-secret="$KEY"
}

unrestricted() {
	rm -f "$SUBSYSTEM/allowed_hosts/$HOST_NQN" && rmdir "$HOST_DIR"
}

ulp_up nvme-rdma nvmet-rdma || bail "no two hosts"
t_run "a target" target
t_run "discovery" discovered
t_run "connect to all that is discovered" connected_to_all
t_run "a host with a key" restricted null
t_run "no key" refused_with
t_run "a wrong key" refused_with --dhchap-secret="$(key_of 1)"
t_run "the key" admitted_with --dhchap-secret="${KEY:-}"
t_run "with a Diffie-Hellman exchange" with_diffie_hellman
t_run "the target has a key, too" both_ways
t_run "the host goes" unrestricted
t_run "the target ends" target_ends
ulp_down
done_testing
