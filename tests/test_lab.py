"""The `lab` script: what it passes on, what it refuses, what it puts back. Nothing is installed here."""
from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent
NOBODY = 65534
# Stands in for the environment's python: says where it was started and with what.
RECORDER = r"""#!/bin/sh
printf '%s\0' "$PWD" "$@"
exit 7
"""


@pytest.fixture
def clone() -> Iterator[Path]:
    """A clone that anybody may read, with a space in its path and no environment."""
    with tempfile.TemporaryDirectory(prefix="lab test ") as top:
        os.chmod(top, 0o755)
        path = Path(top) / "clone"
        shutil.copytree(SOURCE / "setup", path / "setup")
        for name in ("lab", "setup.cfg", "pyproject.toml"):
            shutil.copy(SOURCE / name, path)
        yield path


def as_nobody(command: list[str | Path], **options) -> subprocess.CompletedProcess:
    """Run without root, so that nothing can be installed, whoever runs this test."""
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, **options)


def functions(clone: Path, script: str) -> subprocess.CompletedProcess:
    """Run a script that has lab's functions; `$top` is a folder for it."""
    lines = f'source "$1/lab"; top=${{1%/*}}\n{script}'
    return subprocess.run(["bash", "-c", lines, "lab", clone], capture_output=True, text=True, timeout=20)


def pretend_environment(clone: Path) -> None:
    """An environment of the right key that only records how it is started."""
    python = clone / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(RECORDER)
    python.chmod(0o755)
    key = functions(clone, "environment_key")
    assert key.returncode == 0 and len(key.stdout.strip()) == 64, key.stderr
    (clone / ".venv/lab-key").write_text(key.stdout)


@pytest.mark.parametrize("arguments", [[], ["--out", "a b", "*", "", "--", "-x", "$HOME"], ["--help"]])
def test_run_passes_arguments_place_and_status_on(clone: Path, arguments: list[str]) -> None:
    pretend_environment(clone)
    here = clone.parent / "where the user stands"
    here.mkdir()
    link = clone.parent / "link"
    link.symlink_to(clone / "lab")
    done = as_nobody([link, "run", *arguments], cwd=here)
    place, *passed = done.stdout.split("\0")[:-1]
    assert (done.returncode, done.stderr, place) == (7, "", str(here))
    assert passed[passed.index("-m"):] == ["-m", "emulator.run", *arguments]
    assert set(passed[:passed.index("-m")]) <= {"-P"}


def test_the_suite_runs_in_the_clone(clone: Path) -> None:
    pretend_environment(clone)
    done = as_nobody([clone / "lab", "test", "-k", "a b"], cwd="/")
    assert done.stdout.split("\0")[:-1] == [str(clone), "-m", "pytest", "-k", "a b"]
    assert done.returncode == 7


@pytest.mark.parametrize("command", ["run", "test", "install"])
@pytest.mark.parametrize("state", ["fresh", "settings changed", "clone moved", "interrupted"])
def test_without_root_an_incomplete_environment_is_refused(clone: Path, command: str, state: str) -> None:
    if state != "fresh":
        pretend_environment(clone)
    if state == "settings changed":
        with (clone / "setup.cfg").open("a") as settings:
            settings.write("# one more\n")
    elif state == "clone moved":
        clone = clone.rename(clone.parent / "elsewhere")
    elif state == "interrupted":
        (clone / ".venv/lab-key").unlink()
    before = sorted(clone.rglob("*"))
    done = as_nobody([clone / "lab", command], cwd="/")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"type: sudo {clone}/lab install\n")
    assert sorted(clone.rglob("*")) == before


@pytest.mark.parametrize("arguments, sentence", [
    (["rum"], '"rum" is not a command of lab; known: run, test, install, help.'),
    (["--dry-run"], '"--dry-run" is not a command of lab; known: run, test, install, help.'),
    (["install", "numpy"], 'install takes no arguments, but got "numpy".'),
])
def test_usage_errors_are_one_sentence(clone: Path, arguments: list[str], sentence: str) -> None:
    done = as_nobody([clone / "lab", *arguments])
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"lab: {sentence}\n")


@pytest.mark.parametrize("arguments, status, lines", [([], 2, 6), (["help"], 0, 30), (["--help"], 0, 30)])
def test_usage_is_short_and_help_names_the_packages(
        clone: Path, arguments: list[str], status: int, lines: int) -> None:
    done = as_nobody([clone / "lab", *arguments])
    assert done.returncode == status and "run [ARGS]" in done.stdout and done.stderr == ""
    assert done.stdout.count("\n") <= lines
    assert ("openvswitch-switch" in done.stdout) == bool(arguments)


@pytest.mark.parametrize("system, has, lacks", [
    ("debian 12 bookworm", {"mininet", "clang", "libbpf1", "bpftool"}, {"linux-tools-common"}),
    ("ubuntu 24.04 noble", {"mininet", "clang", "libbpf1", "linux-tools-generic"}, {"bpftool"}),
    ("ubuntu 22.04 jammy", {"mininet", "openvswitch-switch"}, {"clang", "libbpf1", "bpftool"}),
    ("linuxmint 21.3 jammy", {"mininet", "openvswitch-switch"}, {"clang", "libbpf1", "bpftool"}),
])
def test_packages_are_those_of_the_release(clone: Path, system: str, has: set[str], lacks: set[str]) -> None:
    listed = functions(clone, f'release() {{ echo "{system}"; }}; packages').stdout.split()
    assert len(listed) == len(set(listed))
    assert has <= set(listed) and not lacks & set(listed)


@pytest.mark.parametrize("own_policy", [None, "#!/bin/sh\nexit 104\n"])
def test_open_vswitch_is_held_and_the_policy_put_back(clone: Path, own_policy: str | None) -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="lab-policy-"))   # no space: sh runs it by its path
    try:
        policy = folder / "policy-rc.d"
        if own_policy:
            policy.write_text(own_policy)
            policy.chmod(0o750)
        done = functions(clone, f"""
            policy={policy}
            disable_service() {{ echo "disabled $1"; }}
            hold_service
            for service in openvswitch-switch.service ovs-vswitchd.service cron.service; do
                "$policy" --quiet $service start && echo 0 || echo $?
            done
            release_service
            echo "holding=$holding"
        """)
        others = "104" if own_policy else "0"
        assert done.stdout.splitlines() == ["101", "101", others, "disabled openvswitch-switch", "holding="]
        assert [path.name for path in folder.iterdir()] == (["policy-rc.d"] if own_policy else [])
        if own_policy:
            assert (policy.read_text(), policy.stat().st_mode & 0o777) == (own_policy, 0o750)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("printed, sentence", [
    ("Temporary failure resolving 'm'\nE: Unable to locate package mininet", "mirrors cannot be reached"),
    ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt)", "Another program"),
    ("E: Unable to locate package mininet", "add-apt-repository universe"),
    ("E: dpkg was interrupted, you must manually run 'dpkg --configure -a'", "mend what it says above"),
])
def test_a_failed_apt_ends_in_its_last_lines_and_a_sentence(clone: Path, printed: str, sentence: str) -> None:
    done = functions(clone, f'log=$top/log; cat >"$log" <<"END"\n{printed}\nEND\ndie 3 "$(why_apt_failed)"')
    *tail, last = done.stderr.splitlines()
    assert done.returncode == 3 and done.stdout == ""
    assert [line.strip() for line in tail] == printed.splitlines()
    assert last.startswith("lab: ") and sentence in last and str(clone.parent / "log") in last


def test_too_little_space_is_refused_before_anything_is_fetched(clone: Path) -> None:
    done = functions(clone, 'require_space 99999999 "$top"; echo went on')
    assert done.returncode == 3 and done.stdout == ""
    assert "MB are free at" in done.stderr and "99999999 MB" in done.stderr


@pytest.mark.root
def test_root_leaves_no_bytecode_in_a_users_clone(clone: Path) -> None:
    shutil.copytree(SOURCE / "emulator", clone / "emulator", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [clone, *clone.rglob("*")]:
        os.chown(path, NOBODY, NOBODY)
    made = functions(clone, """
        log=$top/log; touch "$log"
        as_owner "$python" -m venv --system-site-packages --without-pip .venv
        keep_root_bytecode_out ".venv/lib/python3.$(python_minor)/site-packages"
    """)
    assert made.returncode == 0, made.stderr
    command = [clone / ".venv/bin/python", "-c", "import emulator.units, os; print(os.geteuid())"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    assert subprocess.check_output(command, cwd=clone, env=plain, timeout=20, text=True) == "0\n"
    assert not (clone / "emulator/__pycache__").exists()
    assert as_nobody(command, cwd=clone, env=plain).stdout == f"{NOBODY}\n"
    assert (clone / "emulator/__pycache__").exists()
    assert {path.lstat().st_uid for path in clone.rglob("*")} == {NOBODY}


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_the_scripts_are_clean() -> None:
    done = subprocess.run(["shellcheck", "-x", "lab", ".ci/run"], cwd=SOURCE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("vagrant"), reason="vagrant is not installed")
def test_the_vagrantfile_is_valid(tmp_path: Path) -> None:
    places = {"HOME": str(tmp_path), "VAGRANT_HOME": str(tmp_path), "VAGRANT_DOTFILE_PATH": str(tmp_path)}
    done = subprocess.run(["vagrant", "validate", "--ignore-provider"], cwd=SOURCE, capture_output=True,
                          text=True, env={**os.environ, **places}, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
