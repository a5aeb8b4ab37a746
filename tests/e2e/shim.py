"""Control of shim.c: syncs that are slow or fail, and a full or unreadable disk, switched while the server runs."""
import mmap
import os
import pathlib
import struct
import subprocess


class Shim:
    def __init__(self, base):
        self.library = base / "shim.so"
        self.control = base / "shim.control"
        self.control.write_bytes(bytes(16))
        with open(self.control, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 16)
        source = pathlib.Path(__file__).with_name("shim.c")
        subprocess.run([os.environ.get("CC") or "cc", "-O1", "-shared", "-fPIC", "-o", str(self.library), str(source),
                        "-ldl"],
                       check=True)

    def env(self):
        """What a server's environment needs to run with the shim."""
        asan = os.environ.get("ASAN_OPTIONS", "")
        return {"LD_PRELOAD": self.library, "SHIM_CONTROL": self.control,
                "ASAN_OPTIONS": asan + (":" if asan else "") + "verify_asan_link_order=0"}

    def set(self, sync_ms=0, failing_syncs=0, full=False, unreadable=False):
        self.map[:] = struct.pack("=IIII", int(sync_ms * 1000), failing_syncs, bool(full), bool(unreadable))

    def failing_syncs(self):
        return struct.unpack("=IIII", self.map[:])[1]
