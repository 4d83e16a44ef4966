"""ZTF's sound alerts, as Fink's filter `quality_cuts` takes them: a function of pandas Series.

    nightwire filter submit filters/notebooks/fink/quality_cuts.py --name sound --survey ztf

All that it reads comes with the alert.
"""

SURVEY = "ztf"
COLUMNS = ["candidate.rb", "candidate.nbad"]


def keep(rb, nbad):
    """Likely real, and without bad pixels."""
    high_rb = rb.astype(float) >= 0.55
    no_nbad = nbad.astype(int) == 0
    return high_rb & no_nbad
