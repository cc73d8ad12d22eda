# shellcheck shell=bash
# What `lab` puts into the clone: the Python environment, bytecode, BPF objects; all its owner's.
#
# Uses say, die, lock, require_space, $clone, $owner, $python and $log of lab, and python_minor and
# bpf_possible of packages.sh. Nothing is done here, only defined.

env=$clone/.venv

# Run "$@" as the clone's owner, in the clone, output to the log. Nobody else writes into the clone.
as_owner() {
    local entry gid name home
    if [ "$EUID" -eq "$owner" ]; then
        env -C "$clone" "$@" </dev/null >>"$log" 2>&1
        return
    fi
    if entry=$(getent passwd "$owner"); then
        IFS=: read -r name _ _ gid _ home _ <<<"$entry"
        set -- --init-groups env -C "$clone" HOME="$home" USER="$name" LOGNAME="$name" "$@"
    else
        # A shared folder whose owner this machine does not know.
        gid=$(stat -c %g -- "$clone")
        set -- --clear-groups env -C "$clone" HOME=/nonexistent "$@"
    fi
    env -u XDG_CACHE_HOME -u XDG_CONFIG_HOME -u XDG_DATA_HOME \
        setpriv --reuid="$owner" --regid="$gid" "$@" </dev/null >>"$log" 2>&1
}

# Write line $2 into file $1 of the clone, as its owner.
write_as_owner() {
    # shellcheck disable=SC2016
    as_owner sh -c 'printf "%s\n" "$2" >"$1"' sh "$1" "$2"
}

# What the environment is made from; where this differs it is made again.
environment_key() {
    { cat -- "$clone/setup.cfg" "$clone/pyproject.toml"; echo "$clone 3.$(python_minor)"; } |
        sha256sum | cut -d ' ' -f 1
}

environment_is_current() {
    [ -x "$env/bin/python" ] && [ "$(cat -- "$env/lab-key" 2>/dev/null)" = "$(environment_key)" ]
}

# Make .venv, or complete one that an interrupted start has left.
make_environment() {
    local site clear=()
    ! environment_is_current || return 0
    lock "$clone"
    ! environment_is_current || return 0
    as_owner test -w . || die 3 "The owner of $clone cannot write there: put the clone elsewhere."
    require_space 600 "$clone"
    say "making the Python environment $env"
    as_owner rm -f .venv/lab-key
    site=.venv/lib/python3.$(python_minor)/site-packages
    [ -d "$clone/$site" ] || clear=(--clear)    # of another Python, if there is one at all
    as_owner timeout --foreground 120 "$python" -m venv --system-site-packages "${clear[@]}" .venv ||
        die 3 "The environment $env could not be made."
    say "installing the Python packages that setup.cfg lists"
    as_owner timeout --foreground 900 .venv/bin/python -m pip install --no-input \
        --disable-pip-version-check --editable '.[test]' || die 3 "$(why_pip_failed)"
    keep_root_bytecode_out "$site"
    as_owner .venv/bin/python -c \
        'import mininet.net, os_ken, numpy, networkx, pydantic, rich, yaml, pytest, hypothesis, emulator' ||
        die 3 "The environment $env was made, but does not work."
    write_as_owner .venv/lab-key "$(environment_key)"
}

# By whatever command root starts this environment, it leaves no bytecode in another's clone.
keep_root_bytecode_out() {
    write_as_owner "$1/00-root-leaves-no-bytecode.pth" \
        'import os, sys; sys.dont_write_bytecode |= os.geteuid() == 0 != os.stat(sys.prefix).st_uid'
}

# The sentence for a failed pip, from what it printed.
why_pip_failed() {
    if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|Temporary failure' "$log"; then
        echo "The Python package index cannot be reached; mend the network or pip's settings."
    else
        echo "pip could not install the Python packages; mend what it says above, then start again."
    fi
}

# Is file $1 missing, or older than a file of pattern $2 in the folders that follow? All in the clone.
is_older() (
    cd -- "$clone"
    [ ! -e "$1" ] || [ -n "$(find "${@:3}" -name "$2" -newer "$1" -print -quit)" ]
)

# Compile what has changed, so that root, who leaves no bytecode, need not do it at each start.
refresh_bytecode() {
    local sources=(emulator controllers topologies traffic)
    is_older .venv/lab-bytecode '*.py' "${sources[@]}" || return 0
    # A file that does not compile is reported where it is imported.
    as_owner .venv/bin/python -m compileall -q "${sources[@]}" || true
    as_owner touch .venv/lab-bytecode
}

bpf_is_current() {
    ! is_older .venv/lab-bpf '*.[ch]' emulator/asic emulator/delay && ! is_older .venv/lab-bpf build.py emulator/asic emulator/delay
}

# Build the objects of the BPF switch, which needs no compiler at run time then.
refresh_bpf() {
    local path
    bpf_possible || return 0
    ! bpf_is_current || return 0
    lock "$clone"
    ! bpf_is_current || return 0
    say "building the BPF switch"
    : >"$log"
    path=$(bpftool_directory):$PATH
    if as_owner env PATH="$path" timeout --foreground 300 .venv/bin/python -m emulator.asic.build; then
        as_owner touch .venv/lab-bpf
    else
        show_log
        say "The BPF switch could not be built, for the reason above; --switch ovs works."
    fi
}

# Where a bpftool is that works: Ubuntu's script refuses a kernel that is not exactly its own.
bpftool_directory() {
    local tool
    for tool in "$(command -v bpftool)" /usr/lib/linux-tools*/*/bpftool /usr/lib/linux-tools*/bpftool; do
        ! "$tool" version >/dev/null 2>&1 || break
    done
    echo "${tool%/*}"
}
