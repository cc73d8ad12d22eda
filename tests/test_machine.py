"""What the machine lacks is said in one sentence with the way out."""
from __future__ import annotations

import os
import resource

import pytest

from emulator import machine
from emulator.errors import MachineLacks


def test_a_missing_program_names_its_package(monkeypatch):
    monkeypatch.setattr(machine, "_which", lambda name: None)
    with pytest.raises(MachineLacks, match="openvswitch-switch"):
        machine.program("ovs-vswitchd")


def test_without_root_sudo_is_named(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(MachineLacks, match="sudo"):
        machine.require_root()


def test_an_unknown_congestion_control_is_refused_with_what_there_is():
    with pytest.raises(MachineLacks) as refusal:
        machine.require_congestion_control("nosuchcontrol")
    assert "nosuchcontrol" in str(refusal.value) and "cubic" in str(refusal.value)


def test_a_loaded_congestion_control_is_accepted():
    for name in machine.congestion_controls():
        machine.require_congestion_control(name)


def test_open_files_are_raised_or_refused():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        machine.require_open_files(soft)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= soft + 1 or hard == soft
    except MachineLacks as refusal:
        assert "prlimit" in str(refusal) and hard < soft + 1000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with pytest.raises(MachineLacks, match="prlimit --nofile"):
        machine.require_open_files(2**40)


def test_versions_name_kernel_and_python():
    found = machine.versions()
    assert found["kernel"] == os.uname().release and found["python"].count(".") == 2
    assert all(found.values())


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces")
def test_qdiscs_are_asked_of_the_kernel():
    assert machine.lacking_qdiscs(["htb", "bfifo", "nosuchqdisc"]) == ["nosuchqdisc"]
    with pytest.raises(MachineLacks, match="nosuchqdisc"):
        machine.require_qdiscs(["nosuchqdisc"])
