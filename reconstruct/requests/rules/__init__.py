"""What must hold of each request of a controller: ``book`` lists the rules, with their judges."""
