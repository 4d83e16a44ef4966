"""The scenario `stretch`: DMTN-028's stretch goal, visits of 100,000 alerts, three in a row."""
