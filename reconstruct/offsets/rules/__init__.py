"""The rules about data (R30 to R36, R38, R39), judged over one partition's offsets."""

from reconstruct.offsets.rules.case import IsrMove, IsrMoveKind, OffsetCase
from reconstruct.offsets.rules.judge import judge_offsets

__all__ = ["IsrMove", "IsrMoveKind", "OffsetCase", "judge_offsets"]
