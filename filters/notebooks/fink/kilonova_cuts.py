"""Young, compact, real: the cuts of Fink's filter `kn_candidates` on what comes with an alert.

    nightwire filter submit filters/notebooks/fink/kilonova_cuts.py --name young --survey ztf

Fink's asks for three values more that it adds to alerts, and nightwire does not have: the score of
a random forest `rf_kn_vs_nonkn` > 0.5, `cdsxmatch` (SIMBAD's class: a galaxy, or unknown), and
`roid` (no known asteroid), for which ZTF's own `ssdistnr` stands here.
"""

SURVEY = "ztf"
COLUMNS = [
    *("candidate.drb", "candidate.classtar", "candidate.jd", "candidate.jdstarthist"),
    *("candidate.ndethist", "candidate.ssdistnr"),
]


def keep(drb, classtar, jd, jdstarthist, ndethist, ssdistnr):
    """Likely real, a point, first seen in the last five days, nowhere near a known asteroid."""
    high_drb = drb.astype(float) > 0.5
    high_classtar = classtar.astype(float) > 0.4
    new_detection = jd.astype(float) - jdstarthist.astype(float) < 5
    small_detection_history = ndethist.astype(float) < 20
    no_asteroid = ~ssdistnr.astype(float).between(0, 5)
    return high_drb & high_classtar & new_detection & small_detection_history & no_asteroid
