"""The scenario `gateway`: our VTP broker beside Comet, as Swinbank (2014) measured it."""
