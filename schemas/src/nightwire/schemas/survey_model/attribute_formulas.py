"""How canonical numbers follow from a survey's fields, for one measurement and for many alike."""

from nightwire.schemas.survey_model.astro import Numbers, error_of, finite, flux_of, magnitude_of, where
from nightwire.schemas.survey_model.description import Measurement

NAN = float("nan")


class Formulas:
    """Canonical numbers of a measurement: floats, or arrays of shape (n,); NaN for none."""

    _measurement: Measurement
    """Names the fields."""

    def canonical(self, attribute: str) -> Numbers:
        """Return the numbers of an attribute."""
        raise NotImplementedError

    def _number(self, name: str | None) -> Numbers:
        """Return a field's numbers."""
        raise NotImplementedError

    def _sign(self) -> Numbers:
        """Return -1 where a field says that the flux is negative, else 1."""
        raise NotImplementedError

    def _on_tai(self, time: Numbers) -> Numbers:
        """Return modified Julian dates of the survey's time scale on TAI. [d]"""
        raise NotImplementedError

    def _ra(self) -> Numbers:
        return self._number(self._measurement.ra)

    def _dec(self) -> Numbers:
        return self._number(self._measurement.dec)

    def _mjd_tai(self) -> Numbers:
        return self._on_tai(self._number(self._measurement.time) - self._measurement.time_zero)

    def _flux(self) -> Numbers:
        if self._measurement.flux:
            return self._scaled(self._measurement.flux)
        return finite(self._sign() * flux_of(self._number(self._measurement.magnitude)))

    def _flux_error(self) -> Numbers:
        if self._measurement.flux:
            return self._scaled(self._measurement.flux_error)
        return finite(error_of(self.canonical("flux"), self._number(self._measurement.magnitude_error)))

    def _snr(self) -> Numbers:
        error = self.canonical("flux_error")
        return abs(self.canonical("flux")) / where(error == 0, NAN, error)

    def _magnitude(self) -> Numbers:
        return magnitude_of(self.canonical("flux"))

    def _scaled(self, name: str | None) -> Numbers:
        """Return a field's numbers as nJy, by their zero point where the survey has one."""
        values, zero_point = self._number(name), self._measurement.zero_point
        if not zero_point:
            return values
        zero = self._number(zero_point) if isinstance(zero_point, str) else float(zero_point)
        return finite(values * flux_of(zero))
