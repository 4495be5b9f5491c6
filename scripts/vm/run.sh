#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [OPTIONS] -- CMD ARGS...: boots one guest, runs CMD in it as root, exits
# with its status (124: timeout, 125: the guest died).
#
#   --kernel NAME   uml (default), uml-debug, smp-debug, smp-kcsan, 6.1, 6.12
#   --smp N         CPUs (QEMU); --mem MB; --timeout S for everything
#   --modules DIR   its *.ko can be loaded with modprobe; may be repeated
#   --job DIR       is /host/job in the guest, and CMD's working directory
#   --env N=V       in CMD's environment
#   --out DIR       gets what the guest left in /out, and stdout, dmesg,
#                   console, status
# KIW_ROOT=trixie in the environment: the guest has Debian 13's rdma-core (root.sh).
# scripts/selftests, scripts/peer, scripts/pyverbs, packaging and the page of the counters are in /host
# in the guest, the programs of scripts/verbs, compiled, in /host/verbs.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

main() {
	local status
	guest_options "$@"
	guest_prepare
	trap guest_cleanup EXIT
	trap 'exit 130' INT TERM
	guest_dir guest ""
	guest_command guest "${G_CMD[@]}"
	guest_start guest
	guest_follow guest "$GUEST_PID" &
	wait $!
	wait "$GUEST_PID"
	status=$(guest_verdict guest $?)
	guest_copy_out guest "$G_OUT"
	exit "$status"
}

main "$@"
