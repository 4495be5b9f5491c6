#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make check-release: tests the packages as users install them; too long for "make check".
#
#   sources   a tarball is the same twice; the RPM spec and the PKGBUILD make packages of it;
#             the documents can be rendered
#   packages  in a guest with Debian 12 and systemd: apt installs the Debian packages, DKMS builds
#             for 6.1 and 6.12, skips other kernels; purge leaves nothing
#   units     kiwarp@.service on that host, after a reboot into the distribution's kernel 6.1
#
# check.sh [--units KERNEL] [PART...]: runs these parts (all). --units runs the last part on KERNEL:
# 6.1, 6.12, or uml, which boots in seconds with modules from build.sh while the unit is changed.
# Needs root for the guests' root file system, like all guests. KIW_RELEASE_OUT: a directory that keeps
# what the guests left.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"

HERE=$KIW_TOP/scripts/release
KERNEL=6.1
WORK=
PASSED=0
FAILED=0

# case_of NAME CMD...: runs CMD as one test
case_of() {
	local name=$1
	shift
	if "$@" >"$WORK/case.log" 2>&1; then
		echo "ok - $name"
		PASSED=$((PASSED + 1))
	else
		echo "not ok - $name"
		tail -n 30 "$WORK/case.log" | sed 's/^/# /'
		FAILED=$((FAILED + 1))
	fi
}

# --- sources --------------------------------------------------------------------------

same_twice() {
	"$HERE/dist.sh" "$WORK/dist" && sleep 1 && (umask 077 && "$HERE/dist.sh" "$WORK/again") &&
		cmp "$WORK"/dist/*.tar.gz "$WORK"/again/*.tar.gz &&
		(cd "$WORK/dist" && sha256sum -c SHA256SUMS)
}

rpms() {
	rpmspec -P "$KIW_TOP/packaging/rpm/kiwarp.spec" >"$WORK/spec" &&
		rpmbuild -tb --nodeps --define "_topdir $WORK/rpm" "$WORK"/dist/*.tar.gz || return 1
	rpm -qpl "$WORK"/rpm/RPMS/noarch/*.rpm | sort >"$WORK/rpm.files"
	grep -q '^/usr/src/kiwarp-.*/dkms.conf$' "$WORK/rpm.files" &&
		grep -q '/kiwarp@.service$' "$WORK/rpm.files" && ! grep -E '/k(test|unit)/' "$WORK/rpm.files"
}

# makepkg asks pacman about dependencies, and refuses to run as root.
arch_package() {
	local dir=$WORK/arch
	mkdir -p "$dir" && cp "$KIW_TOP/packaging/arch/PKGBUILD" "$WORK"/dist/*.tar.gz "$dir" &&
		chmod 755 "$WORK" && chown -R nobody "$dir" || return 1
	as_root runuser -u nobody -- env "HOME=$dir" PACMAN=true \
		bash -c "cd '$dir' && makepkg -d" || return 1
	bsdtar -tf "$dir"/*.pkg.tar* | grep -q '^usr/src/kiwarp-.*/dkms.conf$'
}

# Makes a key, signs the module with it by "make sign", and checks the signature
signed() {
	local k K_BUILD='' dir=$WORK/sign
	k=$("$KIW_VM/kernel.sh" 6.1) || return 1
	# shellcheck source=/dev/null
	. "$k/info"
	mkdir -p "$dir" && cp -r "$KIW_TOP"/{Makefile,VERSION,Kbuild} "$dir" || return 1
	mkdir -p "$dir/drivers/infiniband/sw/kiwarp"
	cp "$("$KIW_VM/build.sh" 6.1)/kiwarp.ko" "$dir/drivers/infiniband/sw/kiwarp" || return 1
	openssl req -new -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=kiwarp test/' \
		-outform DER -keyout "$dir/key" -out "$dir/cert" &&
		make -C "$dir" sign "KERNELDIR=$k/$K_BUILD" "SIGN_KEY=$dir/key" "SIGN_CERT=$dir/cert" &&
		[ "$(modinfo -F signer "$dir/drivers/infiniband/sw/kiwarp/kiwarp.ko")" = 'kiwarp test' ]
}

sources() {
	need_packages git rpm makepkg libarchive-tools fakeroot openssl || die "packages missing"
	case_of "a tarball is the same twice" same_twice
	case_of "RPM packages of the tarball" rpms
	case_of "Arch package of the tarball" arch_package
	case_of "make sign" signed
	case_of "make docs" "$KIW_TOP/scripts/docs/build.sh" "$WORK/docs"
}

# --- guests ---------------------------------------------------------------------------

# guest NAME PART KERNEL [OPTIONS...]: runs PART in a guest, and counts its results
guest() {
	local name=$1 part=$2 kernel=$3 slow=1 out=${KIW_RELEASE_OUT:-$WORK}/$1 start=$SECONDS p f
	shift 3
	case $kernel in uml) ;; *) slow=3 ;; esac
	cp "$HERE/installed" "$WORK/$name"
	cat "$KIW_TOP/VERSION" >"$WORK/$name/version"
	rm -rf "$out"
	KIW_ROOT=host "$KIW_VM/run.sh" --kernel "$kernel" --mem 3072 --timeout $((1200 * slow)) \
		--job "$WORK/$name" --env KIW_INIT=systemd --env "KIW_SLOW=$slow" --out "$out" "$@" \
		-- bash /host/job/installed "$part" 2>&1 | tee "$WORK/$name.log"
	p=$(grep -c -a '^ok ' "$WORK/$name.log")
	f=$(grep -c -a '^not ok ' "$WORK/$name.log")
	# Without a plan, the part did not finish.
	grep -q -a '^1\.\.[1-9]' "$WORK/$name.log" || f=$((f + 1))
	PASSED=$((PASSED + p)) FAILED=$((FAILED + f))
	echo "# $name: $((SECONDS - start)) s"
	OUT=$out
}

# headers NAME DIR: copies the headers of a stock kernel to DIR
headers() {
	local k K_RELEASE=
	k=$("$KIW_VM/kernel.sh" "$1") || return 1
	# shellcheck source=/dev/null
	. "$k/info"
	cp -r "$k/headers" "$2/headers-$K_RELEASE"
}

packages() {
	mkdir -p "$WORK/packages"
	case_of "make deb, and lintian" "$HERE/deb.sh" "$WORK/packages"
	[ "$FAILED" = 0 ] || return
	headers 6.1 "$WORK/packages" || die "no headers of 6.1"
	headers 6.12 "$WORK/packages" || die "no headers of 6.12"
	guest packages packages uml
	mkdir -p "$WORK/units"
	mv "$OUT/state.tar" "$WORK/units"
}

units() {
	local mods options=()
	[ -f "$WORK/units/state.tar" ] || die "the units need the host that 'packages' leaves"
	if [ "$KERNEL" = uml ]; then
		mods=$("$KIW_VM/build.sh" uml) || die "no modules"
		options=(--modules "$mods")
	fi
	guest units units "$KERNEL" "${options[@]}"
}

main() {
	local part
	while [ $# -gt 0 ]; do
		case $1 in
		--units) KERNEL=${2:?}; shift ;;
		sources | packages | units) break ;;
		*) die "usage: check.sh [--units KERNEL] [sources|packages|units]..." ;;
		esac
		shift
	done
	[ $# -gt 0 ] || set -- sources packages units
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-release.XXXXXX")
	trap 'rm -rf "$WORK"' EXIT
	for part in "$@"; do
		echo "== $part"
		"$part"
	done
	echo "$PASSED passed, $FAILED failed, 0 skipped"
	[ "$FAILED" = 0 ] && [ "$PASSED" != 0 ]
}

main "$@"
