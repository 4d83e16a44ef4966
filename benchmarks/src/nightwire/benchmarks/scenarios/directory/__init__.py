"""The scenario `directory`: questions to who is there, beside Tycho's figures."""
