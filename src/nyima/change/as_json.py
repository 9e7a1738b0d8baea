"""Changes, erases and what they would take as JSON values: the same for the CLI and servers."""

from __future__ import annotations

from typing import Any

from nyima.change.cascade import Forgetting, Receipt
from nyima.change.undo import LoggedChange
from nyima.domain.conversation import iso

__all__ = ["change_to_dict", "forgetting_to_dict", "receipt_to_dict"]


def receipt_to_dict(receipt: Receipt) -> dict[str, Any]:
    """The receipt of an erase."""
    return {
        "erased": dict(receipt.erased),
        "rederived": receipt.rederived,
        "turns": receipt.turns,
        "also": dict(receipt.also),
        "files_scanned": receipt.files_scanned,
        "bytes_found": receipt.bytes_found,
        "still_said": list(receipt.still_said),
    }


def change_to_dict(change: LoggedChange) -> dict[str, Any]:
    """A line of the log of changes."""
    return {
        "id": change.id,
        "at": iso(change.at),
        "what": change.what,
        "before": change.before,
        "after": change.after,
        "by": change.by,
        "undoable": change.undoable,
    }


def forgetting_to_dict(going: Forgetting) -> dict[str, Any]:
    """Return as JSON what a forget would erase."""
    return {
        "turns": [{"id": t.id, "role": t.role.value, "at": iso(t.at), "text": t.text} for t in going.turns],
        "records": [{"id": r.id, "kind": r.kind, "text": r.text} for r in going.records],
        "kept": [{"id": t.id, "role": t.role.value, "at": iso(t.at), "text": t.text} for t in going.kept],
    }
