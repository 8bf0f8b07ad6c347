"""What the embedded server's files do and say where the disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from redis_components.embedded.files import ServerFolder, write_private


def test_a_file_that_the_disk_has_no_room_for_leaves_the_former_one_and_no_draft(tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    write_private(file, "former")
    (tmp_path / f"access.json.{os.getpid()}.new").symlink_to("/dev/full")
    with pytest.raises(OSError) as raised:
        write_private(file, "new")
    assert raised.value.errno == errno.ENOSPC
    assert [one.name for one in tmp_path.iterdir()] == ["access.json"]
    assert file.read_text() == "former"


@pytest.mark.parametrize(("number", "room"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)])
def test_a_folder_that_cannot_be_written_is_named_with_what_to_do(tmp_path: Path, number: int, room: bool) -> None:
    said = str(ServerFolder(root=tmp_path).cannot_write(OSError(number, os.strerror(number))))
    assert said.startswith(f"cannot write to {tmp_path} for the embedded Redis ({os.strerror(number)}): ")
    assert ("make room there (df), or set TRAWL_DATA_DIR" in said) is room
