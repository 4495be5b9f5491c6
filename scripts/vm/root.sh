#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# root.sh [bookworm|trixie|host|host-trixie|arm64|s390x]: prints the directory that holds root.sqfs,
# the root file system of guests, and busybox for their initrd; builds it with debootstrap if it
# is not in the cache. Guests use it through an overlay and never change it. bookworm is
# the default; trixie is a small one for the test suite of its rdma-core; host and host-trixie are a
# bookworm and a trixie with systemd and DKMS for `make check-release`; arm64 and s390x are
# bookworm for these machines.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"

SUITE=bookworm
LIST=$KIW_VM/packages.list
# Of other machines
MACHINE=

# mirror: where this machine's apt gets Debian 12 from. A mirror has all suites.
mirror() {
	apt-get indextargets --format "\$(CODENAME) \$(COMPONENT) \$(REPO_URI)" \
		"Created-By: Packages" |
		awk '$1 == "bookworm" && $2 == "main" { print $3; exit }'
}

# Proxies that only apt knows about.
apt_proxy() {
	local HTTP=
	eval "$(apt-config shell HTTP Acquire::http::Proxy)"
	[ -z "$HTTP" ] || export http_proxy=$HTTP
}

wanted_packages() {
	grep -v -e '^#' -e '^$' "$LIST" | paste -sd,
}

# Services of the packages must not start, neither now nor in a guest.
no_services() {
	mkdir -p "$1/usr/sbin"
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod 755 "$1/usr/sbin/policy-rc.d"
}

# The only documentation kept is rdma-core's test suite.
trim_root() {
	local root=$1 tests
	tests=$root/usr/share/doc/rdma-core/tests
	find "$root/usr/share/doc" -mindepth 1 -maxdepth 1 ! -name rdma-core \
		-exec rm -rf {} +
	find "$tests" -name '*.gz' -exec gunzip {} +
	rm -rf "$root"/usr/share/{man,locale,info,lintian,bash-completion} \
		"$root"/usr/share/{perl,zoneinfo,python-wheels} \
		"$root"/var/{cache,log,lib/apt/lists}/* "$root"/usr/lib/udev/hwdb* \
		"$root"/etc/resolv.conf "${root:?}"/boot/*
	find "$root" -xdev -name __pycache__ -prune -exec rm -rf {} +
	mkdir -p "$root"/{host,out,mnt} "$root"/var/{log,cache}
}

# unpack_other TREE LOG: as debootstrap's second stage would, but nothing in TREE can be executed here.
# What the scripts of packages would have written to /etc is taken from BASE, the root file system
# of this machine, and so are the links to alternatives.
unpack_other() {
	local tree=$1 deb
	for deb in "$tree"/var/cache/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$tree" || return 1
	done
	run_logged "$2" unsquashfs -n -f -d "$tree.base" "$BASE" etc usr/bin usr/sbin var/lib/nfs &&
		cp -a "$tree.base/etc/." "$tree/etc" || return 1
	cp -a "$tree.base/var/lib/nfs" "$tree/var/lib" 2>/dev/null
	# debootstrap may leave a link here, on which nothing can be mounted.
	[ ! -L "$tree/proc" ] || { rm "$tree/proc" && mkdir "$tree/proc"; }
	rm -f "$tree/etc/ld.so.cache"
	(cd "$tree.base" && find usr -type l -lname '/etc/alternatives/*' -exec cp -a --parents -t "$tree" {} +)
	rm -rf "$tree.base" "$tree/debootstrap"
}

# make_tree DIR: as root. DIR gets root.sqfs and busybox.
make_tree() {
	local dir=$1 log=$1/log tree=$1/tree url
	url=$(mirror)
	[ -n "$url" ] || die "apt has no source for $SUITE"
	apt_proxy
	no_services "$tree"
	run_logged "$log" debootstrap --variant=minbase \
		--components=main --include="$(wanted_packages)" \
		"$SUITE" "$tree" "$url" || return 1
	no_services "$tree"
	trim_root "$tree"
	cp "$tree/bin/busybox" "$dir/busybox"
	mksquashfs "$tree" "$dir/root.sqfs" -comp lz4 -noappend \
		-quiet -no-progress >/dev/null || return 1
	rm -rf "$tree"
}

# make_other_tree DIR BASE: make_tree for MACHINE
make_other_tree() {
	local dir=$1 BASE=$2/root.sqfs log=$1/log tree=$1/tree
	apt_proxy
	run_logged "$log" debootstrap --foreign "--arch=$MACHINE" --variant=minbase --components=main \
		--include="$(wanted_packages)" "$SUITE" "$tree" "$(mirror)" &&
		unpack_other "$tree" "$log" || return 1
	trim_root "$tree"
	cp "$tree/bin/busybox" "$dir/busybox"
	mksquashfs "$tree" "$dir/root.sqfs" -comp lz4 -noappend -quiet -no-progress >/dev/null || return 1
	rm -rf "$tree"
}

build_root() {
	as_root "$KIW_VM/root.sh" --tree "$@"
}

# suite NAME
suite() {
	case $1 in
	bookworm) ;;
	trixie) SUITE=trixie LIST=$KIW_VM/packages-trixie.list ;;
	host) LIST=$KIW_VM/packages-host.list ;;
	host-trixie) SUITE=trixie LIST=$KIW_VM/packages-host.list ;;
	arm64 | s390x) MACHINE=$1 LIST=$KIW_VM/packages-machine.list ;;
	*) die "usage: root.sh [bookworm|trixie|host|host-trixie|arm64|s390x]" ;;
	esac
}

main() {
	local base functions="no_services trim_root make_tree"
	if [ "${1:-}" = --tree ]; then
		suite "$3"
		if [ -n "$MACHINE" ]; then make_other_tree "$2" "$4"; else make_tree "$2"; fi
		return
	fi
	suite "${1:-bookworm}"
	need_packages debootstrap debian-archive-keyring squashfs-tools ||
		die "packages missing"
	if [ -n "$MACHINE" ]; then
		base=$("$KIW_VM/root.sh") || die "no root image of this machine"
		functions="unpack_other trim_root make_other_tree"
	fi
	# shellcheck disable=SC2086 # names
	cached root "$(content_key "$LIST" "$SUITE ${MACHINE:+$MACHINE $base }$(declare -f $functions)")" \
		build_root "${1:-bookworm}" "${base:-}"
}

main "$@"
