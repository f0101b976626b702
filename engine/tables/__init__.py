"""Tables of counts and sums as one system of equations: which cells to hide, and what a reader works out all the same."""
