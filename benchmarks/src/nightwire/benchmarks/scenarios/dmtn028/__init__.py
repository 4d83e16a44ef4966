"""The scenario `dmtn028`: the experiments of DMTN-028, LSST's alert stream on Kafka, on this machine.

A visit is a `Move`, a value; `play` moves it.  Experiments are a table of moves beside their baselines.
"""

__all__: list[str] = []
