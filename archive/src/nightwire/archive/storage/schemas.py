"""Schemas of the archived alerts, kept beside them: what is archived is read without a registry."""

from collections.abc import Callable, Iterable

from nightwire.archive.storage.store import Store
from nightwire.schemas import Codec, UnknownSchemaError

FOLDER = "schemas"


class KeptSchemas:
    """The schemas in an archive, by id.

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
            found = self._store.read_json(f"{FOLDER}/{schema_id}.avsc")
            if found is None:
                raise UnknownSchemaError(f"{self._store}: no schema {schema_id} is kept here")
            self._known[schema_id] = Codec(found)
        return self._known[schema_id]

    def keep(self, ids: Iterable[int], codec: Callable[[int], Codec]) -> None:
        """Keep the schemas of *ids* that are not here yet, as *codec* has them.

        One that nobody knows is passed over: its alerts are dead letters.

        Raises:
            OSError: The disk is full, or the store refuses.
            RegistryAwayError: The registry does not answer.
        """
        for one in sorted(set(ids) - self._known.keys()):
            path = f"{FOLDER}/{one}.avsc"
            if self._store.read_json(path) is None:
                try:
                    found = codec(one)
                except UnknownSchemaError as error:
                    if type(error) is not UnknownSchemaError:
                        raise
                    continue
                self._store.write_json(path, found.schema)
            self.codec(one)
