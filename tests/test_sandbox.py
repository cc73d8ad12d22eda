"""The sandbox: private inside, invisible outside, gone after any end."""
from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.errors import BadInput, Unfinished
from emulator.sandbox.enter import ROOT, run_in_sandbox
from emulator.sandbox.mounts import check_kept, outermost
from tests.traces import gone

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")

NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4)


@given(st.lists(NAMES, max_size=8))
def test_outermost_covers_everything_once(parts):
    paths = [Path("/tmp", *names) for names in parts]
    chosen = outermost(paths, "/tmp")
    for path in paths:
        assert sum(path == top or top in path.parents for top in chosen) == 1


def test_run_itself_cannot_be_kept():
    with pytest.raises(BadInput, match="/run"):
        check_kept([Path("/run")])


@pytest.mark.root
@needs_root
def test_a_directory_that_is_not_there_cannot_be_kept(tmp_path):
    with pytest.raises(BadInput, match="missing does not exist"):
        run_in_sandbox(["true"], deadline_s=5, keep=[tmp_path / "missing"])


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


LITTER = """
import os, subprocess, sys, time
token = os.environ['TOKEN']
for path in ('/tmp', '/dev/shm', '/run', '/run/openvswitch'):
    open(f'{path}/{token}', 'w').close()
subprocess.run(['ip', 'netns', 'add', token], check=True)
subprocess.run(['ip', 'link', 'add', token[:10], 'type', 'veth', 'peer', 'name', token[:9] + 'p'], check=True)
subprocess.Popen(['setsid', 'sleep', '300'])
"""


@pytest.mark.root
@needs_root
def test_private_inside_and_status_handed_on(tmp_path):
    code = f"""
import json, os
from emulator.sandbox.enter import payload
out = {{'payload': json.loads(payload()), 'links': os.listdir('/sys/class/net'), 'tmp': os.listdir('/tmp'),
       'netns': os.listdir('/run/netns'), 'pid': os.getpid(), 'run': os.path.isdir('/run/openvswitch'),
       'ipv6': open('/proc/sys/net/ipv6/conf/default/disable_ipv6').read()
               if os.path.exists('/proc/sys/net/ipv6') else '1'}}
json.dump(out, open({str(tmp_path / "out.json")!r}, 'w'))
raise SystemExit(7)
"""
    assert run_in_sandbox(python(code), {"bytes": 5}, deadline_s=20, keep=[tmp_path]) == 7
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["payload"] == {"bytes": 5}
    assert out["links"] == ["lo"] and out["netns"] == [] and out["run"] and out["ipv6"].strip() == "1"
    assert set(out["tmp"]) <= {tmp_path.parts[2]}
    assert out["pid"] < 10, "the program must be in a process namespace of its own"


@pytest.mark.root
@needs_root
def test_a_clone_and_directory_below_tmp_and_run_work(tmp_path):
    token = f"k{uuid.uuid4().hex[:8]}"
    below_run = Path("/run", token)
    below_run.mkdir()
    clone = tmp_path / "clone"
    try:
        clone.mkdir()
        shutil.copytree(ROOT / "emulator", clone / "emulator")
        code = f"import emulator; open('{below_run}/a', 'w').write(emulator.__file__)"
        top = ("import sys; sys.path.insert(0, '.')\n"
               "from emulator.sandbox.enter import run_in_sandbox\n"
               f"argv = [sys.executable, '-c', {code!r}]\n"
               f"sys.exit(run_in_sandbox(argv, deadline_s=20, keep=['{below_run}']))")
        subprocess.run(python(top), cwd=clone, check=True, timeout=30)
        assert (below_run / "a").read_text().startswith(str(clone))
    finally:
        (below_run / "a").unlink(missing_ok=True)
        below_run.rmdir()


def top_process(code: str, token: str, **options) -> subprocess.Popen:
    """A process that runs `code` in a sandbox, as the command line would."""
    top = ("import sys\nfrom emulator.sandbox.enter import run_in_sandbox\n"
           f"sys.exit(run_in_sandbox([sys.executable, '-c', {code!r}], **{options!r}))")
    return subprocess.Popen(python(top), cwd=ROOT, env={**os.environ, "TOKEN": token})


@pytest.mark.root
@needs_root
def test_nothing_is_left_after_kill_9_at_any_moment():
    tops = []
    for delay_s in (0.02, 0.06, 0.1, 0.14, 0.18, 0.25, 0.5):
        token = f"k{uuid.uuid4().hex[:8]}"
        tops.append((top_process(LITTER + "time.sleep(300)", token, deadline_s=60), token))
        time.sleep(delay_s)
        tops[-1][0].kill()
    for top, token in tops:
        top.wait(10)
        assert gone(token) == []


@pytest.mark.root
@needs_root
def test_nothing_is_left_after_an_ordinary_end():
    token = f"k{uuid.uuid4().hex[:8]}"
    assert top_process(LITTER, token, deadline_s=60).wait(30) == 0
    assert gone(token) == []


@pytest.mark.root
@needs_root
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_becomes_one_stop(number, tmp_path):
    code = f"""
import time
from emulator.errors import Interrupted
from emulator.sandbox.enter import stop_on_sigterm
stop_on_sigterm()
try:
    open({str(tmp_path / 'started')!r}, 'w').close()
    time.sleep(60)
except Interrupted:
    time.sleep(0.2)
    open({str(tmp_path / 'saved')!r}, 'w').write('partial')
"""
    token = f"k{uuid.uuid4().hex[:8]}"
    top = top_process(code, token, deadline_s=60, keep=[str(tmp_path)])
    end = time.monotonic() + 20
    while not (tmp_path / "started").exists() and time.monotonic() < end:
        time.sleep(0.02)
    top.send_signal(number)
    assert top.wait(20) == 130
    assert (tmp_path / "saved").read_text() == "partial"
    assert gone(token) == []


@pytest.mark.root
@needs_root
def test_a_program_that_ignores_the_deadline_is_ended():
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    with pytest.raises(Unfinished, match="0.5 s"):
        run_in_sandbox(python(code), deadline_s=0.5, grace_s=0.2)


@pytest.mark.root
@needs_root
def test_two_at_once_do_not_see_each_other(tmp_path):
    tokens = [f"k{uuid.uuid4().hex[:8]}" for _ in range(2)]
    code = LITTER + f"""
open(f'{tmp_path}/{{token}}.up', 'w').close()
end = time.monotonic() + 20
while len([name for name in os.listdir({str(tmp_path)!r}) if name.endswith('.up')]) < 2:
    assert time.monotonic() < end
    time.sleep(0.02)
seen = os.listdir('/sys/class/net') + os.listdir('/run/netns') + os.listdir('/run/openvswitch')
open(f'{tmp_path}/{{token}}.seen', 'w').write(' '.join(seen))
"""
    tops = [top_process(code, token, deadline_s=60, keep=[str(tmp_path)]) for token in tokens]
    assert [top.wait(30) for top in tops] == [0, 0]
    for own, other in (tokens, tokens[::-1]):
        seen = (tmp_path / f"{own}.seen").read_text()
        assert own in seen and other[:9] not in seen


@pytest.mark.root
@needs_root
def test_an_interactive_program_keeps_the_terminal_and_gets_ctrl_c():
    code = """
import os, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(9 if os.isatty(0) else 8))
print('ready', flush=True)
for _ in range(400):
    time.sleep(0.05)
"""
    top = ("import sys\nfrom emulator.sandbox.enter import run_in_sandbox\n"
           f"argv = [sys.executable, '-c', {code!r}]\n"
           "sys.exit(run_in_sandbox(argv, interactive=True, deadline_s=30))")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, python(top))
    said, end = b"", time.monotonic() + 20
    while b"ready" not in said and time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert status == 9, said.decode(errors="replace")


@pytest.mark.root
@needs_root
@pytest.mark.skipif(shutil.which("sudo") is None, reason="needs sudo")
def test_the_end_of_sudo_is_a_stop(tmp_path):
    token = f"k{uuid.uuid4().hex[:8]}"
    top = ("import sys\nfrom emulator.sandbox.enter import run_in_sandbox\n"
           f"code = \"import time; open('{tmp_path}/up', 'w').close(); time.sleep(60)\"\n"
           f"run_in_sandbox([sys.executable, '-c', code], keep=['{tmp_path}'], deadline_s=60)")
    sudo = subprocess.Popen(["sudo", "-n", "env", f"TOKEN={token}", *python(top)], cwd=ROOT)
    end = time.monotonic() + 20
    while not (tmp_path / "up").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert (tmp_path / "up").exists(), f"sudo ended with {sudo.poll()}"
    sudo.kill()
    sudo.wait(10)
    assert gone(token) == []
