"""Episodes of controllers: what each did as a whole, and procedure by procedure."""
