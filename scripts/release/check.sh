#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#
# make check-release: tests the packages as users install them; too long for "make check".
#
#   sources   a tarball is the same twice; the RPM spec and the PKGBUILD make packages of it;
#             the documents can be rendered; kubectl reads the sample for Kubernetes
#   packages  in guests with Debian 12 and 13 and systemd: apt installs the Debian packages, DKMS
#             builds for two kernels of that Debian, skips other kernels; purge leaves nothing
#   units     these hosts after a reboot into a kernel of that Debian: kiwarp@.service, and NFS over
#             RDMA in /etc/fstab
#
# check.sh [--debian NAME] [--units KERNEL] [--cases REGEX] [PART...]: these parts (all), in guests
# with Debian NAME only (bookworm, trixie), the last part on KERNEL: 6.1, 6.12, 7.3, or uml for those
# who change the unit: it boots in seconds, and gets its modules from build.sh. With --cases, only the
# cases whose names match, and those that they need.
# Needs root for the guests' root file system, like all guests. KIW_RELEASE_OUT: a directory that keeps
# what the guests left. With it, "units" needs no "packages" before it: it takes the host that an
# earlier run has left there.

set -u
# shellcheck source=scripts/vm/lib.sh
. "$(dirname "$0")/../vm/lib.sh"
# shellcheck source=scripts/vm/debian.sh
. "$KIW_VM/debian.sh"

HERE=$KIW_TOP/scripts/release
# shellcheck source=scripts/release/documented
. "$HERE/documented"
COMMANDS=$KIW_TOP/scripts/selftests/commands
RELEASES=(bookworm trixie)
# Of each: two lines of kernels, of which the second comes later, and the kernel of the units
declare -A LINES=([bookworm]="6.1 6.12" [trixie]="6.12 7.3")
declare -A BOOTED=([bookworm]=6.1 [trixie]=7.3)
KERNEL=
CASES=
WORK=
OUT=
PASSED=0
FAILED=0

# case_of NAME CMD...: runs CMD as one test, if it is one of CASES
case_of() { ! [[ $1 =~ $CASES ]] || step_of "$@"; }

# step_of NAME CMD...: the same, of a case that others need
step_of() {
	local name=$1
	shift
	if (cd "$KIW_TOP" && "$@") >"$WORK/case.log" 2>&1; then
		echo "ok - $name"
		PASSED=$((PASSED + 1))
	else
		echo "not ok - $name"
		tail -n 30 "$WORK/case.log" | sed 's/^/# /'
		FAILED=$((FAILED + 1))
	fi
}

# --- sources --------------------------------------------------------------------------

# As users have the sources: the last commit, and nothing that was built
clone() { git clone -q "$KIW_TOP" "$WORK/clone"; }

# The second time by somebody with other habits
same_twice() {
	clone && git clone -q "$WORK/clone" "$WORK/second" && mkdir -p "$WORK/home" || return 1
	echo '*.sh export-ignore' | tee "$WORK/home/attributes" >"$WORK/second/.git/info/attributes"
	printf '[core]\nautocrlf = true\nattributesFile = %s\n' "$WORK/home/attributes" \
		>"$WORK/home/.gitconfig" || return 1
	(cd "$WORK/clone" && documented "make dist") && sleep 1 &&
		(umask 077 && HOME=$WORK/home "$WORK/second/scripts/release/dist.sh" "$WORK/again") &&
		cmp "$WORK"/clone/dist/*.tar.gz "$WORK"/again/*.tar.gz &&
		(cd "$WORK/clone/dist" && sha256sum -c SHA256SUMS)
}

# Nothing that looks like a tarball is left when git fails.
git_fails() {
	mkdir -p "$WORK/bin" || return 1
	printf '#!/bin/sh\ncase "$*" in *" archive "*) exit 3 ;; esac\nexec %s "$@"\n' \
		"$(command -v git)" >"$WORK/bin/git"
	chmod 755 "$WORK/bin/git"
	! PATH=$WORK/bin:$PATH "$WORK/second/scripts/release/dist.sh" "$WORK/none" &&
		[ ! -e "$WORK/none/SHA256SUMS" ] && ! ls "$WORK"/none/*.tar.gz
}

rpms() {
	local DOCUMENTED_SHELL="rpmbuild() { command rpmbuild --nodeps --define '_topdir $WORK/rpm' \"\$@\"; }"
	rpmspec -P "$KIW_TOP/packaging/rpm/kiwarp.spec" >"$WORK/spec" &&
		(cd "$WORK/clone" && documented "rpmbuild") || return 1
	rpm -qpl "$WORK"/rpm/RPMS/noarch/*.rpm | sort >"$WORK/rpm.files"
	grep -q '^/usr/src/kiwarp-.*/dkms.conf$' "$WORK/rpm.files" &&
		grep -q '/kiwarp@.service$' "$WORK/rpm.files" && ! grep -E '/k(test|unit)/' "$WORK/rpm.files"
}

# makepkg asks pacman about dependencies and has it install the package, and refuses to run as root.
arch_package() {
	local dir=$WORK/arch
	mkdir -p "$dir/bin" && cp "$KIW_TOP/packaging/arch/PKGBUILD" "$WORK"/clone/dist/*.tar.gz "$dir" &&
		cp "$HERE/documented" "$COMMANDS" "$dir" && chmod 755 "$WORK" || return 1
	printf '#!/bin/sh\nexec "$@"\n' >"$dir/bin/sudo"
	printf '#!/bin/sh\necho "$@" >>%s/pacman.log\n' "$dir" >"$dir/bin/pacman"
	chmod 755 "$dir"/bin/* && chown -R nobody "$dir" || return 1
	as_root runuser -u nobody -- env "HOME=$dir" "PATH=$dir/bin:$PATH" bash -c "cd '$dir' &&
		COMMANDS=commands && . ./documented && DOCUMENTED_SHELL='makepkg() { command makepkg -d \"\$@\"; }' &&
		documented makepkg" || return 1
	grep -E '^-U .*/kiwarp-dkms-.*\.pkg\.tar' "$dir/pacman.log" &&
		bsdtar -tf "$dir"/*.pkg.tar* | grep -q '^usr/src/kiwarp-.*/dkms.conf$'
}

# built DIR: makes DIR look like a tree in which "make" has built the modules for 6.1; sets HEADERS
# to what they were built against
built() {
	local k mods K_BUILD='' sw=$1/drivers/infiniband/sw/kiwarp ulp=$1/drivers/infiniband/ulp/kiwarp_ip
	k=$("$KIW_VM/kernel.sh" 6.1) && mods=$("$KIW_VM/build.sh" 6.1) || return 1
	# shellcheck source=/dev/null
	. "$k/info"
	HEADERS=$k/$K_BUILD
	mkdir -p "$sw" "$ulp" && cp -r "$KIW_TOP"/{Makefile,VERSION,Kbuild} "$1" &&
		cp "$mods/kiwarp.ko" "$sw" && cp "$mods/kiwarp_ip.ko" "$ulp"
}

# modules_in ROOT: the modules below it, and what modprobe knows of them
modules_in() {
	(cd "$1" && find . -name 'kiwarp*.ko' && cat lib/modules/*/modules.dep) | sort
}

# Installs the modules below another root, and removes them again. Modules of another kernel are not
# installed.
installed_and_removed() {
	local HEADERS dir=$WORK/install root=$WORK/root
	built "$dir" && cd "$dir" || return 1
	export "KERNELDIR=$HEADERS" "INSTALL_MOD_PATH=$root"
	documented "make install" && modules_in "$root" && [ "$(modules_in "$root" | wc -l)" = 4 ] &&
		[ "$(modules_in "$root" | grep -c '/updates/kiwarp')" = 2 ] || return 1
	documented "make uninstall" && [ -z "$(modules_in "$root")" ] || return 1
	mkdir -p "$dir/other/include/generated" && : >"$dir/other/Makefile" &&
		echo '#define UTS_RELEASE "6.1.0-other"' >"$dir/other/include/generated/utsrelease.h" || return 1
	! make "KERNELDIR=$dir/other" install && [ ! -e "$root/lib/modules/6.1.0-other" ]
}

# Makes a key, signs the module with it by "make sign", and checks the signature
signed() {
	local HEADERS dir=$WORK/sign
	built "$dir" && cd "$dir" || return 1
	export "KERNELDIR=$HEADERS"
	documented "a key of one's own" &&
		[ "$(modinfo -F signer drivers/infiniband/sw/kiwarp/kiwarp.ko)" = 'kiwarp modules' ]
}

# Installed below another root; groff has nothing to say about them
manuals() {
	local DOCUMENTED_SHELL='man() { command man --warnings -P cat "$@"; }' root=$WORK/tools page
	need_packages man-db groff-base && make install-tools "DESTDIR=$root" || return 1
	export "MANPATH=$root/usr/share/man" MANWIDTH=100
	for page in kiwarp kiwarp_ip; do
		DOCUMENTED_SED="s/kiwarp\$/$page/"
		documented "man" >"$WORK/$page.txt" 2>"$WORK/man.err" && cat "$WORK/man.err" &&
			grep -q '^SYNOPSIS' "$WORK/$page.txt" && [ ! -s "$WORK/man.err" ] || return 1
	done
}

# Debian has an old kubectl. A newer one that is there serves as well.
kubernetes() {
	command -v kubectl || need_packages kubernetes-client || return 1
	kubectl version --client
	"$HERE/kubernetes.py" "$KIW_TOP/packaging/samples/kubernetes.yaml"
}

sources() {
	need_packages git rpm makepkg libarchive-tools fakeroot openssl || die "packages missing"
	step_of "a tarball is the same twice" same_twice
	case_of "git fails in make dist" git_fails
	case_of "RPM packages of the tarball" rpms
	case_of "Arch package of the tarball" arch_package
	case_of "make sign" signed
	case_of "make install, make uninstall" installed_and_removed
	case_of "make help" documented "make help"
	case_of "man kiwarp" manuals
	case_of "Kubernetes knows the fields of the sample" kubernetes
	case_of "make docs" "$KIW_TOP/scripts/docs/build.sh" "$WORK/docs"
}

# --- guests ---------------------------------------------------------------------------

# root_of DEBIAN: the name of root.sh
root_of() { case $1 in bookworm) echo host ;; *) echo "host-$1" ;; esac; }

# guest DEBIAN PART KERNEL [OPTIONS...]: its KTAP, counted
guest() {
	local name=$1-$2 root part=$2 kernel=$3 slow=1 out=$OUT/$1-$2 start=$SECONDS p f
	root=$(root_of "$1")
	shift 3
	case $kernel in uml) ;; *) slow=3 ;; esac
	cp "$HERE/installed" "$HERE/documented" "$WORK/$name"
	cat "$KIW_TOP/VERSION" >"$WORK/$name/version"
	cp "$KIW_TOP/Documentation/tracing.rst" "$WORK/$name"
	rm -rf "$out"
	KIW_ROOT=$root "$KIW_VM/run.sh" --kernel "$kernel" --mem 3072 --timeout 7200 \
		--job "$WORK/$name" --env KIW_INIT=systemd --env "KIW_SLOW=$slow" \
		--env "CASES=$CASES" --out "$out" "$@" \
		-- bash /host/job/installed "$part" 2>&1 | tee "$WORK/$name.log"
	p=$(grep -c -a '^ok ' "$WORK/$name.log")
	f=$(grep -c -a '^not ok ' "$WORK/$name.log")
	# Without a plan, the part did not finish.
	grep -q -a '^1\.\.[1-9]' "$WORK/$name.log" || f=$((f + 1))
	PASSED=$((PASSED + p)) FAILED=$((FAILED + f))
	echo "# $name: $((SECONDS - start)) s"
}

# headers_of DEBIAN LINE DIR: those of the newest kernel of a line go to DIR
headers_of() {
	local conf release dir
	conf=$(apt_of "$1" amd64)
	fresh_lists "$conf" || return 1
	release=$(newest_release "$conf" "$2" amd64) && dir=$(headers "$release" amd64 "$1") || return 1
	cp -r "$dir" "$3/headers-$release"
}

debs() {
	[ -d "$WORK/clone" ] || clone || return 1
	cd "$WORK/clone" && documented "make deb" && documented "make dist"
}

packages() {
	local debian line dir
	step_of "make deb, and lintian" debs
	[ "$FAILED" = 0 ] || return
	for debian in "${RELEASES[@]}"; do
		dir=$WORK/$debian-packages
		mkdir -p "$dir"
		cp -r "$WORK/clone/dist" "$dir"
		for line in ${LINES[$debian]}; do
			headers_of "$debian" "$line" "$dir" || die "no headers of $line in $debian"
		done
		guest "$debian" packages uml
		rm -rf "$dir"
	done
}

units() {
	local debian kernel state mods options=()
	for debian in "${RELEASES[@]}"; do
		kernel=${KERNEL:-${BOOTED[$debian]}}
		state=$OUT/$debian-packages/state.tar
		[ -f "$state" ] || die "the units need the host that 'packages' leaves"
		mkdir -p "$WORK/$debian-units"
		cp "$state" "$WORK/$debian-units"
		if [ "$kernel" = uml ]; then
			mods=$("$KIW_VM/build.sh" uml) || die "no modules"
			options=(--modules "$mods")
		fi
		guest "$debian" units "$kernel" ${options[@]+"${options[@]}"}
	done
}

main() {
	local part
	while [ $# -gt 0 ]; do
		case $1 in
		--units) KERNEL=${2:?}; shift ;;
		--debian) RELEASES=("${2:?}"); shift ;;
		--cases) CASES=${2?}; shift ;;
		sources | packages | units) break ;;
		*) die "usage: check.sh [--debian NAME] [--units KERNEL] [--cases REGEX] [PART...]" ;;
		esac
		shift
	done
	[ $# -gt 0 ] || set -- sources packages units
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/kiwarp-release.XXXXXX")
	trap 'rm -rf "$WORK"' EXIT
	OUT=${KIW_RELEASE_OUT:-$WORK/out}
	mkdir -p "$OUT"
	for part in "$@"; do
		echo "== $part"
		"$part"
	done
	echo "$PASSED passed, $FAILED failed, 0 skipped"
	[ "$FAILED" = 0 ] && [ "$PASSED" != 0 ]
}

main "$@"
