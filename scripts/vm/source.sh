#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# source.sh 6.1|6.12|newest: prints the path of that kernel's source tree, unpacked from
# the distribution's linux-source package; "newest" is that of the backports for Debian 13. Parts
# that no test needs (other architectures, big drivers) are left out; scripts/ is complete.
# patches/6.12-* fix kernel bugs that a test could not tell from a bug of the driver, and make
# copies as fast as on hardware. The newest kernel gets all of these unless it has them, those that
# make the detectors of User Mode Linux faster, and patches/newest-*.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=scripts/vm/debian.sh
. "$KIW_VM/debian.sh"

# Folders whose C files are left out. Their Kconfig and Makefiles stay, because kbuild needs them.
UNWANTED="drivers/gpu drivers/media drivers/net/ethernet drivers/net/wireless
drivers/staging drivers/iio drivers/comedi drivers/accel sound
drivers/clk drivers/pinctrl drivers/infiniband/hw drivers/regulator"

# For find: leaves out the patches for detectors
WITHOUT_DETECTORS=(! -name 6.12-um-frame-pointers.patch ! -name 6.12-um-kasan-fork.patch)

# unpack DIR VERSION TARBALL PATCH...
unpack() {
	local dir=$1 version=$2 tarball=$3 root=linux-source-$2 d
	local -a skip=("--exclude=$root/Documentation/[!K]*")
	for d in $UNWANTED; do
		skip+=("--exclude=$root/$d/*.[chS]")
	done
	for d in alpha arc arm arm64 csky hexagon loongarch m68k microblaze mips \
		nios2 openrisc parisc powerpc riscv s390 sh sparc xtensa; do
		skip+=("--exclude=$root/arch/$d/*.[chS]" "--exclude=$root/arch/$d/*.dts*")
	done
	tar -xJf "$tarball" -C "$dir" --strip-components=1 \
		--wildcards "${skip[@]}" && mend "$dir" "${@:4}"
}

# mend DIR PATCH...: applies those patches to the source in DIR that it does not have.
mend() {
	local dir=$1 p
	shift
	for p in "$@"; do
		! patch -d "$dir" -p1 -R -f -s --dry-run -i "$p" >/dev/null || continue
		run_logged "$dir/mend.log" patch -d "$dir" -p1 -N -i "$p" || return 1
	done
}

# unpack_newest DIR CONF VERSION PATCH...: from the archive that CONF knows
unpack_newest() {
	local dir=$1 conf=$2 version=$3
	mkdir "$dir/deb"
	(cd "$dir/deb" && APT_CONFIG=$conf run_logged "$dir/mend.log" \
		apt-get -qq download "linux-source-$version") &&
		dpkg-deb -x "$dir"/deb/*.deb "$dir/deb" &&
		unpack "$dir" "$version" "$dir/deb/usr/src/linux-source-$version.tar.xz" "${@:4}" &&
		rm -r "$dir/deb"
}

newest_tree() {
	local conf version
	{ conf=$(apt_of trixie amd64) && fresh_lists "$conf"; } || die "no package lists of Debian 13"
	version=$(APT_CONFIG=$conf apt_says apt-cache pkgnames linux-source- |
		sed -n 's/^linux-source-\([0-9.]*\)$/\1/p' | sort -V | tail -n 1)
	[ -n "$version" ] || die "Debian 13 has no kernel source"
	cached source-newest "$(content_key "$UNWANTED" "$(declare -f unpack mend unpack_newest)" \
		"$(version_in "$conf" "linux-source-$version")" "$@")" \
		unpack_newest "$conf" "$version" "$@"
}

main() {
	local version=${1:-}
	local -a patches without=()
	case $version in
	6.1 | newest) ;;
	6.12) without=("${WITHOUT_DETECTORS[@]}") ;;
	*) die "usage: source.sh 6.1|6.12|newest" ;;
	esac
	need_packages xz-utils patch || die "packages missing"
	mapfile -t patches < <(find "$KIW_VM/patches" -name "${version/newest/6.12}-*.patch" \
		${without[@]+"${without[@]}"} | sort)
	if [ "$version" = newest ]; then
		newest_tree "${patches[@]}" "$KIW_VM"/patches/newest-*.patch
		return
	fi
	need_packages "linux-source-$version" || die "no linux-source-$version"
	cached "source-$version" "$(content_key "$UNWANTED" "$(declare -f unpack mend)" \
		"$(dpkg-query -W -f '${Version}' "linux-source-$version")" "${patches[@]}")" \
		unpack "$version" "/usr/src/linux-source-$version.tar.xz" "${patches[@]}"
}

main "$@"
