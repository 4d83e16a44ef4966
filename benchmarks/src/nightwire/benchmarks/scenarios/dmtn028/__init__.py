"""The scenario `dmtn028`: the experiments of DMTN-028, LSST's alert stream on Kafka."""
