"""The scenario `codec`: encoding and decoding alone, in one process, beside fastavro."""
