"""What the ``sql`` command is made of: text to statements, the guard that keeps them reading, shell and output."""
