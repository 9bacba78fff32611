"""What a confined process takes together with all that it started: memory, and disk."""

import os
from contextlib import suppress
from pathlib import Path

_MEMORY_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
# Fields of /proc/PID/stat after the name of the program, which may contain anything.
_PROCESS_GROUP_FIELD_INDEX, _RESIDENT_PAGES_FIELD_INDEX = 2, 21


def measure_process_group_memory(process_group_id: int) -> int:
    """Return the bytes of memory that the processes of a group have; 0 without a /proc.

    No confined process can leave its group.
    """
    memory_page_count = 0
    for stat_file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it may end meanwhile
            stat_fields = stat_file.read_bytes().rpartition(b")")[2].split()
            if int(stat_fields[_PROCESS_GROUP_FIELD_INDEX]) == process_group_id:
                memory_page_count += int(stat_fields[_RESIDENT_PAGES_FIELD_INDEX])
    return memory_page_count * _MEMORY_PAGE_BYTES


def measure_folder_bytes(folder_path: str) -> int:
    """Return the bytes of disk that the files of a folder take; it has no folders inside."""
    byte_count = 0
    for file_path in Path(folder_path).glob("*"):
        with suppress(OSError):
            byte_count += file_path.lstat().st_blocks * 512
    return byte_count
