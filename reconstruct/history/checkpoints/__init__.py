"""What a broker's checkpoint files say, and what a start made of them."""
