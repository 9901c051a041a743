"""The model's reasoning about one decision, in words: inputs first, then each step, then what came of it.

``explain`` puts the chapters together; ``spark`` reads the evidence from a lake. Nothing is judged here that the rules
have not judged.
"""
