"""One module per foreign format of a spot trace, and what they share."""
