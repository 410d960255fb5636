"""Everything that yields a word × word association matrix: head means, trained projections."""
