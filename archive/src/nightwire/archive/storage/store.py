"""The folder, or the bucket of an S3-like store, that holds an archive; named by one URL."""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nightwire.schemas import MendableError


class ArchiveError(MendableError):
    """The archive cannot do what was asked; the message says why, and what to do."""


class StorageError(ArchiveError):
    """The disk is full, or the store does not answer: nothing was committed, ask again later."""


class Store:
    """A folder on a disk, or a prefix in a bucket, with its fsspec file system.

    Args:
        url: A path, or ``s3://BUCKET/PREFIX``; credentials are ``AWS_ACCESS_KEY_ID``,
            ``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION`` and, for a store that is not Amazon's,
            ``AWS_ENDPOINT_URL``.

    Raises:
        ArchiveError: The URL is neither.
    """

    def __init__(self, url: str | Path) -> None:
        text = str(url).rstrip("/")
        scheme = urlsplit(text).scheme
        if scheme not in ("", "s3"):
            raise ArchiveError(f"{text}: an archive lies in a folder, or at s3://BUCKET/PREFIX")
        self.url = text if scheme else str(Path(text).absolute())
        self.is_remote = bool(scheme)

    def __str__(self) -> str:
        return self.url

    @property
    def storage_options(self) -> dict[str, str]:
        """Storage options of delta-rs beyond the environment's."""
        plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
        return {"AWS_ALLOW_HTTP": "true"} if self.is_remote and plain else {}

    @cached_property
    def filesystem(self) -> Any:
        """The fsspec file system; the archive's paths begin with `root`."""
        import fsspec

        if not self.is_remote:
            return fsspec.filesystem("file")
        from fsspec.implementations.arrow import ArrowFSWrapper
        from pyarrow.fs import S3FileSystem

        endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL", ""))
        options = {"endpoint_override": endpoint.netloc, "scheme": endpoint.scheme} if endpoint.netloc else {}
        # short files go by one put
        return ArrowFSWrapper(S3FileSystem(allow_delayed_open=True, **options))

    @property
    def root(self) -> str:
        """The path of the archive in `filesystem`."""
        return self.url.removeprefix("s3://")

    def folders(self) -> list[str]:
        """Return the names of the archive's top folders, sorted.

        Raises:
            StorageError: The store does not answer.
        """
        try:
            found = self.filesystem.ls(self.root, detail=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"{self}: {error}") from error
        names = (str(one["name"]).rsplit("/", 1)[-1] for one in found if one["type"] == "directory")
        return sorted(names)

    def read_json(self, name: str) -> Any:
        """Return the content of the JSON file *name*; None where there is none.

        Raises:
            StorageError: The file is damaged.
            OSError: The store does not answer.
        """
        try:
            return json.loads(self.filesystem.cat_file(f"{self.root}/{name}"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise StorageError(f"{self}/{name} is damaged, remove it: {error}") from error

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Write *content* as the JSON file *name*, atomically.

        Raises:
            OSError: The disk is full, or the store refuses.
        """
        path, text = f"{self.root}/{name}", json.dumps(content, sort_keys=True).encode()
        if self.is_remote:
            self.filesystem.pipe_file(path, text)
            return
        self.filesystem.makedirs(path.rpartition("/")[0], exist_ok=True)
        temporary = Path(f"{path}.{os.getpid()}")
        temporary.write_bytes(text)
        temporary.replace(path)
