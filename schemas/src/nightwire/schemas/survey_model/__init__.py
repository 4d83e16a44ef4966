"""Surveys: their descriptions, and their alerts under canonical names, one by one or as columns."""

from nightwire.schemas.survey_model.astro import healpix, mjd_tai
from nightwire.schemas.survey_model.attribute_names import (
    ALERT_ATTRIBUTES,
    LIGHT_CURVE_ATTRIBUTES,
    MATCH_MARK,
    MAX_RADIUS,
    MEASUREMENT_ATTRIBUTES,
    NOT_MATCHED,
    NUMBER_ATTRIBUTES,
    MatchName,
)
from nightwire.schemas.survey_model.description import Measurement

__all__ = [
    "ALERT_ATTRIBUTES",
    "LIGHT_CURVE_ATTRIBUTES",
    "MATCH_MARK",
    "MAX_RADIUS",
    "MEASUREMENT_ATTRIBUTES",
    "NOT_MATCHED",
    "NUMBER_ATTRIBUTES",
    "MatchName",
    "Measurement",
    "healpix",
    "mjd_tai",
]
