#!/usr/bin/env bash
# Sees to everything that the demo or the tests need: system packages first, then the environment .venv.
# Quick when nothing is left to do. With --dev the environment also gets the linters and the test tools.
#
#     scripts/setup.sh [--dev]
#
# PYTHON=/path/to/python chooses the interpreter that .venv is made from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

extra=""
[[ "${1:-}" == "--dev" ]] && extra="dev"

stop() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

find_python() {
    local name
    for name in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    stop "no Python 3.11 or newer was found (${PYTHON:-python3.13, python3.12, python3.11, python3})." \
        "Install one, as in: apt-get install python3 python3-venv; or name one: PYTHON=/path/to/python make demo"
}

# The Debian packages of what is missing, one a line.
missing_packages() {
    command -v g++ >/dev/null || echo g++
    command -v make >/dev/null || echo make
    command -v bwrap >/dev/null || echo bubblewrap
    # Checks the memory of candidates that were found faster; nobody without root's rights is stopped for want of it.
    if [[ $EUID -eq 0 ]] && ! command -v valgrind >/dev/null; then
        printf '%s\n' valgrind libc6-dbg
    fi
    # Tests start a Slurm of one node, which takes root.
    if [[ -n "$extra" && $EUID -eq 0 ]]; then
        command -v sinfo >/dev/null || echo slurm-wlm
        command -v munged >/dev/null || echo munge
    fi
    if [[ ! -x .venv/bin/python ]] && ! "$1" -c 'import ensurepip, venv' 2>/dev/null; then
        "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
}

# apt_install PREFIX PACKAGE...: PREFIX is "" or "sudo". The package lists are fetched where there are none or old ones.
apt_install() {
    local prefix=$1 log
    shift
    log=$(mktemp)
    local apt=(${prefix:+"$prefix"} env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
    compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || "${apt[@]}" update >"$log" 2>&1 || true
    if ! "${apt[@]}" install -y --no-install-recommends "$@" >>"$log" 2>&1; then
        "${apt[@]}" update >>"$log" 2>&1 || true
        "${apt[@]}" install -y --no-install-recommends "$@" >>"$log" 2>&1 || {
            tail -n 15 "$log" >&2
            rm -f "$log"
            stop "apt-get could not install: $*" "Install them by hand, then run the same command again."
        }
    fi
    rm -f "$log"
}

agreed() {
    local answer
    [[ -t 0 ]] || return 1
    read -r -p "setup: missing: $*. Install with sudo apt-get? [y/N] " answer
    [[ "$answer" == [yY]* ]]
}

install_packages() {
    local by_hand="apt-get install --no-install-recommends $*"
    if ! command -v apt-get >/dev/null; then
        stop "missing: $* (these are Debian's names)." "Install them with this system's package manager, then run the same command again."
    elif [[ $EUID -eq 0 ]]; then
        echo "setup: installing $*"
        apt_install "" "$@"
    elif command -v sudo >/dev/null && agreed "$*"; then
        apt_install sudo "$@"
    else
        stop "missing: $*" "Run this, then the same command again: sudo $by_hand"
    fi
}

# What .venv holds is known by what it was made from; a moved checkout is another one, since scripts name their folder.
fingerprint() {
    { echo "$PWD $1"; cat pyproject.toml constraints.txt; } | sha256sum | cut -d' ' -f1
}

# An environment with the test tools serves the demo as well.
up_to_date() {
    local made
    [[ -x .venv/bin/kernelwright ]] && .venv/bin/python -c '' 2>/dev/null || return 1
    made=$(cat .venv/made-from 2>/dev/null) || return 1
    [[ "$made" == "$(fingerprint dev)" ]] || [[ -z "$extra" && "$made" == "$(fingerprint '')" ]]
}

make_environment() {
    local python=$1
    # Made anew only where the old one does not run; one that is merely stale is brought up to date in place.
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        rm -rf .venv
        "$python" -m venv .venv || stop "$python could not make .venv." "Try another interpreter: PYTHON=/path/to/python make demo"
    fi
    echo "setup: installing Python packages into .venv"
    rm -f .venv/made-from
    .venv/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".${extra:+[$extra]}" ||
        stop "pip could not install the packages; its message stands above."
    fingerprint "$extra" >.venv/made-from
}

python=$(find_python)
mapfile -t packages < <(missing_packages "$python")
[[ ${#packages[@]} -eq 0 ]] || install_packages "${packages[@]}"
up_to_date || make_environment "$python"
