"""A whole alert, of which only that is decoded which a filter asks for."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nightwire.schemas import AlertTable, AlertView, Codec, Survey

if TYPE_CHECKING:
    import numpy as np

CURVE = ("mjd_tai", "flux", "flux_error", "ra", "dec", "band")
"""Columns of a light curve."""


class LazyAlert(Mapping[str, Any]):
    """A decoded alert to look at; its top-level fields are decoded one by one, when they are asked for.

    Args:
        body: The alert's Avro body.
        codec: Of its schema.
        names: The schema's top-level fields, each as a path of its own.
    """

    def __init__(self, body: memoryview, codec: Codec, names: Mapping[str, tuple[str]]) -> None:
        self._body, self._codec, self._names = body, codec, names
        self._known: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            value = self._codec.decode(self._body, self._names[name])[name]
            self._known[name] = bytes(value) if isinstance(value, memoryview) else value
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Offered:
    """What a table has of canonical values: asked once for each name.

    Args:
        table: The table; None: there is none.
    """

    def __init__(self, table: AlertTable | None) -> None:
        self._table = table
        self._items: dict[str, list[Any] | None] = {}

    def items(self, name: str) -> list[Any] | None:
        """Return a column's values, or None."""
        if name not in self._items:
            self._items[name] = self._found(name)
        return self._items[name]

    def curve(self, row: int) -> "dict[str, np.ndarray[Any, Any]] | None":
        """Return a row's light curve, or None."""
        if self._table is None or any(self.items(f"light_curve.{name}") is None for name in CURVE):
            return None
        return self._table.view(row).light_curve()

    def _found(self, name: str) -> list[Any] | None:
        try:
            return None if self._table is None else self._table[name].items
        except KeyError:
            return None


def _either(name: str) -> Any:
    """Return the property *name*: from the columns if they have it, else as `AlertView` makes it."""
    made = getattr(AlertView, name)

    def get(self: "WholeView") -> Any:
        items = self._offered.items(name)
        return made.__get__(self, AlertView) if items is None else items[self._row]

    return property(get)


class WholeView(AlertView):
    """An alert with all its fields.  Canonical values come from columns where there are any: that is quicker.

    Args:
        alert: The alert.
        survey: Its survey.
        offered: What columns have.
        row: Its row in them.
    """

    def __init__(self, alert: Mapping[str, Any], survey: Survey, offered: Offered, row: int) -> None:
        super().__init__(alert, survey)
        self._offered, self._row = offered, row

    id = _either("id")
    object_id = _either("object_id")
    solar_system_id = _either("solar_system_id")
    visit = _either("visit")
    ra = _either("ra")
    dec = _either("dec")
    galactic_longitude = _either("galactic_longitude")
    galactic_latitude = _either("galactic_latitude")
    healpix = _either("healpix")
    mjd_tai = _either("mjd_tai")
    band = _either("band")
    flux = _either("flux")
    flux_error = _either("flux_error")
    snr = _either("snr")
    magnitude = _either("magnitude")

    def light_curve(self) -> "dict[str, np.ndarray[Any, Any]]":
        """As `AlertView.light_curve`."""
        found = self._offered.curve(self._row)
        return super().light_curve() if found is None else found
