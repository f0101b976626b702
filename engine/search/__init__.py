"""Search for a plan that may be released: levers, an order of looks, and an honest judgement of the best. No data and no screen."""
