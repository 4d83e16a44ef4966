"""What the engines execute: schemas parsed, resolved and projected into layouts and plans."""
