"""Tables of counts and sums as one system of equations: which cells to hide, and what a reader works out all the same.

From the bottom up: ``system`` (atoms, cells and printed tables of all releases), ``rules`` (cells that are unsafe in
themselves), ``elimination`` (what follows by equations, and which cells may be printed), ``polytope`` (what follows
because values are at least 0, or whole; other tables that fit; repairs), ``audit`` (three readers of printed tables,
changes between releases), ``protection`` (all of it in one call).
"""
