"""VOEvents for tests."""

import io
import tarfile


def packet(ivorn: str, *, version: str = "2.0", role: str = "observation", what: str = "") -> bytes:
    """Return a small valid packet."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<voe:VOEvent '
        f'xmlns:voe="http://www.ivoa.net/xml/VOEvent/v{version}" ivorn="{ivorn}" role="{role}" '
        f'version="{version}">\n<Who><AuthorIVORN>ivo://test</AuthorIVORN>'
        f"<Date>2026-11-21T00:00:00</Date></Who>\n{what}</voe:VOEvent>\n"
    ).encode()


def container(*documents: bytes) -> bytes:
    """Return a tar archive of *documents*."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for number, document in enumerate(documents):
            member = tarfile.TarInfo(f"{number}.xml")
            member.size = len(document)
            tar.addfile(member, io.BytesIO(document))
    return written.getvalue()
