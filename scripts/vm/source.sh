#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# source.sh 6.1|6.12: prints the path of that kernel's source tree, unpacked from the
# distribution's linux-source package. Parts that no test needs (other architectures, big
# drivers) are left out; scripts/ is complete. patches/VERSION-* fix kernel bugs that a test
# could not tell from a bug of the driver.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# Folders whose C files are left out. Their Kconfig and Makefiles stay, because kbuild needs them.
UNWANTED="drivers/gpu drivers/media drivers/net/ethernet drivers/net/wireless
drivers/staging drivers/iio drivers/comedi drivers/accel sound
drivers/clk drivers/pinctrl drivers/infiniband/hw drivers/regulator"

unpack() {
	local dir=$1 version=$2 root=linux-source-$2 d
	local -a skip=("--exclude=$root/Documentation/[!K]*")
	for d in $UNWANTED; do
		skip+=("--exclude=$root/$d/*.[chS]")
	done
	for d in alpha arc arm arm64 csky hexagon loongarch m68k microblaze mips \
		nios2 openrisc parisc powerpc riscv s390 sh sparc xtensa; do
		skip+=("--exclude=$root/arch/$d/*.[chS]" "--exclude=$root/arch/$d/*.dts*")
	done
	tar -xJf "/usr/src/$root.tar.xz" -C "$dir" --strip-components=1 \
		--wildcards "${skip[@]}" && mend "$dir" "${@:3}"
}

# mend DIR PATCH...: applies patches to the source in DIR.
mend() {
	local dir=$1 p
	shift
	for p in "$@"; do
		run_logged "$dir/mend.log" patch -d "$dir" -p1 -N -i "$p" || return 1
	done
}

main() {
	local version=${1:-}
	local -a patches
	case $version in
	6.1 | 6.12) ;;
	*) die "usage: source.sh 6.1|6.12" ;;
	esac
	need_packages "linux-source-$version" xz-utils patch || die "no linux-source-$version"
	mapfile -t patches < <(find "$KIW_VM/patches" -name "$version-*.patch" | sort)
	cached "source-$version" "$(content_key "$UNWANTED" "$(declare -f unpack mend)" \
		"$(dpkg-query -W -f '${Version}' "linux-source-$version")" "${patches[@]}")" \
		unpack "$version" "${patches[@]}"
}

main "$@"
