"""Survey model."""

from nightwire.schemas.survey_model.astro import mjd_tai

__all__ = ["mjd_tai"]
