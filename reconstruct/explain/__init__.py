"""The model's reasoning about one decision, in words: inputs first, then each step, then what came of it."""
