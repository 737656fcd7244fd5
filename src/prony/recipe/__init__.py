"""How a point is served: recipe layers resolved to a literal deployment."""
