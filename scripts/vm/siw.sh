#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# siw.sh NAME: prints a directory with siw.ko for kernel NAME. siw is the peer in the
# interoperability tests. It is built from the distribution's linux-source, because the
# distribution's stock kernels do not include it. There is none for kernels of other releases of Debian
# and for other machines: the directory is empty.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/vm/guest.sh
. "$KIW_VM/guest.sh"

build_siw() {
	local dir=$1
	mkdir -p "$dir/src"
	cp "$SRC"/drivers/infiniband/sw/siw/* "$dir/src"
	run_logged "$dir/log" make -C "$K_BUILD" "M=$dir/src" "ARCH=$K_ARCH" \
		CONFIG_RDMA_SIW=m -j"$(build_jobs)" modules || return 1
	strip -g -o "$dir/siw.ko" "$dir/src/siw.ko" && rm -rf "$dir/src"
}

main() {
	local version=${1:-}
	load_kernel "$version"
	if [ -n "$K_DEBIAN" ]; then
		cached siw none true
		return
	fi
	if [ -n "$(find "$K_DIR/modules" -name siw.ko)" ]; then
		dirname "$(find "$K_DIR/modules" -name siw.ko)"
		return
	fi
	SRC=$("$KIW_VM/source.sh" "$version") || die "no source tree"
	cached "siw-$version" "$(content_key "$K_DIR" "$SRC")" build_siw
}

main "$@"
