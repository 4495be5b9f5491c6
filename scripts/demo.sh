#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make demo: two guests on the distribution's stock 6.1 kernel, an RDMA device on
# each, traffic between them, NFS over RDMA with verified I/O, IP over RDMA, a short
# report.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/vm/lib.sh"

KERNEL=${KIW_DEMO_KERNEL:-6.1}

main() {
	local mods
	echo "demo: packages, the $KERNEL kernel, the guests' root (minutes the first time)"
	"$KIW_VM/deps.sh" || die "packages missing"
	"$KIW_VM/kernel.sh" "$KERNEL" >/dev/null || die "no kernel"
	"$KIW_VM/root.sh" >/dev/null || die "no root image"
	echo "demo: building the module"
	mods=$("$KIW_VM/build.sh" "$KERNEL") || die "the module does not build"
	echo "demo: booting two guests"
	"$KIW_VM/pair.sh" --kernel "$KERNEL" --timeout 280 --modules "$mods" \
		-- /host/demo || die "failed"
	echo "demo: done in $SECONDS s"
}

main "$@"
