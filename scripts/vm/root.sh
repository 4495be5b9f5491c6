#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# root.sh [bookworm|trixie|host]: prints the directory that holds root.sqfs, the root
# file system of guests, and busybox for their initrd; builds it with debootstrap if it
# is not in the cache. Guests use it through an overlay and never change it. bookworm is
# the default; trixie is a small one for the test suite of its rdma-core; host is a
# bookworm with systemd and DKMS for `make check-release`.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/lib.sh"

SUITE=bookworm
LIST=$KIW_VM/packages.list

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

build_root() {
	as_root "$KIW_VM/root.sh" --tree "$1" "$2"
}

# suite NAME
suite() {
	case $1 in
	bookworm) ;;
	trixie) SUITE=trixie LIST=$KIW_VM/packages-trixie.list ;;
	host) LIST=$KIW_VM/packages-host.list ;;
	*) die "usage: root.sh [bookworm|trixie|host]" ;;
	esac
}

main() {
	if [ "${1:-}" = --tree ]; then
		suite "$3"
		make_tree "$2"
		return
	fi
	suite "${1:-bookworm}"
	need_packages debootstrap debian-archive-keyring squashfs-tools ||
		die "packages missing"
	cached root "$(content_key "$LIST" \
		"$SUITE $(declare -f no_services trim_root make_tree)")" build_root "${1:-bookworm}"
}

main "$@"
