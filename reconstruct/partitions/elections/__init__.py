"""Elections: what the controller had when it decided, and every outcome that leaves."""
