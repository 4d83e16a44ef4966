"""The Avro schemas of the archived alerts, in files beside them: no registry is needed to read."""

from collections.abc import Callable, Iterable

from nightwire.archive.storage.store import Store
from nightwire.schemas import Codec, UnknownSchemaError

SCHEMAS_FOLDER = "schemas"


class SchemaStore:
    """The Avro schemas in an archive, by their registry ids.

    Args:
        store: The archive's.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[int, Codec] = {}

    def codec(self, schema_id: int) -> Codec:
        """Return the codec of a schema id.

        Raises:
            UnknownSchemaError: The archive has no such schema.
        """
        if schema_id not in self._known:
            found = self._store.read_json(f"{SCHEMAS_FOLDER}/{schema_id}.avsc")
            if found is None:
                raise UnknownSchemaError(f"{self._store}: no schema {schema_id} is kept here")
            self._known[schema_id] = Codec(found)
        return self._known[schema_id]

    def add(self, ids: Iterable[int], codec: Callable[[int], Codec]) -> None:
        """Save those schemas of *ids* that the archive lacks, as *codec* returns them.

        An id that the registry does not know is skipped: its alerts are dead letters.

        Raises:
            OSError: The disk is full, or the store refuses.
            RegistryAwayError: The registry does not answer.
        """
        for one in sorted(set(ids) - self._known.keys()):
            path = f"{SCHEMAS_FOLDER}/{one}.avsc"
            if self._store.read_json(path) is None:
                try:
                    found = codec(one)
                except UnknownSchemaError as error:
                    if type(error) is not UnknownSchemaError:
                        raise
                    continue
                self._store.write_json(path, found.schema)
            self.codec(one)
