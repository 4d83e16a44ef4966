"""Known solar-system objects, as Fink's filter `sso_ztf_candidates` has them.

    nightwire filter submit filters/notebooks/fink/solar_system.py --name rocks --survey ztf

Fink asks for its added value `roid` = 3, which it gives where ZTF found an object of the Minor
Planet Center within five arc seconds: that is asked of ZTF's own columns here.
"""

SURVEY = "ztf"
COLUMNS = ["candidate.ssdistnr"]


def keep(ssdistnr):
    """Within five arc seconds of a known object; -999 says that there is none."""
    return ssdistnr.astype(float).between(0, 5)
