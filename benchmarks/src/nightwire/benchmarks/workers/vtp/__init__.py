"""Workers that are authors and subscribers of a VTP broker, or the distance to it."""
