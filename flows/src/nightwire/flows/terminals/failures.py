"""Why a terminal did not take an event."""


class Unavailable(Exception):  # noqa: N818  (the state of who is asked, said)
    """Not now: asking again may help."""


class Refused(Exception):  # noqa: N818
    """Never: the event goes to dead letters at once."""
