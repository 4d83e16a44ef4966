"""Surveys: their descriptions, and their alerts under canonical names, one by one or as columns."""

from nightwire.schemas.survey_model.astro import mjd_tai
from nightwire.schemas.survey_model.attribute_names import (
    ALERT_ATTRIBUTES,
    LIGHT_CURVE_ATTRIBUTES,
    MEASUREMENT_ATTRIBUTES,
)
from nightwire.schemas.survey_model.description import Measurement

__all__ = ["ALERT_ATTRIBUTES", "LIGHT_CURVE_ATTRIBUTES", "MEASUREMENT_ATTRIBUTES", "Measurement", "mjd_tai"]
