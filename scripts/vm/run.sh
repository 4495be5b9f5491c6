#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# run.sh [OPTIONS] -- CMD ARGS...: boots one guest, runs CMD in it as root and exits
# with its status (124: timeout, 125: the guest died).
#
#   --kernel NAME   uml (default), uml-debug, uml-smp, uml-kcsan, uml-gcov, smp-debug, 6.1, 6.12
#   --smp N         CPUs (QEMU, uml-smp, uml-kcsan); --mem MB; --timeout S for the whole run
#   --modules DIR   modprobe finds its *.ko in the guest; may be repeated
#   --job DIR       /host/job in the guest, and the working directory of CMD
#   --env N=V       sets a variable in the environment of CMD
#   --out DIR       gets the guest's /out, and stdout, dmesg, console, status; of uml-gcov also
#                   gcov/, with a directory of counts for each guest
#
# KIW_ROOT=trixie in the environment: the guest has the rdma-core of Debian 13 (root.sh).
# In the guest /host holds scripts/selftests, scripts/peer, scripts/fuzz, scripts/pyverbs, packaging
# and the documentation of the counters; /host/verbs holds the compiled programs of scripts/verbs.

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
