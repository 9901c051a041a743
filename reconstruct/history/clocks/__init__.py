"""What each broker's clock showed against true time."""
