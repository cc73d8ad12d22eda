"""Every number of the protocol against os-ken's tables, an independent transcription of the standard."""
from __future__ import annotations

from enum import IntEnum

import pytest
from os_ken.ofproto import ofproto_v1_3, ofproto_v1_5

from emulator.asic.openflow import constants, errors

OSKEN_PREFIX = {
    constants.Message: "OFPT_", constants.Multipart: "OFPMP_", constants.Port: "OFPP_",
    constants.GroupId: "OFPG_", constants.BucketId: "OFPG_BUCKET_", constants.FlowCommand: "OFPFC_",
    constants.FlowFlag: "OFPFF_", constants.GroupCommand: "OFPGC_", constants.GroupType: "OFPGT_",
    constants.Instruction: "OFPIT_", constants.ActionType: "OFPAT_", constants.Removed: "OFPRR_",
    constants.PacketInReason: "OFPR_", constants.Role: "OFPCR_ROLE_",
    errors.HelloFailed: "OFPHFC_", errors.BadRequest: "OFPBRC_", errors.BadAction: "OFPBAC_",
    errors.BadInstruction: "OFPBIC_", errors.BadMatch: "OFPBMC_", errors.FlowModFailed: "OFPFMFC_",
    errors.GroupModFailed: "OFPGMFC_", errors.PortModFailed: "OFPPMFC_", errors.TableModFailed: "OFPTMFC_",
    errors.QueueOpFailed: "OFPQOFC_", errors.SwitchConfigFailed: "OFPSCFC_",
    errors.RoleRequestFailed: "OFPRRFC_", errors.MeterModFailed: "OFPMMFC_",
    errors.TableFeaturesFailed: "OFPTFFC_", errors.BadProperty: "OFPBPC_",
    errors.AsyncConfigFailed: "OFPACFC_"}
ERROR_TYPE_NAMES = {
    errors.HelloFailed: "HELLO_FAILED", errors.BadRequest: "BAD_REQUEST", errors.BadAction: "BAD_ACTION",
    errors.BadInstruction: "BAD_INSTRUCTION", errors.BadMatch: "BAD_MATCH",
    errors.FlowModFailed: "FLOW_MOD_FAILED", errors.GroupModFailed: "GROUP_MOD_FAILED",
    errors.PortModFailed: "PORT_MOD_FAILED", errors.TableModFailed: "TABLE_MOD_FAILED",
    errors.QueueOpFailed: "QUEUE_OP_FAILED", errors.SwitchConfigFailed: "SWITCH_CONFIG_FAILED",
    errors.RoleRequestFailed: "ROLE_REQUEST_FAILED", errors.MeterModFailed: "METER_MOD_FAILED",
    errors.TableFeaturesFailed: "TABLE_FEATURES_FAILED", errors.BadProperty: "BAD_PROPERTY",
    errors.AsyncConfigFailed: "ASYNC_CONFIG_FAILED"}
# Named otherwise in the older version or in os-ken.
RENAMED = {"OFPR_TABLE_MISS": "OFPR_NO_MATCH", "OFPR_APPLY_ACTION": "OFPR_ACTION",
           "OFPMP_FLOW": "OFPMP_FLOW_DESC", "OFPMP_GROUP": "OFPMP_GROUP_STATS",
           "OFPMP_TABLE": "OFPMP_TABLE_STATS"}
ONLY_13 = {"OFPT_QUEUE_GET_CONFIG_REQUEST", "OFPT_QUEUE_GET_CONFIG_REPLY"}


@pytest.mark.parametrize("enumeration", list(OSKEN_PREFIX), ids=lambda e: e.__name__)
def test_every_number_is_os_kens(enumeration: type[IntEnum]) -> None:
    for member in enumeration:
        name = OSKEN_PREFIX[enumeration] + member.name
        found = [getattr(module, spelling) for module in (ofproto_v1_3, ofproto_v1_5)
                 for spelling in (name, RENAMED.get(name, name)) if hasattr(module, spelling)]
        assert found, f"os-ken knows no {name}"
        assert set(found) == {int(member)}, name


def test_error_types_are_os_kens() -> None:
    assert set(ERROR_TYPE_NAMES) == set(errors.ERROR_TYPES)
    for enumeration, number in errors.ERROR_TYPES.items():
        assert number == getattr(ofproto_v1_5, "OFPET_" + ERROR_TYPE_NAMES[enumeration])
