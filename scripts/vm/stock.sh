# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
#
# Part of kernel.sh: the distribution's kernels. Packages are downloaded with apt and
# unpacked into the cache rather than installed, because installing the header packages
# would also install a kernel on this machine.

# 6.1 and 6.12 of this machine's Debian come from its own apt; others, such as 7.3 and 6.1-s390x, from
# that of debian.sh, with the compilers of their release of Debian.

# stock_release 6.1|6.12: the newest, by the meta package.
stock_release() {
	local meta=linux-image-amd64
	[ "$1" = 6.1 ] || meta=linux-image-$1-amd64
	apt_says apt-cache depends "$meta" |
		sed -n 's/^ *Depends: linux-image-\(6\.[0-9].*-amd64\)$/\1/p' | head -n 1
}

stock_packages() {
	echo "linux-image-$1"
	echo "linux-headers-$1"
	echo "linux-headers-${1%-amd64}-common"
	apt_says apt-cache depends "linux-headers-$1" |
		sed -n 's/^ *Depends: \(linux-kbuild-.*\)$/\1/p'
}

# download PACKAGE...: downloads to the current directory; updates package lists that are too old.
download() {
	apt-get -qq download "$@" || { apt_update && apt-get -qq download "$@"; }
}

# fetch_debs DIR PACKAGE...: image into DIR/image, the others into DIR/headers.
fetch_debs() {
	local dir=$1 deb
	shift
	mkdir -p "$dir/debs" "$dir/image" "$dir/headers"
	(cd "$dir/debs" && run_logged "$dir/log" download "$@") || return 1
	for deb in "$dir"/debs/*.deb; do
		case $deb in
		*/linux-image-*) dpkg-deb -x "$deb" "$dir/image" ;;
		*) dpkg-deb -x "$deb" "$dir/headers" ;;
		esac || return 1
	done
	rm -rf "$dir/debs"
}

# The header package includes its other half by absolute path.
relocate_headers() {
	local src=$1/headers/usr/src
	sed -i 's|^include /usr/src/|include ../|' "$src/linux-headers-$2/Makefile"
	[ -e "$src/linux-headers-$2/scripts/Makefile.build" ] ||
		{ note "headers of $2 are not as expected"; return 1; }
}

# module_files TREE RELEASE NAME: paths of it and what it needs, in order.
module_files() {
	modprobe -d "$1" -S "$2" --show-depends "$3" 2>/dev/null |
		sed -n 's/^insmod \([^ ]*\).*/\1/p'
}

has_module() {
	modprobe -d "$1" -S "$2" --show-depends "$3" >/dev/null 2>&1
}

# select_modules DIR RELEASE: from DIR/image to DIR/modules, as listed.
select_modules() {
	local from=$1/image to=$1/modules/usr/lib/modules/$2 kind name path rel
	mkdir -p "$to"
	depmod -b "$from" "$2" || return 1
	while read -r kind name; do
		case $kind in '' | '#'*) continue ;; boot | try) ;; *) name=$kind ;; esac
		if ! has_module "$from" "$2" "$name"; then
			[ "$kind" = try ] || note "kernel $2 has no module $name"
			continue
		fi
		for path in $(module_files "$from" "$2" "$name"); do
			rel=${path#"$from/lib/modules/$2/"}
			mkdir -p "$to/${rel%/*}"
			cp -n "$path" "$to/$rel" 2>/dev/null
			[ "$kind" != boot ] || echo "${rel%.xz}" >>"$1/boot-modules.all"
		done
	done <"$KIW_VM/modules.list"
	find "$to" -name '*.ko.xz' -exec unxz {} +
	awk '!seen[$0]++' "$1/boot-modules.all" >"$1/boot-modules"
	cp "$from/lib/modules/$2"/modules.{builtin,builtin.modinfo,order} "$to"
}

build_stock() {
	local dir=$1 rel=$2
	shift 2
	fetch_debs "$dir" "$@" && relocate_headers "$dir" "$rel" &&
		select_modules "$dir" "$rel" && pack_modules "$dir" "$rel" || return 1
	# PVH: QEMU starts the ELF itself, which saves half of the boot.
	bash "$SRC/scripts/extract-vmlinux" "$dir/image/boot/vmlinuz-$rel" \
		>"$dir/kernel" || return 1
	printf 'K_TYPE=qemu\nK_RELEASE=%s\nK_BUILD=%s\nK_ARCH=x86_64\n' "$rel" \
		"headers/usr/src/linux-headers-$rel" >"$dir/info"
	rm -rf "$dir/image" "$dir/boot-modules.all"
}

kernel_stock() {
	local rel
	local -a packages
	need_packages build-essential kmod squashfs-tools xz-utils zstd binutils ||
		die "packages missing"
	rel=$(stock_release "$1")
	[ -n "$rel" ] || { apt_update; rel=$(stock_release "$1"); }
	[ -n "$rel" ] || die "apt knows no stock kernel $1"
	mapfile -t packages < <(stock_packages "$rel")
	SRC=$("$KIW_VM/source.sh" "$1") || die "no source tree"
	cached "kernel-$1" "$(content_key "$rel" "${packages[@]}" \
		"$(package_version "linux-image-$rel")" "$KIW_VM/modules.list" \
		"$(declare -f fetch_debs relocate_headers module_files select_modules \
		build_stock pack_modules)")" build_stock "$rel" "${packages[@]}"
}

# --- other releases of Debian, other machines ---------------------------------------------

# find_debian LINE MACHINE: "RELEASE DEBIAN" of its newest kernel, in the oldest Debian that has one
find_debian() {
	local debian conf release
	while read -r debian _; do
		case $debian in '' | '#'*) continue ;; esac
		conf=$(apt_of "$debian" "$2")
		fresh_lists "$conf" || { note "no package lists of $debian for $2"; continue; }
		release=$(newest_release "$conf" "$1" "$2") || continue
		echo "$release $debian"
		return
	done <"$KIW_DEBIANS"
	return 1
}

# newest_line: the newest line of kernels that kiwarp knows and a stable Debian has
newest_line() {
	local known debian conf
	known=$(sed -n 's/^kiwarp-newest := //p' "$KIW_TOP/drivers/infiniband/sw/kiwarp/compat/Kbuild")
	{
		echo "$known known"
		while read -r debian _; do
			case $debian in '' | '#'* | sid) continue ;; esac
			conf=$(apt_of "$debian" amd64)
			fresh_lists "$conf" || { note "no package lists of $debian"; continue; }
			APT_CONFIG=$conf apt_says apt-cache pkgnames linux-headers- |
				newest amd64 | sed 's/^linux-headers-\([0-9]*\.[0-9]*\).*/\1/'
		done <"$KIW_DEBIANS"
	} | sort -V | awk '$2 == "known" { print line; exit } { line = $1 }' | grep .
}

# image_packages CONF RELEASE: newer ones are split. The image of a new release is unsigned for a
# while, and has another name.
image_packages() {
	local image=linux-image-$2
	[ "$(version_in "$1" "$image")" != "(none)" ] || image+=-unsigned
	echo "$image"
	depends "$1" "$image" 'linux-\(base\|binary\|modules\)-.*'
}

# unpack_image DIR CONF PACKAGE...: into DIR/image
unpack_image() {
	local dir=$1 conf=$2 deb
	shift 2
	mkdir -p "$dir/debs" "$dir/image"
	(cd "$dir/debs" && APT_CONFIG=$conf run_logged "$dir/log" apt-get -qq download "$@") || return 1
	for deb in "$dir"/debs/*.deb; do dpkg-deb -x "$deb" "$dir/image" || return 1; done
	rm -rf "$dir/debs"
	[ -e "$dir/image/lib" ] || ln -s usr/lib "$dir/image/lib"
}

# boot_image DIR RELEASE MACHINE: what QEMU starts
boot_image() {
	local image=$1/image/boot/vmlinuz-$2
	[ -e "$image" ] || image=$1/image/usr/lib/modules/$2/vmlinuz
	case $3 in
	amd64) bash "$SRC/scripts/extract-vmlinux" "$image" ;;
	arm64) gzip -cdf "$image" ;;
	*) cat "$image" ;;
	esac >"$1/kernel"
}

# build_debian DIR RELEASE MACHINE DEBIAN HEADERS CONF PACKAGE...
build_debian() {
	local dir=$1 rel=$2 machine=$3 debian=$4 headers=$5 conf=$6
	shift 6
	unpack_image "$dir" "$conf" "$@" && cp -a "$headers" "$dir/headers" &&
		select_modules "$dir" "$rel" && pack_modules "$dir" "$rel" &&
		boot_image "$dir" "$rel" "$machine" || return 1
	{
		printf 'K_TYPE=qemu\nK_RELEASE=%s\nK_BUILD=%s\n' "$rel" \
			"headers/usr/src/linux-headers-$rel"
		printf 'K_ARCH=%s\nK_MACHINE=%s\nK_DEBIAN=%s\n' "$(arch_of "$machine")" "$machine" "$debian"
	} >"$dir/info"
	rm -rf "$dir/image" "$dir/boot-modules.all"
}

# kernel_debian newest|LINE[-MACHINE]
kernel_debian() {
	local line=${1%%-*} machine=amd64 found rel debian conf headers
	local -a packages
	[ "$line" = "$1" ] || machine=${1#*-}
	need_packages kmod squashfs-tools xz-utils debootstrap debian-archive-keyring ||
		die "packages missing"
	if [ "$line" = newest ]; then
		line=$(newest_line) || die "no Debian has a kernel that kiwarp knows"
	fi
	found=$(find_debian "$line" "$machine") || die "no Debian has a kernel $line for $machine"
	read -r rel debian <<<"$found"
	conf=$(apt_of "$debian" "$machine")
	mapfile -t packages < <(image_packages "$conf" "$rel")
	headers=$(headers "$rel" "$machine" "$debian") || die "no headers of $rel"
	SRC=$("$KIW_VM/source.sh" 6.12) || die "no source tree"
	cached "kernel-$1" "$(content_key "$rel" "$headers" "${packages[@]}" "$KIW_VM/modules.list" \
		"$(version_in "$conf" "${packages[0]}")" "$(declare -f unpack_image boot_image \
		select_modules module_files build_debian pack_modules)")" \
		build_debian "$rel" "$machine" "$debian" "$headers" "$conf" "${packages[@]}"
}
