"""The scenario `filters`: a hundred and a thousand astronomers' filters on one visit."""
