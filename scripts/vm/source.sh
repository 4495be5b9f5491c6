#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# source.sh 6.1|6.12: prints the path of that kernel's source tree, unpacked
# from the distribution's linux-source package. What no test needs (other
# architectures, big drivers) is left out; scripts/ is complete.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"

# Kconfig and Makefiles stay, kbuild wants them; only the C goes.
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
		--wildcards "${skip[@]}"
}

main() {
	local version=${1:-}
	case $version in
	6.1 | 6.12) ;;
	*) die "usage: source.sh 6.1|6.12" ;;
	esac
	need_packages "linux-source-$version" xz-utils || die "no linux-source-$version"
	cached "source-$version" "$(content_key "$UNWANTED" "$(declare -f unpack)" \
		"$(dpkg-query -W -f '${Version}' "linux-source-$version")")" \
		unpack "$version"
}

main "$@"
