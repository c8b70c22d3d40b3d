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
