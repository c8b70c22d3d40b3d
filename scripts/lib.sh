# Shared by the setup scripts: one line a fact, one way to fail, one way to install a package.

say() { printf 'setup: %s\n' "$*"; }

# die CODE MESSAGE: 3 is "the environment lacks something", as in podfit itself.
die() {
    local code=$1
    shift
    printf 'setup: error: %s\n' "$*" >&2
    exit "$code"
}

# Quiet unless it fails. --no-remove: nothing that is on the machine may go away for podfit.
_apt() {
    local output
    if ! output=$(DEBIAN_FRONTEND=noninteractive "$@" -q -o DPkg::Lock::Timeout=300 </dev/null 2>&1); then
        apt_error+=$output$'\n'
        return 1
    fi
}

# apt_install PACKAGE…: refreshes the package lists only when they turn out to be stale or absent. The download can be
# interrupted; the installation has a session of its own, because a Ctrl-C that reached dpkg would leave it half done.
apt_install() {
    local apt_error='' install=(apt-get install -y --no-install-recommends --no-remove)
    say "installing $*"
    if ! _apt "${install[@]}" --download-only "$@"; then
        _apt apt-get update || true
        _apt "${install[@]}" --download-only "$@" || _apt_failed "$@"
    fi
    _apt setsid --wait "${install[@]}" "$@" || _apt_failed "$@"
}

_apt_failed() {
    printf '%s' "$apt_error" >&2
    die 3 "apt-get could not install $* (see above; on Ubuntu the 'universe' component has to be enabled)"
}

# apt_fetch FOLDER PACKAGE…: the files of packages; nothing is installed.
apt_fetch() {
    local folder=$1 apt_error=''
    shift
    _apt env -C "$folder" apt-get download "$@" && return
    _apt apt-get update || true
    _apt env -C "$folder" apt-get download "$@" || _apt_failed "$@"
}

# unpack_program PROGRAM PACKAGE: into .PROGRAM/, unless it is there or on the PATH; nothing is installed.
unpack_program() {
    local program=$1 package=$2 own=.$1/usr/bin/$1 found
    if found=$(command -v "$program" || command -v "./$own"); then
        say "$program: nothing is missing ($("$found" --version 2>&1 | sed -n 1p))"
        return
    fi
    command -v apt-get >/dev/null || die 3 "there is no $program, and no apt-get to fetch it; tests of it skip or fail"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    chmod 755 "$folder"
    say "fetching $package"
    apt_fetch "$folder" "$package"
    rm -rf ".$program"
    dpkg-deb -x "$folder/$package"_*.deb ".$program"
    say "$program: $("./$own" --version 2>&1 | sed -n 1p)"
}
