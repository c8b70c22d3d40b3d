"""What controllers and the API decide about owners of pods: disruption budgets, garbage collection, templates."""
