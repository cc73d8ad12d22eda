# shellcheck shell=bash
# What `lab` installs of the distribution, and how it keeps the services in it from starting.
#
# Uses say, die, lock, require_space, $python and $log of lab. Nothing is done here, only defined.

policy=/usr/sbin/policy-rc.d    # asked by the packages before they start a service (Debian policy 9.3.3.1)
mark='# Made by lab while it installs Open vSwitch, whose service was not here before.'
holding=                        # set while our policy is there

# The system as `debian 12 bookworm` or `ubuntu 24.04 noble`.
release() (
    # shellcheck disable=SC1091
    [ ! -r /etc/os-release ] || source /etc/os-release
    echo "${ID:-unknown} ${VERSION_ID:-} ${UBUNTU_CODENAME:-${VERSION_CODENAME:-}}"
)

# The bpf switch needs libbpf 1.1; Ubuntu 22.04, and what is made from it, has 0.5.
bpf_possible() { [[ $(release) != *" jammy" ]]; }

# All packages, one a line.
packages() {
    # iputils-ping for `h1 ping h2`, which Mininet's own package does not bring; kmod for modprobe.
    printf '%s\n' mininet openvswitch-switch iproute2 ethtool iperf3 tcpdump iputils-ping procps kmod \
        util-linux python3-venv
    bpf_possible || return 0
    printf '%s\n' clang llvm libbpf1 libbpf-dev
    case $(release) in
        # There bpftool is a script that looks for the one of the kernel's own version.
        *" noble") printf '%s\n' linux-tools-common linux-tools-generic ;;
        *) echo bpftool ;;
    esac
}

# Those that are not installed, one a line.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p')
    packages | grep -vxF -- "$installed" || true
}

# Minor version of the distribution's Python 3; empty where there is none.
python_minor() {
    local path
    path=$(readlink -e -- "$python") || return 0
    echo "${path##*python3.}"
}

require_python() {
    local minor
    minor=$(python_minor)
    [ -z "$minor" ] || [ "$minor" -ge 10 ] ||
        die 3 "$python is Python 3.$minor; the emulator needs 3.10 (Debian 12, Ubuntu 22.04) or later."
}

# On a system without apt: name what is to be installed by hand.
require_programs() {
    local program missing=()
    for program in mnexec ovs-vsctl ovs-vswitchd ovsdb-server ip tc ethtool iperf3 tcpdump ping; do
        command -v "$program" >/dev/null || missing+=("$program")
    done
    "$python" -c 'import mininet.net' 2>/dev/null || missing+=("(Mininet 2.3 for $python)")
    "$python" -c 'import ensurepip' 2>/dev/null || missing+=("(venv for $python)")
    [ ${#missing[@]} -eq 0 ] ||
        die 3 "This is neither Debian nor Ubuntu; install these by hand, then start again: ${missing[*]}."
}

# From now on no package may start Open vSwitch; a policy of the machine's own goes on holding for others.
hold_service() {
    cat >"$policy.lab" <<END
#!/bin/sh
$mark
case " \$* " in *" openvswitch"*|*" ovs"*) exit 101 ;; esac
[ ! -x $policy.before-lab ] || exec $policy.before-lab "\$@"
END
    chmod 755 "$policy.lab"
    rm -f -- "$policy.before-lab"
    [ ! -e "$policy" ] || cp -a -- "$policy" "$policy.before-lab"
    holding=yes
    mv -- "$policy.lab" "$policy"
}

# Open vSwitch's service, which came with the package, is disabled; the machine's own policy is put back.
release_service() {
    if ! disable_service openvswitch-switch; then
        say "Open vSwitch's service came with its package and could not be disabled; do that by hand."
    fi
    if [ -e "$policy.before-lab" ]; then mv -- "$policy.before-lab" "$policy"; else rm -- "$policy"; fi
    holding=
}

# Stop and disable service $1, with systemd and without; as it is where the package is not there.
disable_service() {
    [ -e "/etc/init.d/$1" ] || return 0
    [ ! -d /run/systemd/system ] || systemctl stop "$1.service" || return
    if command -v systemctl; then systemctl disable "$1.service"; else update-rc.d "$1" disable; fi
} >>"${log:-/dev/null}" 2>&1

# Finish an installation that was killed. Its apt-get, if still at work, holds the lock that this waits for.
recover_service() {
    grep -qsF "$mark" "$policy" || return 0
    lock /var/lib/dpkg
    ! grep -qsF "$mark" "$policy" || release_service
}

# apt-get, silent and without questions, $1 seconds at most; waits 3 minutes at most for another one.
apt_get() {
    local bound=(--foreground "$1")
    # Ctrl-C may stop a download, but not dpkg half way.
    [ "$2" != install ] || [[ " $* " == *" --download-only "* ]] || bound=("$1")
    DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 timeout "${bound[@]}" \
        apt-get -q -y -o DPkg::Lock::Timeout=180 -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 \
        -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 "${@:2}" </dev/null >>"$log" 2>&1
}

# apt-get does not wait for the lock of the package lists, so this does.
update_lists() {
    local attempt
    for attempt in 1 2 3; do
        ! apt_get 300 update || return 0
        [ "$attempt" -eq 3 ] || sleep 5
    done
    return 1
}

# The sentence for a failed apt-get, from what it printed.
why_apt_failed() {
    if grep -qE 'Temporary failure|Could not resolve|Could not connect|Cannot initiate' "$log"; then
        echo "The package mirrors cannot be reached; mend the network or apt's proxy, then start again."
    elif grep -qE 'Could not get lock|Unable to lock' "$log"; then
        echo "Another program is installing packages; start again when it is done."
    elif grep -q 'Unable to locate package' "$log"; then
        echo "The package sources lack what is named above; on Ubuntu: sudo add-apt-repository universe"
    else
        echo "apt-get could not install the packages; mend what it says above, then start again."
    fi
}

# Install what is missing.
install_packages() {
    local missing
    require_python
    if ! command -v apt-get >/dev/null; then
        require_programs
        return
    fi
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    lock /var/lib/dpkg
    mapfile -t missing < <(missing_packages)
    [ ${#missing[@]} -gt 0 ] || return 0
    bpf_possible || say "this release's libbpf is older than 1.1, so there will be --switch ovs only."
    require_space 1500 /usr
    say "fetching distribution packages: ${missing[*]}"
    update_lists || say "apt-get update failed; going on with the package lists that are here."
    apt_get 900 install --no-install-recommends --download-only "${missing[@]}" || die 3 "$(why_apt_failed)"
    say "installing them; Ctrl-C takes effect afterwards"
    [[ " ${missing[*]} " != *" openvswitch-switch "* ]] || hold_service
    apt_get 1800 install --no-install-recommends "${missing[@]}" || die 3 "$(why_apt_failed)"
    [ -z "$holding" ] || release_service
    require_python
}
