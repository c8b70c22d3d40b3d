# Shared by the setup scripts: one line a fact, one way to fail, one way to install a package.

say() { printf 'setup: %s\n' "$*"; }

# die CODE MESSAGE: 3 is "the environment lacks something", as in podfit itself.
die() {
    local code=$1
    shift
    printf 'setup: error: %s\n' "$*" >&2
    exit "$code"
}

# apt_install PACKAGE…: quiet unless it fails; refreshes the package lists only when they turn out to be stale or absent.
apt_install() {
    local log
    log=$(mktemp)
    if ! _apt install "$@" >"$log" 2>&1; then
        _apt update >>"$log" 2>&1 || true
        if ! _apt install "$@" >>"$log" 2>&1; then
            cat "$log" >&2
            rm -f "$log"
            die 3 "apt-get could not install: $* (on Ubuntu the 'universe' component is needed)"
        fi
    fi
    rm -f "$log"
    say "installed $* from the distribution"
}

# --no-remove: nothing that is on the machine may go away for podfit.
_apt() {
    local verb=$1
    shift
    local options=(-q -o DPkg::Lock::Timeout=300)
    [[ $verb == install ]] && options+=(-y --no-install-recommends --no-remove)
    DEBIAN_FRONTEND=noninteractive apt-get "$verb" "${options[@]}" "$@" </dev/null
}
